//! What became of each fault: asked, applied, observed, undone, healed.
//!
//! # Invariants
//! - Solid means seen by a probe; a fault that was asked for but not seen is hatched, whatever a command answered.
//! - Where edges are planned, "observed" and "healed" need every one of them.

use std::collections::HashMap;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{Entry, FaultMark, FaultPhase, Nanos};

use super::{Glyph, Group, Lane, Look, Mark, Span};
use crate::words;

/// What became of one directed edge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EdgeStory {
    /// Packets of this host ...
    pub(crate) from: String,
    /// ... do not reach this one.
    pub(crate) to: String,
    /// When the command returned.
    pub(crate) applied: Option<Nanos>,
    /// When a probe first saw the effect.
    pub(crate) observed: Option<Nanos>,
    /// When a probe saw it gone after the undo.
    pub(crate) healed: Option<Nanos>,
    /// When it was seen open though it should have been cut.
    pub(crate) missing: Vec<Nanos>,
    /// When an answer was lost.
    pub(crate) lost: Vec<Nanos>,
}

/// What became of one fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FaultStory {
    /// Its id within the run.
    pub(crate) id: String,
    /// Kind and shape.
    pub(crate) kind: String,
    /// What it does, in a few words.
    pub(crate) summary: String,
    /// First command sent.
    pub(crate) asked: Option<Nanos>,
    /// Last edge applied.
    pub(crate) in_force: Option<Nanos>,
    /// Every edge seen in force.
    pub(crate) observed: Option<Nanos>,
    /// First undo sent.
    pub(crate) healing: Option<Nanos>,
    /// Every edge seen healed.
    pub(crate) healed: Option<Nanos>,
    /// Each directed edge, in the plan's order.
    pub(crate) edges: Vec<EdgeStory>,
    /// Marks of the whole fault.
    whole: EdgeStory,
}

impl FaultStory {
    /// Edges seen in force.
    pub(crate) fn seen(&self) -> usize {
        self.edges.iter().filter(|e| e.observed.is_some()).count()
    }

    /// Edges seen healed.
    pub(crate) fn healed_edges(&self) -> usize {
        self.edges.iter().filter(|e| e.healed.is_some()).count()
    }

    fn settle(&mut self) {
        let every = |of: fn(&EdgeStory) -> Option<Nanos>, edges: &[EdgeStory], whole: Option<Nanos>| {
            if edges.is_empty() {
                whole
            } else {
                edges.iter().map(of).try_fold(0, |last, t| t.map(|t| t.max(last)))
            }
        };
        self.in_force = self.edges.iter().filter_map(|e| e.applied).max().or(self.whole.applied);
        self.observed = every(|e| e.observed, &self.edges, self.whole.observed);
        self.healed = every(|e| e.healed, &self.edges, self.whole.healed);
    }

    fn add(&mut self, mark: &FaultMark, places: &mut HashMap<(String, String), usize>) {
        let t = mark.time;
        let earliest = |slot: &mut Option<Nanos>| *slot = Some(slot.map_or(t, |old| old.min(t)));
        match mark.phase {
            FaultPhase::Reached => return,
            FaultPhase::Asked => return earliest(&mut self.asked),
            FaultPhase::Healing => return earliest(&mut self.healing),
            _ => {}
        }
        let edge = match &mark.edge {
            None => &mut self.whole,
            Some(pair) => {
                let place = *places.entry(pair.clone()).or_insert_with(|| {
                    let (from, to) = pair.clone();
                    self.edges.push(EdgeStory { from, to, ..EdgeStory::default() });
                    self.edges.len() - 1
                });
                &mut self.edges[place]
            }
        };
        match mark.phase {
            FaultPhase::Applied => earliest(&mut edge.applied),
            FaultPhase::Observed => earliest(&mut edge.observed),
            FaultPhase::Healed => earliest(&mut edge.healed),
            FaultPhase::Missing => edge.missing.push(t),
            FaultPhase::Unknown => edge.lost.push(t),
            FaultPhase::Asked | FaultPhase::Healing | FaultPhase::Reached => {}
        }
    }
}

