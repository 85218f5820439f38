//! Pods by identity, one lane for each UID: what the node says, and round it what the API says.
//!
//! # Invariants
//! - A filled bar is the node's word (heartbeats strong, the runtime alone weak); the API only draws outlines.
//! - A window counts certain time alone: see [`super::overlap`].

use std::collections::HashSet;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{Entry, Nanos, PodSeen, PodSource, PodState};

use super::overlap::{Piece, too_many};
use super::{Glyph, Group, Lane, Look, Mark, Ordered, Racks, Span, Window};
use crate::words;

/// Two heartbeat spans this close belong together where the history gives no pause, ns.
const PAUSE: Nanos = 1_000_000_000;

/// What is known of one UID.
#[derive(Debug, Default)]
struct Life<'a> {
    beats: Vec<&'a PodSeen>,
    runtime: Vec<&'a PodSeen>,
    stopped: Vec<&'a PodSeen>,
    terminating: Option<Nanos>,
    gone: Option<Nanos>,
    any: Option<&'a PodSeen>,
}

/// The pods of the run.
pub(super) fn group(facts: &Facts, racks: &Racks, entries: &[Entry], end: Nanos) -> Group {
    let mut identities: Ordered<&str, Ordered<&str, Life<'_>>> = Ordered::new();
    for pods in &facts.pods {
        identities.entry(&pods.identity);
    }
    for entry in entries {
        if let Entry::Pod(seen) = entry {
            identities.entry(&seen.identity).entry(&seen.uid).add(seen);
        }
    }
    let mut group = Group { title: "Pods, as their nodes say".to_owned(), ..Group::default() };
    let namespace = common_namespace(&identities);
    for (identity, lives) in &identities.items {
        let pods = facts.pods.iter().find(|p| p.identity == *identity);
        let first = group.lanes.len();
        let mut pieces = Vec::new();
        for (place, (_, life)) in lives.items.iter().enumerate() {
            let Some(seen) = life.any else { continue };
            let mut lane = life.lane(racks, end);
            if place == 0 {
                let kind = pods.map_or(seen.owner_kind.as_str(), |p| p.owner_kind.as_str());
                lane.name = format!("{} · {kind}", identity.strip_prefix(namespace).unwrap_or(identity));
                lane.note = match (kind, pods) {
                    ("StatefulSet", _) => "at most 1".to_owned(),
                    (_, Some(pods)) => format!("{} wanted", pods.wanted),
                    (_, None) => String::new(),
                };
            }
            pieces.extend(life.certain().map(|(from, to)| Piece {
                lane: group.lanes.len(),
                owner: group.lanes.len(),
                from,
                to,
            }));
            group.lanes.push(lane);
        }
        if group.lanes.len() == first {
            continue;
        }
        let wanted = pods.map_or(1, |p| p.wanted.max(1)) as usize;
        for over in too_many(&pieces, wanted) {
            let length = words::length(over.to - over.from);
            let label = format!("{} of {wanted} for {length}, certain", over.most);
            group.windows.push(Window { lanes: over.lanes, from: over.from, to: over.to, label });
        }
    }
    group
}

/// `lab/` if every identity stands in that namespace, so that it need not be said on each lane.
fn common_namespace<'a>(identities: &Ordered<&'a str, Ordered<&'a str, Life<'_>>>) -> &'a str {
    let mut spaces = identities.items.iter().map(|(id, _)| id.find('/').map_or("", |i| &id[..=i]));
    let Some(first) = spaces.next() else { return "" };
    if spaces.all(|s| s == first) { first } else { "" }
}

impl<'a> Life<'a> {
    fn add(&mut self, seen: &'a PodSeen) {
        // The node's own word names the node; the API's is taken only where there is no other.
        if self.any.is_none_or(|a| a.source == PodSource::Api && seen.source != PodSource::Api) {
            self.any = Some(seen);
        }
        let first =
            |slot: &mut Option<Nanos>| *slot = Some(slot.map_or(seen.from.lo, |t| t.min(seen.from.lo)));
        match (seen.source, seen.state) {
            (PodSource::Heartbeat, PodState::Running) => self.beats.push(seen),
            (PodSource::Runtime, PodState::Running) => self.runtime.push(seen),
            (PodSource::Heartbeat | PodSource::Runtime, PodState::Stopped) => self.stopped.push(seen),
            (PodSource::Api, PodState::Terminating) => first(&mut self.terminating),
            (PodSource::Api, PodState::Stopped) => first(&mut self.gone),
            _ => {}
        }
    }

