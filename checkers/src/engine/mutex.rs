//! A mutex that knows its owner: acquire and release by the same process, and failed tries.
//!
//! # The rule
//! A critical section is *definitely held* from the return of its acquire to the invocation of its release, for ever if
//! it is never released. The history is linearizable if and only if
//!
//! 1. each release follows an acquire of the same process that was not released before;
//! 2. the definite-held intervals are pairwise disjoint (closed intervals of operations: touching moments are fine);
//! 3. no failed try lies inside a gap between two neighbouring sections, from the return of the release before to the
//!    invocation of the acquire after: in there nobody can have held it.
//!
//! # Why it is exact
//! Taking each acquire at its latest moment and each release at its earliest only shrinks sections, so it can only help
//! rule 2; the sections then have one order. Within that order each acquire may move back to its invocation and each
//! release on to its return, so that exactly the gaps of rule 3 stay free whatever is chosen.
//!
//! # Operations of unknown outcome
//! A release of unknown outcome counts as released at its invocation, or later, or never: as late as need be. An acquire
//! of unknown outcome by a process that never speaks again is left out; with failed tries about, it may be who held the
//! mutex: [`Outcome::OutOfClass`], for the search.
//!
//! One sort and one scan: O(n log n), no search. Checked against brute force. Sections without failed tries are the rule
//! that Jepsen's lock tests look for; the gaps are our own.

pub mod online;

use online::{Asked, Event, Sweep, Verdict};

use super::NEVER;
use super::online::{Online, What};
use super::search::Call;
use crate::history::Nanos;
use crate::model::LockOp;

/// The rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Two sections overlap for certain.
    TwoHolders,
    /// A release without an acquire.
    NotHeld,
    /// A failed try while nobody can have held it.
    RefusedWhileFree,
}

/// A broken rule and the operations that prove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The second acquire, the release, or the failed try.
    pub culprit: u32,
    /// The acquire of the section that was held.
    pub against: Option<u32>,
    /// For how long it was held by two for certain at least, ns.
    pub margin: Option<Nanos>,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Linearizable.
    Linearizable,
    /// Not linearizable; the violation that could be known first.
    Violation(Violation),
    /// Lost acquires and failed tries together: for the search.
    OutOfClass,
}

/// A critical section.
#[derive(Debug, Clone, Copy)]
struct Section {
    acquire: u32,
    /// Return of the acquire, invocation of the release.
    held: (Nanos, Nanos),
    /// Invocation of the acquire, return of the release.
    widest: (Nanos, Nanos),
}

/// Checks the operations on one mutex, each process' own in the order of their invocations.
#[must_use]
pub fn check(calls: &[Call<LockOp>]) -> Outcome {
    let tries: Vec<u32> = positions(calls, |op| matches!(op, LockOp::Held(_)));
    let lost = calls.iter().any(|c| c.ret == NEVER && matches!(c.op, LockOp::Acquire(_)));
    if lost && !tries.is_empty() {
        return Outcome::OutOfClass;
    }
    match sweep(calls) {
        Verdict::OutOfClass => Outcome::OutOfClass,
        Verdict::Violation(alarm) => {
            let (culprit, against) = (alarm.culprit as u32, alarm.against.map(|a| a as u32));
            let margin = against.and_then(|against| margin(&sections(calls), culprit, against));
            Outcome::Violation(Violation { rule: alarm.rule, culprit, against, margin })
        }
        Verdict::Linearizable if tries.is_empty() => Outcome::Linearizable,
        Verdict::Linearizable => {
            let mut sections = sections(calls);
            sections.sort_unstable_by_key(|s| (s.held.0.min(s.held.1), s.held.1));
            refused_while_free(calls, &sections, &tries)
        }
    }
}