/// The planned faults, then any other that the history names.
pub(super) fn tell(facts: &Facts, entries: &[Entry]) -> Vec<FaultStory> {
    let mut stories: Vec<FaultStory> = Vec::new();
    let mut places: Vec<HashMap<(String, String), usize>> = Vec::new();
    for fault in &facts.faults {
        let edge = |(from, to): &(String, String)| EdgeStory {
            from: from.clone(),
            to: to.clone(),
            ..EdgeStory::default()
        };
        places.push(fault.edges.iter().cloned().zip(0..).collect());
        stories.push(FaultStory {
            id: fault.id.clone(),
            kind: fault.kind.clone(),
            summary: fault.summary.clone(),
            edges: fault.edges.iter().map(edge).collect(),
            ..FaultStory::default()
        });
    }
    for entry in entries {
        let Entry::Fault(mark) = entry else { continue };
        let place = stories.iter().position(|s| s.id == mark.fault).unwrap_or_else(|| {
            stories.push(FaultStory {
                id: mark.fault.clone(),
                summary: mark.fault.clone(),
                ..FaultStory::default()
            });
            places.push(HashMap::new());
            stories.len() - 1
        });
        stories[place].add(mark, &mut places[place]);
    }
    stories.iter_mut().for_each(FaultStory::settle);
    stories
}

/// The fault lanes.
pub(super) fn group(faults: &[FaultStory], zero: Nanos, end: Nanos) -> Group {
    let lanes = faults.iter().map(|fault| lane(fault, zero, end)).collect();
    Group { title: "Faults".to_owned(), lanes, ..Group::default() }
}

fn lane(fault: &FaultStory, zero: Nanos, end: Nanos) -> Lane {
    let mut lane = Lane { name: fault.summary.clone(), note: fault.kind.clone(), ..Lane::default() };
    let Some(asked) = fault.asked else {
        "never asked for".clone_into(&mut lane.caption);
        return lane;
    };
    let undo = fault.healing.unwrap_or(end);
    let gone = fault.healed.unwrap_or(end);
    let edges = fault.edges.len();
    let told = if edges == 0 { "observed".to_owned() } else { format!("{edges} directed edges, observed") };
    let mut span = |from: Nanos, to: Nanos, look: Look, label: String| {
        if from < to {
            lane.spans.push(Span { from, to, look, tip: label.clone(), label });
        }
    };
    match fault.observed {
        Some(seen) => {
            span(asked, seen, Look::Asked, "asked for, not yet seen in force".to_owned());
            span(seen, undo, Look::Fault, format!("in force: {told}"));
        }
        None => {
            let seen = fault.seen();
            span(asked, undo, Look::Asked, format!("asked for, but seen on {seen} of {edges} edges only"));
        }
    }
    span(undo, gone, Look::Asked, "undo sent, not yet seen healed".to_owned());
    let steps = [
        ("asked", fault.asked),
        ("applied", fault.in_force),
        ("observed", fault.observed),
        ("undo sent", fault.healing),
        ("healed", fault.healed),
    ];
    lane.caption = steps
        .iter()
        .map(|(what, t)| match t {
            Some(t) => format!("{what} {}", words::moment(*t, zero)),
            None => format!("{what}: never"),
        })
        .collect::<Vec<_>>()
        .join(" · ");
    let step = |(what, t): &(&str, Option<Nanos>)| {
        t.map(|at| Mark { at, glyph: Glyph::Step, tip: (*what).to_owned() })
    };
    lane.marks.extend(steps.iter().filter_map(step));
    for edge in fault.edges.iter().chain([&fault.whole]) {
        let name = if edge.from.is_empty() {
            fault.summary.clone()
        } else {
            format!("{} → {}", edge.from, edge.to)
        };
        let mark = |glyph, what: &str, at: &Nanos| Mark { at: *at, glyph, tip: format!("{name} {what}") };
        lane.marks.extend(edge.missing.iter().map(|t| mark(Glyph::Missing, "was seen open", t)));
        lane.marks.extend(edge.lost.iter().map(|t| mark(Glyph::Lost, "gave no answer: in force or not", t)));
    }
    lane
}
