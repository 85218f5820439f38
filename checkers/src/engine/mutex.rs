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

use super::NEVER;
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
    let mut sections = match sections(calls, lost) {
        Ok(sections) => sections,
        Err(outcome) => return outcome,
    };
    sections.sort_unstable_by_key(|s| (s.held.0.min(s.held.1), s.held.1));
    if let Some(violation) = overlap(&sections) {
        return Outcome::Violation(violation);
    }
    refused_while_free(calls, &sections, &tries)
}

fn positions(calls: &[Call<LockOp>], of: impl Fn(&LockOp) -> bool) -> Vec<u32> {
    (0u32..).zip(calls).filter(|(_, call)| of(&call.op)).map(|(i, _)| i).collect()
}

fn sections(calls: &[Call<LockOp>], lost: bool) -> Result<Vec<Section>, Outcome> {
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
            LockOp::Release(process) => match open.get(&process) {
                Some(&s) if sections[s].held.1 == NEVER => {
                    sections[s].held.1 = call.inv;
                    sections[s].widest.1 = call.ret;
                }
                // A release of unknown outcome need not have happened; a lost acquire may be what it gives back.
                _ if call.ret == NEVER => {}
                _ if lost => return Err(Outcome::OutOfClass),
                _ => {
                    let culprit = i;
                    let violation = Violation { rule: Rule::NotHeld, culprit, against: None, margin: None };
                    return Err(Outcome::Violation(violation));
                }
            },
            LockOp::Held(_) => {}
        }
    }
    Ok(sections)
}

/// Rule 2: one scan with the holder that holds on longest.
fn overlap(sections: &[Section]) -> Option<Violation> {
    let mut holder = sections.first()?;
    for section in &sections[1..] {
        if holder.held.1 > section.held.0 {
            let until = holder.held.1.min(section.held.1);
            return Some(Violation {
                rule: Rule::TwoHolders,
                culprit: section.acquire,
                against: Some(holder.acquire),
                margin: Some(until.saturating_sub(section.held.0)),
            });
        }
        holder = section;
    }
    None
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