/// Rules 1 and 2: the events in the order of closed intervals, through the sweep.
fn sweep(calls: &[Call<LockOp>]) -> Verdict {
    let mut events: Vec<(Nanos, bool, u32)> = Vec::with_capacity(2 * calls.len());
    for (i, call) in (0u32..).zip(calls) {
        if !matches!(call.op, LockOp::Held(_)) {
            events.push((call.inv, false, i));
            events.push((call.ret, true, i));
        }
    }
    events.sort_unstable();
    let mut sweep = Sweep::default();
    for (time, ends, i) in events {
        let what = match calls[i as usize].op {
            _ if ends && time == NEVER => What::Unknown,
            _ if ends => What::Return(true),
            LockOp::Acquire(process) | LockOp::Held(process) => What::Invoke(Asked::Acquire(process)),
            LockOp::Release(process) => What::Invoke(Asked::Release(process)),
        };
        if sweep.push(Event { call: u64::from(i), time, what }).is_err() {
            break;
        }
    }
    sweep.finish()
}

/// For how long two sections overlap for certain.
fn margin(sections: &[Section], culprit: u32, against: u32) -> Option<Nanos> {
    let held = |acquire| sections.iter().find(|s| s.acquire == acquire).map(|s| s.held);
    let (second, first) = (held(culprit)?, held(against)?);
    Some(first.1.min(second.1).saturating_sub(second.0.max(first.0)))
}

fn positions(calls: &[Call<LockOp>], of: impl Fn(&LockOp) -> bool) -> Vec<u32> {
    (0u32..).zip(calls).filter(|(_, call)| of(&call.op)).map(|(i, _)| i).collect()
}

/// The critical sections, in the order of the invocations of their acquires.
fn sections(calls: &[Call<LockOp>]) -> Vec<Section> {
    let mut order: Vec<u32> = positions(calls, |op| !matches!(op, LockOp::Held(_)));
    order.sort_unstable_by_key(|&i| (calls[i as usize].inv, i));
    let mut open: std::collections::HashMap<u64, usize> = std::collections::HashMap::new();
    let mut sections: Vec<Section> = Vec::new();
    for i in order {
        let call = &calls[i as usize];
        match call.op {
            LockOp::Acquire(_) if call.ret == NEVER => {}
            LockOp::Acquire(process) => {
                // A process that acquires twice without a release breaks rule 2 with itself; its intervals say so.
                open.insert(process, sections.len());
                sections.push(Section { acquire: i, held: (call.ret, NEVER), widest: (call.inv, NEVER) });
            }
            LockOp::Release(process) => {
                if let Some(&s) = open.get(&process)
                    && sections[s].held.1 == NEVER
                {
                    sections[s].held.1 = call.inv;
                    sections[s].widest.1 = call.ret;
                }
            }
            LockOp::Held(_) => {}
        }
    }
    sections
}

/// Rule 3: no failed try inside a gap. Gaps ascend, since each begins where a section has ended and ends where the
/// next one begins; where neighbours can touch there is none.
fn refused_while_free(calls: &[Call<LockOp>], sections: &[Section], tries: &[u32]) -> Outcome {
    let begins = std::iter::once(None).chain(sections.iter().map(|s| Some(s.widest.1)));
    let ends = sections.iter().map(|s| Some(s.widest.0)).chain([None]);
    let gaps: Vec<(Option<Nanos>, Option<Nanos>)> =
        begins.zip(ends).filter(|(from, to)| from.zip(*to).is_none_or(|(from, to)| from < to)).collect();
    let inside = |t: &&u32| {
        let call = &calls[**t as usize];
        let gap = gaps.partition_point(|(from, _)| from.is_none_or(|from| from < call.inv)).checked_sub(1);
        gap.is_some_and(|gap| gaps[gap].1.is_none_or(|to| call.ret < to))
    };
    match tries.iter().find(inside) {
        None => Outcome::Linearizable,
        Some(&culprit) => Outcome::Violation(Violation {
            rule: Rule::RefusedWhileFree,
            culprit,
            against: None,
            margin: None,
        }),
    }
}