    /// Certain time of each observation of the node.
    fn certain(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        self.beats.iter().chain(&self.runtime).map(|p| (p.from.hi, p.to.lo)).filter(|(from, to)| from < to)
    }

    fn lane(&self, racks: &Racks, end: Nanos) -> Lane {
        let mut lane = Lane::default();
        let Some(seen) = self.any else { return lane };
        let rack = racks.of(&seen.node);
        let label = format!("{} on {}", short(seen), seen.node);
        let who = format!("pod {} (uid {}) on {}", seen.name, seen.uid, seen.node);
        for seen in sorted(&self.runtime) {
            let tip = format!("{who}: the container runtime says it runs");
            let (from, to) = (seen.from.lo, seen.to.hi);
            lane.spans.push(Span { from, to, look: Look::Weak(rack), label: label.clone(), tip });
        }
        for (from, to, beats, gap) in heartbeats(&sorted(&self.beats)) {
            let beats = words::count(beats);
            let tip = format!("{who}: {beats} heartbeats, longest pause {}", words::length(gap));
            lane.spans.push(Span { from, to, look: Look::Holds(rack), label: label.clone(), tip });
        }
        if let Some(from) = self.terminating {
            let to = self.gone.unwrap_or(end).max(from);
            let tip = format!("{who}: the API says Terminating");
            lane.spans.push(Span { from, to, look: Look::Outline, label: "API: Terminating".into(), tip });
        }
        // A heartbeat file's token and the runtime's id name the same container, so only a second one by the same
        // source is a restart.
        for source in [&self.beats, &self.runtime] {
            let mut containers: HashSet<&str> = HashSet::new();
            for seen in sorted(source) {
                let Some(container) = seen.container.as_deref() else { continue };
                if containers.insert(container) && containers.len() > 1 {
                    let tip = format!("{who}: container {container} starts");
                    lane.marks.push(Mark { at: seen.from.lo, glyph: Glyph::Start, tip });
                }
            }
        }
        for seen in sorted(&self.stopped) {
            let tip = format!("{who}: its container had ended");
            lane.marks.push(Mark { at: seen.from.lo, glyph: Glyph::Stop, tip });
        }
        lane
    }
}

fn sorted<'a>(seen: &[&'a PodSeen]) -> Vec<&'a PodSeen> {
    let mut seen = seen.to_vec();
    seen.sort_by_key(|p| p.from.lo);
    seen
}

/// Heartbeat spans joined where the pause between them is no longer than pauses within them: begin, end,
/// number of heartbeats and longest pause of each.
fn heartbeats(beats: &[&PodSeen]) -> Vec<(Nanos, Nanos, u64, Nanos)> {
    let mut joined: Vec<(Nanos, Nanos, u64, Nanos, Option<&str>)> = Vec::new();
    for seen in beats {
        let container = seen.container.as_deref();
        match joined.last_mut() {
            Some((_, to, beats, gap, of))
                if *of == container
                    && seen.from.lo.saturating_sub(*to) <= PAUSE.max(seen.gap.saturating_mul(3)) =>
            {
                *to = (*to).max(seen.to.hi);
                *beats += seen.beats;
                *gap = (*gap).max(seen.gap);
            }
            _ => joined.push((seen.from.lo, seen.to.hi, seen.beats, seen.gap, container)),
        }
    }
    joined.into_iter().map(|(from, to, beats, gap, _)| (from, to, beats, gap)).collect()
}

/// What tells two pods of one identity apart: the last part of a generated name, or the begin of the UID.
fn short(seen: &PodSeen) -> String {
    match (seen.owner_kind.as_str(), seen.name.rsplit_once('-')) {
        ("StatefulSet" | "Pod", _) | (_, None) => {
            format!("uid {}", seen.uid.chars().take(4).collect::<String>())
        }
        (_, Some((_, last))) => format!("…{last}"),
    }
}
