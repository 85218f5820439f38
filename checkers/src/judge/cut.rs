//! A planned fault and what became of each of its directed edges.

use std::collections::BTreeMap;

use super::index::Line;
use crate::facts::FaultFacts;
use crate::history::{FaultMark, FaultPhase, Nanos};

/// What became of one directed edge.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    /// First time that the command was sent.
    pub(super) asked: Option<Nanos>,
    /// First time that it returned.
    pub(super) applied: Option<Nanos>,
    /// Each time that a probe saw the effect, in order.
    pub(super) observed: Vec<Nanos>,
    /// When healing was asked for.
    pub(super) healing: Option<Nanos>,
    /// When a probe first saw the effect gone after that.
    pub(super) healed: Option<Nanos>,
    /// Each time that it was seen not to be in force, with the line.
    pub(super) missing: Vec<(Nanos, u64)>,
    /// Times at which an answer was lost.
    pub(super) lost: u32,
}

/// A planned fault, its edges and the moments that hold for all of them.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    /// What was planned.
    pub(super) fault: &'a FaultFacts,
    /// When it was first asked for; `None`: never.
    pub(super) asked: Option<Nanos>,
    /// When the last edge was applied.
    pub(super) in_force: Option<Nanos>,
    /// When the state came that it waited for, with the line.
    pub(super) reached: Option<(Nanos, u64)>,
    /// When healing was first asked for.
    pub(super) healing: Option<Nanos>,
    /// When the last edge was seen healed.
    pub(super) healed: Option<Nanos>,
    /// The planned edges.
    pub(super) edges: BTreeMap<(&'a str, &'a str), Edge>,
}

impl<'a> Cut<'a> {
    /// What the marks say of `fault`; marks of other faults and of unplanned edges are left aside.
    pub(super) fn new(fault: &'a FaultFacts, marks: &[Line<'a, FaultMark>]) -> Self {
        let mut whole = Edge::default();
        let mut reached = None;
        let mut edges: BTreeMap<(&str, &str), Edge> =
            fault.edges.iter().map(|(a, b)| ((a.as_str(), b.as_str()), Edge::default())).collect();
        for mark in marks.iter().filter(|mark| mark.seen.fault == fault.id) {
            match &mark.seen.edge {
                _ if mark.seen.phase == FaultPhase::Reached => {
                    reached.get_or_insert((mark.seen.time, mark.line));
                }
                None => whole.add(mark),
                Some((a, b)) => {
                    if let Some(edge) = edges.get_mut(&(a.as_str(), b.as_str())) {
                        edge.add(mark);
                    }
                }
            }
        }
        let all = || edges.values().chain([&whole]);
        Self {
            fault,
            asked: all().filter_map(|e| e.asked).min(),
            in_force: edges.values().filter_map(|e| e.applied).max().or(whole.applied),
            reached,
            healing: all().filter_map(|e| e.healing).min(),
            healed: edges.values().filter_map(|e| e.healed).max().or(whole.healed),
            edges,
        }
    }

    /// Edges of which no probe ever saw the effect, as [`name`] has them.
    pub(super) fn unobserved(&self) -> Vec<String> {
        let unseen = self.edges.iter().filter(|(_, edge)| edge.observed.is_empty());
        unseen.map(|((a, b), _)| name(a, b)).collect()
    }

    /// What its edges are called, one and many: hosts, if it is done to hosts themselves.
    pub(super) fn unit(&self) -> (&'static str, &'static str) {
        if !self.edges.is_empty() && self.edges.keys().all(|(from, to)| from == to) {
            ("host", "hosts")
        } else {
            ("directed edge", "directed edges")
        }
    }

    /// Whether each planned edge was seen in force.
    pub(super) fn bit(&self) -> bool {
        self.asked.is_some() && self.unobserved().is_empty()
    }

    /// When each edge had been seen in force at least once; `None` if one never was.
    pub(super) fn seen_in_force(&self) -> Option<Nanos> {
        self.edges
            .values()
            .map(|edge| edge.observed.first().copied())
            .max_by_key(|t| t.unwrap_or(Nanos::MAX))?
    }
}

/// An edge as `m1 → m2`; a host to which something is done by its name.
pub(super) fn name(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from} → {to}") }
}

impl Edge {
    fn add(&mut self, mark: &Line<'_, FaultMark>) {
        let time = mark.seen.time;
        match mark.seen.phase {
            FaultPhase::Asked => self.asked = Some(self.asked.map_or(time, |t| t.min(time))),
            FaultPhase::Applied => self.applied = Some(self.applied.map_or(time, |t| t.min(time))),
            FaultPhase::Observed => self.observed.push(time),
            FaultPhase::Healing => self.healing = Some(self.healing.map_or(time, |t| t.min(time))),
            FaultPhase::Healed => self.healed = Some(self.healed.map_or(time, |t| t.min(time))),
            FaultPhase::Unknown => self.lost += 1,
            FaultPhase::Missing => self.missing.push((time, mark.line)),
            FaultPhase::Reached => {}
        }
    }
}
