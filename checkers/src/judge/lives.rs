//! The life of each pod of an identity, as its node tells it: heartbeats and container runtime, never the API.
//!
//! # Invariants
//! - A pod certainly runs from its first to its last sign of life, pauses between containers left out; it possibly
//!   runs a little longer on both sides, and for ever if its node fell silent with it.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Index, Line};
use crate::bounds::SECOND;
use crate::history::{At, Nanos, PodSeen, PodSource, PodState};

/// Without the runtime's word, a container may have run this long before its first and after its last heartbeat:
/// some beats of 200 ms and the start of a shell on a loaded machine.
pub(super) const BEAT_SLACK: Nanos = SECOND;

/// A stretch of a pod's life with signs of it throughout.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    /// First sign of life.
    pub(super) from: At,
    /// Last sign of life.
    pub(super) to: At,
}

/// One pod's life on its node.
#[derive(Debug, Clone)]
pub(super) struct Life<'a> {
    /// The pod's UID.
    pub(super) uid: &'a str,
    /// The pod's name.
    pub(super) name: &'a str,
    /// Its node.
    pub(super) node: &'a str,
    /// Its containers by source, in order of appearance: more than one of a source is a restart.
    pub(super) containers: BTreeMap<PodSourceKey, Vec<&'a str>>,
    /// The stretches with signs of life, in order, not touching.
    pub(super) stretches: Vec<Stretch>,
    /// Earliest moment at which it can have run.
    pub(super) earliest: Nanos,
    /// Latest moment at which it can have run; `None`: its node said nothing after its last sign of life.
    pub(super) latest: Option<Nanos>,
    /// Whether the last sign of life came with the node's last word: it runs on as far as anybody knows.
    pub(super) running: bool,
    /// Whether its node said that it stopped, rather than only fell silent about it.
    pub(super) stopped: bool,
    /// Heartbeats counted.
    pub(super) beats: u64,
    /// Longest pause between two heartbeats, ns.
    pub(super) gap: Nanos,
    /// A line that shows it.
    pub(super) line: u64,
}

/// A source as a map's key; the API is not one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodSourceKey {
    Heartbeat,
    Runtime,
}

impl Life<'_> {
    /// First sign of life.
    pub(super) fn from(&self) -> At {
        self.stretches.first().map_or(At::exactly(0), |stretch| stretch.from)
    }

    /// Last sign of life.
    pub(super) fn to(&self) -> At {
        self.stretches.last().map_or(At::exactly(0), |stretch| stretch.to)
    }

    /// `web-6d4c-mpv74 on w1`.
    pub(super) fn who(&self) -> String {
        format!("{} on {}", self.name, self.node)
    }

    /// How often a container of it was started anew.
    pub(super) fn restarts(&self) -> usize {
        self.containers.values().map(|tokens| tokens.len().saturating_sub(1)).max().unwrap_or(0)
    }
}

/// The heartbeats of all of `lives`.
pub(super) fn beats(lives: &[Life<'_>]) -> usize {
    let all = lives.iter().fold(0u64, |sum, life| sum.saturating_add(life.beats));
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// The lives of an identity's pods, by their first sign of life.
pub(super) fn lives<'a>(index: &Index<'a>, identity: &str) -> Vec<Life<'a>> {
    let lines = index.pods.get(identity).map(Vec::as_slice).unwrap_or_default();
    let mut by_uid: BTreeMap<(&str, &str), Vec<Line<'a, PodSeen>>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.seen.source != PodSource::Api) {
        by_uid.entry((&line.seen.uid, &line.seen.node)).or_default().push(*line);
    }
    let mut lives: Vec<Life<'a>> = by_uid.into_values().filter_map(|lines| life(index, &lines)).collect();
    lives.sort_by_key(Life::from);
    lives
}

fn life<'a>(index: &Index<'a>, lines: &[Line<'a, PodSeen>]) -> Option<Life<'a>> {
    let alive = |line: &&Line<'a, PodSeen>| line.seen.state == PodState::Running;
    let first = lines.iter().find(alive)?;
    let mut containers: BTreeMap<PodSourceKey, Vec<&str>> = BTreeMap::new();
    let mut known: BTreeSet<(PodSourceKey, &str)> = BTreeSet::new();
    for line in lines {
        let key = match line.seen.source {
            PodSource::Heartbeat => PodSourceKey::Heartbeat,
            PodSource::Runtime => PodSourceKey::Runtime,
            PodSource::Api => continue,
        };
        if let Some(token) = line.seen.container.as_deref()
            && known.insert((key, token))
        {
            containers.entry(key).or_default().push(token);
        }
    }
    let stretches = stretches(lines.iter().filter(alive).map(|line| line.seen));
    let last = stretches.last()?.to;
    let stopped = lines
        .iter()
        .filter(|line| line.seen.state == PodState::Stopped && line.seen.from.hi >= last.lo)
        .map(|line| line.seen.from.hi)
        .min();
    let from = stretches.first()?.from;
    let asked = lines.iter().any(|line| line.seen.source == PodSource::Runtime && alive(&line));
    let earliest = if asked { from.lo } else { from.lo.saturating_sub(BEAT_SLACK) };
    let gap = lines.iter().map(|line| line.seen.gap).max().unwrap_or(0);
    let horizon = index.heard(&first.seen.node);
    let slack = gap.max(BEAT_SLACK);
    let spoke_on = horizon > last.hi.saturating_add(slack);
    let latest = stopped.or_else(|| spoke_on.then(|| last.hi.saturating_add(slack)));
    Some(Life {
        uid: &first.seen.uid,
        name: &first.seen.name,
        node: &first.seen.node,
        containers,
        stretches,
        earliest,
        latest,
        running: latest.is_none(),
        stopped: stopped.is_some(),
        beats: lines.iter().fold(0, |sum, line| sum.saturating_add(line.seen.beats)),
        gap,
        line: first.line,
    })
}

/// Joins spans that overlap or touch, so that a file fetched in pieces is one stretch.
fn stretches<'s>(spans: impl Iterator<Item = &'s PodSeen>) -> Vec<Stretch> {
    let mut spans: Vec<&PodSeen> = spans.collect();
    spans.sort_by_key(|span| (span.from, span.to));
    let mut joined: Vec<Stretch> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from.lo <= last.to.hi => {
                last.to = last.to.max(span.to);
            }
            _ => joined.push(Stretch { from: span.from, to: span.to }),
        }
    }
    joined
}
