//! Is the history of each lease linearizable? From a run's entries to the exact rule for versioned objects.
//!
//! # The rule
//! A lease is an object whose every write carries a version, so [`versioned`] decides it. Here the clients' operations
//! become that engine's, and its answer becomes a sentence with names, times and versions.
//!
//! # Invariants
//! * What a client was told binds it: an answer counts from the invocation's line to the completion's line.
//! * An operation that was never completed, or completed as `info`, may have happened at any later time or not at all.
//! * A version that an observer showed ([`LeaseSeen`](crate::history::LeaseSeen)) was written before it was shown. It
//!   says nothing of when it was current, since a watch may lag: it counts as a read that may have begun at the start
//!   of the run.
//! * The mark that a write leaves is its `id`; a read that shows a known id with another holder than was written shows
//!   another mark, so that a torn or mixed-up object is found.
//! * If the first thing that anybody was told of a lease is that it is not there, or that a create succeeded, then
//!   nothing was there before. Else something may have been.

mod gather;
mod words;

use std::collections::BTreeMap;

use crate::engine::versioned::{self, Act, OutOfClass, Outcome};
use crate::history::{Entry, Nanos};
use crate::verdict::Witness;
use gather::Key;

/// What became of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseCheck {
    /// The lease, `namespace/name`.
    pub key: String,
    /// How much was looked at.
    pub counts: Counts,
    /// The answer.
    pub answer: Answer,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients' operations, whatever became of them.
    pub operations: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Writes that certainly happened.
    pub writes: u64,
    /// Operations that were refused, and thereby tell of the object: conflict, exists, absent.
    pub refused: u64,
    /// Writes whose outcome the client never learned.
    pub unknown: u64,
    /// Operations that certainly did not happen and tell nothing of the object.
    pub failed: u64,
    /// Versions shown by observers.
    pub observed: u64,
    /// Versions of the lease that the history shows.
    pub versions: u64,
}

impl Counts {
    fn count(&mut self, act: Act) {
        match act {
            Act::Read { .. } => self.reads += 1,
            Act::Write { .. } | Act::Cas { .. } | Act::Create { .. } | Act::Delete { .. } => self.writes += 1,
            Act::Absent | Act::Conflict { .. } | Act::Exists => self.refused += 1,
            Act::Failed => self.failed += 1,
            Act::MaybeWrite | Act::MaybeCas { .. } | Act::MaybeCreate | Act::MaybeDelete { .. } => {
                self.unknown += 1;
            }
        }
    }

    /// The sum of two counts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            failed: self.failed + other.failed,
            observed: self.observed + other.observed,
            versions: self.versions + other.versions,
        }
    }
}

/// Whether the history of a lease is linearizable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is.
    Linearizable,
    /// It is not: the operations that prove it, the wrong one first, and a sentence.
    Violation(Box<Witness>),
    /// The exact rule does not decide it; why, in a sentence.
    Undecided(String),
}

/// Checks each lease on which clients worked, in the order of their names.
///
/// Entries of a history file; witnesses name the line on which an operation's end stands (its invocation, if it has no
/// end), where entry `i` stands on line `i + 2`.
#[must_use]
pub fn check_leases(entries: &[Entry]) -> Vec<LeaseCheck> {
    let keys: BTreeMap<&str, Key<'_>> = gather::by_key(entries);
    keys.into_iter().map(|(name, key)| check(name, &key)).collect()
}

fn check(name: &str, key: &Key<'_>) -> LeaseCheck {
    let mut counts = key.counts;
    let world = key.world();
    let answer = match versioned::check(&key.ops, world) {
        Outcome::Linearizable(timeline) => {
            counts.versions = timeline.versions() as u64;
            // The order is replayed by other code: a yes rests on it, not on the rule that found it.
            match versioned::verify(&key.ops, world, &timeline.order(&key.ops)) {
                Ok(()) => Answer::Linearizable,
                Err(e) => {
                    Answer::Undecided(format!("Undecided for {name}: the order found proves nothing: {e}."))
                }
            }
        }
        Outcome::Violation(v) if versioned::confirm(&key.ops, &v) == Some(false) => Answer::Undecided(
            format!("Undecided for {name}: the operations found do not prove {}.", v.rule.word()),
        ),
        Outcome::Violation(v) => Answer::Violation(Box::new(words::witness(name, key, &v))),
        Outcome::OutOfClass(why) => Answer::Undecided(undecided(name, key, why)),
    };
    LeaseCheck { key: name.to_owned(), counts, answer }
}

fn undecided(name: &str, key: &Key<'_>, why: OutOfClass) -> String {
    match why {
        OutOfClass::UnseenCause(op) => format!(
            "Undecided for {name}: what {} was told may be owed to writes whose outcome nobody learned.",
            words::doer(key, op)
        ),
        OutOfClass::IdUsedTwice(a, b) => format!(
            "Undecided for {name}: {} and {} wrote the same id, so reads do not tell whose write they saw.",
            words::doer(key, a),
            words::doer(key, b)
        ),
        OutOfClass::DeleteWithoutVersion(op) => {
            format!("Undecided for {name}: the version of a delete by {} is not known.", words::doer(key, op))
        }
    }
}

/// The closed interval in which an operation took place; no end if its outcome is unknown.
fn interval(op: &versioned::Operation) -> (Nanos, Option<Nanos>) {
    (op.inv, (op.ret != super::NEVER).then_some(op.ret))
}

#[cfg(test)]
mod tests;
