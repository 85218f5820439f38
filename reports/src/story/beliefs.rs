//! What each host's process of a component believes of its own leadership.

use rackrift_checkers::history::{Belief, BeliefEvent, Nanos};

use super::overlap::{Piece, too_many};
use super::{Glyph, Lane, Look, Mark, Ordered, Racks, Span, Window};
use crate::words;

/// What was heard of one component.
#[derive(Debug, Default)]
pub(super) struct Heard<'a> {
    hosts: Ordered<&'a str, Vec<&'a Belief>>,
}

/// What a process is doing at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Started,
    Candidate,
    Leads,
    Lost,
}

impl<'a> Heard<'a> {
    /// One more line.
    pub(super) fn add(&mut self, seen: &'a Belief) {
        self.hosts.entry(seen.host.as_str()).push(seen);
    }

    /// A lane for each host, and the windows in which two of them certainly led.
    pub(super) fn lanes(&self, racks: &Racks, end: Nanos) -> (Vec<Lane>, Vec<Window>) {
        let mut lanes = Vec::new();
        let mut reigns = Vec::new();
        for (place, (host, heard)) in self.hosts.items.iter().enumerate() {
            let mut lane =
                Lane { name: format!("belief {host}"), note: "log, process".to_owned(), ..Lane::default() };
            let mut pids: Ordered<(&str, u32), Vec<&Belief>> = Ordered::new();
            for belief in heard {
                pids.entry((belief.host_time.boot.as_str(), belief.pid)).push(belief);
            }
            for (_, mut events) in pids.items {
                events.sort_by_key(|b| b.at.lo);
                life(&events, racks, end, &mut lane, |from, to| {
                    reigns.push(Piece { lane: place, owner: place, from, to });
                });
            }
            lane.spans.sort_by_key(|s| s.from);
            lane.marks.sort_by_key(|m| m.at);
            lanes.push(lane);
        }
        let mut windows = Vec::new();
        for over in too_many(&reigns, 1) {
            let label = format!("{} lead for {}, certain", over.most, words::length(over.to - over.from));
            windows.push(Window { lanes: over.lanes, from: over.from, to: over.to, label });
        }
        (lanes, windows)
    }
}

/// One process from its first line to its last; `reign` gets each certain span of leading.
fn life(events: &[&Belief], racks: &Racks, end: Nanos, lane: &mut Lane, mut reign: impl FnMut(Nanos, Nanos)) {
    let mut now: Option<(State, &Belief)> = None;
    let mut close = |now: Option<(State, &Belief)>, until: Option<&Belief>, lane: &mut Lane| {
        let Some((state, since)) = now else { return };
        let to = until.map_or(end, |b| b.at.lo);
        let rack = racks.of(&since.host);
        let (look, label) = match state {
            State::Started => (Look::Tries, "runs"),
            State::Candidate => (Look::Tries, "tries"),
            State::Leads => (Look::Holds(rack), "leads"),
            State::Lost => (Look::Tail, "lost, still runs"),
        };
        if state == State::Leads && since.at.hi < to {
            reign(since.at.hi, to);
        }
        let tip = format!("pid {}: {label} (“{}”)", since.pid, since.line);
        lane.spans.push(Span { from: since.at.lo, to: to.max(since.at.lo), look, label: label.into(), tip });
    };
    for event in events {
        let state = match event.event {
            BeliefEvent::Starts => Some(State::Started),
            BeliefEvent::Candidate => Some(State::Candidate),
            BeliefEvent::Leads => Some(State::Leads),
            BeliefEvent::Lost => Some(State::Lost),
            BeliefEvent::Exits => None,
        };
        let mark = match event.event {
            BeliefEvent::Starts => Some((Glyph::Start, "process starts")),
            BeliefEvent::Exits => Some((Glyph::Stop, "process exits")),
            BeliefEvent::Lost => Some((Glyph::Stop, "loses the lease")),
            BeliefEvent::Candidate | BeliefEvent::Leads => None,
        };
        if let Some((glyph, what)) = mark {
            let tip = format!("{what}, pid {}: “{}”", event.pid, event.line);
            lane.marks.push(Mark { at: event.at.lo, glyph, tip });
        }
        if now.map(|(s, _)| s) != state {
            close(now.take(), Some(event), lane);
            now = state.map(|s| (s, *event));
        }
    }
    close(now, None, lane);
}
