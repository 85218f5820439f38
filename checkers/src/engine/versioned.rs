//! One object whose every write carries a version: a Kubernetes object and its `resourceVersion`.
//!
//! # The rule
//! Versions name the order of all writes, so the operations fall into *blocks*: block v is the write of v, then the
//! reads of v. A history is linearizable if and only if
//!
//! 1. *one writer*: no version has two writers, a read of v shows what v's writer wrote, and every version has a writer;
//! 2. *chain*: a compare-and-set that made v expected the version directly before v; a create found nothing there;
//! 3. *real time*: no operation of a later block returned before an operation of an earlier block was invoked, and no
//!    read of v returned before v's write was invoked;
//! 4. *refusals*: an operation refused because the version was not e (or because the object did not exist, or did) has
//!    a moment in its interval at which that was so.
//!
//! ```text
//!   version
//!      43 |                       [== write ==]
//!      42 |      [== write ==]         [= read =]
//!      41 | [read]                           [== read ==]   <- stale: 42 had returned before it began
//!         +---------------------------------------------------> time
//! ```
//!
//! # Why it is exact
//! The blocks are forced into one order. Let `t(v)` be the moment at which v is written. Each operation of block v
//! bounds `t(v)` from above by its return and `t(next v)` from below by its invocation, and v's own write bounds `t(v)`
//! from below. A non-decreasing choice of all `t(v)` exists if and only if no lower bound of an earlier or equal block
//! exceeds an upper bound of a later or equal one, and both bounds come from one operation each: so a violation of
//! rule 3 is always a **pair of operations**. A refusal asks that its interval is not swallowed by one period
//! `(t(a), t(b))`: `t(a) >= inv` or `t(b) <= ret`, two literals over ordered variables, so the rest is 2-SAT
//! (see `placing`), decided by propagation; in practice nearly all are forced at once.
//!
//! # Operations without a known outcome
//! A write whose id (a mark inside the object) was ever seen did happen: it gets the version seen, and no return. One
//! that was never seen is left out: that it never happened explains the history. Only where a version nobody wrote
//! is expected, or where a refusal finds no other cause, could an unseen write matter; the first is a matching, the
//! second is handed on as [`Outcome::OutOfClass`] for the search engine.
//!
//! Cost: O(n) for versions that lie close together, O(n log n) otherwise; independent of the number of clients and of
//! indeterminate operations.
//!
//! # Sources
//! Gibbons and Korach 1997, Theorem 4.13 (write order known); the on-line form is that of `rystsov/fast-jepsen`. Rule 4
//! and the placing are our own; all of it is tested against brute force.

mod blocks;
mod chain;
pub mod online;
mod order;
mod placing;
mod verify;

use std::num::{NonZeroU32, NonZeroU64};

use crate::history::Nanos;
pub use order::Timeline;
pub use verify::{Unproved, confirm, verify};

/// A version: a Kubernetes resourceVersion. 0 is no version of any object.
pub type Version = NonZeroU64;

/// A mark that one write leaves in the object, and no other write does; numbered from 1 without large gaps.
pub type WriteId = NonZeroU32;

/// One operation on the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Invoked, ns (the earliest possible moment).
    pub inv: Nanos,
    /// Returned, ns (the latest possible moment); [`super::NEVER`] if the outcome is unknown.
    pub ret: Nanos,
    /// What it did.
    pub act: Act,
    /// The mark it wrote, tried to write, or saw; absent if not known.
    pub id: Option<WriteId>,
}

impl Operation {
    /// When its part in a violation is known: its return, or, without one, its invocation.
    fn spoke_at(&self) -> Nanos {
        if self.ret == super::NEVER { self.inv } else { self.ret }
    }
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Saw the object at `version`.
    Read {
        /// The version seen.
        version: Version,
    },
    /// Was told that there is no such object: a read, or an update or delete refused for that reason.
    Absent,
    /// Wrote without a condition.
    Write {
        /// The version made.
        version: Version,
    },
    /// Wrote on condition that the version is `expected`.
    Cas {
        /// The version it replaced.
        expected: Version,
        /// The version made.
        version: Version,
    },
    /// Created the object, which did not exist.
    Create {
        /// The version made.
        version: Version,
    },
    /// Deleted the object, which existed.
    Delete {
        /// The version it replaced, if that was a condition.
        expected: Option<Version>,
        /// The version of the deletion, if known.
        version: Option<Version>,
    },
    /// Refused: the version was not `expected` at one instant.
    Conflict {
        /// The version it would have replaced.
        expected: Version,
    },
    /// A create refused: the object existed at one instant.
    Exists,
    /// Certainly did not happen, and says nothing of the state.
    Failed,
    /// A write without a condition, outcome unknown.
    MaybeWrite,
    /// A compare-and-set, outcome unknown.
    MaybeCas {
        /// The version it would replace.
        expected: Version,
    },
    /// A create, outcome unknown.
    MaybeCreate,
    /// A delete, outcome unknown.
    MaybeDelete {
        /// The version it would replace, if that was a condition.
        expected: Option<Version>,
    },
}

impl Act {
    /// The version that the operation shows by itself.
    const fn version(self) -> Option<Version> {
        match self {
            Self::Read { version }
            | Self::Write { version }
            | Self::Cas { version, .. }
            | Self::Create { version } => Some(version),
            Self::Delete { version, .. } => version,
            _ => None,
        }
    }

    /// The version that the operation replaces if it takes effect.
    const fn expected(self) -> Option<Version> {
        match self {
            Self::Cas { expected, .. } | Self::MaybeCas { expected } => Some(expected),
            Self::Delete { expected, .. } | Self::MaybeDelete { expected } => expected,
            _ => None,
        }
    }

    /// Whether its outcome is unknown.
    const fn maybe(self) -> bool {
        matches!(
            self,
            Self::MaybeWrite | Self::MaybeCas { .. } | Self::MaybeCreate | Self::MaybeDelete { .. }
        )
    }

    /// Whether it deletes if it takes effect.
    const fn deletes(self) -> bool {
        matches!(self, Self::Delete { .. } | Self::MaybeDelete { .. })
    }

    /// Whether it creates if it takes effect.
    const fn creates(self) -> bool {
        matches!(self, Self::Create { .. } | Self::MaybeCreate)
    }

    /// Whether it certainly changed the object.
    const fn wrote(self) -> bool {
        matches!(self, Self::Write { .. } | Self::Cas { .. } | Self::Create { .. } | Self::Delete { .. })
    }
}

/// What the history says of the world outside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct World {
    /// What was there before the first operation.
    pub start: Start,
    /// Who may write.
    pub writers: Writers,
}

/// What was there before the first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing: the object had yet to be created.
    Absent,
    /// Something or nothing: the lowest version may lack a writer.
    Unknown,
}

/// Who may write the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Only operations of this history: a version without a writer is out of thin air.
    Recorded,
    /// Others too: a version without a writer is no evidence, and refusals may have causes that nobody recorded.
    Others,
}

impl World {
    /// An object that only this history creates and writes.
    pub const CLOSED: Self = Self { start: Start::Absent, writers: Writers::Recorded };
    /// An object that existed before, and that others write too.
    pub const OPEN: Self = Self { start: Start::Unknown, writers: Writers::Others };
}

/// The rule that a history breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A read returned a version older than one already returned before it began.
    StaleRead,
    /// A write made a version lower than one already returned before it began.
    VersionWentBack,
    /// A read returned a version before the write that made it was invoked.
    FutureRead,
    /// Two writes made the same version.
    DuplicateVersion,
    /// A read shows another content than the version's writer (or another reader) says.
    WrongContent,
    /// A version or content that nobody wrote.
    ThinAir,
    /// A conditional write replaced another version than the one it expected: a write in between was lost.
    LostUpdate,
    /// A create succeeded while the object existed.
    CreatedTwice,
    /// A delete succeeded while there was no object.
    DeletedNothing,
    /// The effect of a write that certainly failed was seen.
    FailedWriteVisible,
    /// A conflict on the version that was current during the whole operation.
    ConflictWithoutCause,
    /// "No such object" while the object existed during the whole operation.
    AbsentWithoutCause,
    /// "Already exists" while the object did not exist during the whole operation.
    ExistsWithoutCause,
}

impl Rule {
    /// The rule as a word, stable, for machines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::StaleRead => "stale-read",
            Self::VersionWentBack => "version-went-back",
            Self::FutureRead => "future-read",
            Self::DuplicateVersion => "duplicate-version",
            Self::WrongContent => "wrong-content",
            Self::ThinAir => "thin-air",
            Self::LostUpdate => "lost-update",
            Self::CreatedTwice => "created-twice",
            Self::DeletedNothing => "deleted-nothing",
            Self::FailedWriteVisible => "failed-write-visible",
            Self::ConflictWithoutCause => "conflict-without-cause",
            Self::AbsentWithoutCause => "absent-without-cause",
            Self::ExistsWithoutCause => "exists-without-cause",
        }
    }
}

/// A broken rule and the operations that prove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The operation that is wrong: the stale read, the second writer, the refused one.
    pub culprit: usize,
    /// The operations that it contradicts, the strongest first; empty for [`Rule::ThinAir`].
    pub against: Vec<usize>,
    /// By how much, ns, where the contradiction is one of time: the smallest clock error that would excuse it.
    pub margin: Option<Nanos>,
    /// When it could first have been known, ns.
    pub known_at: Nanos,
}

/// Why the exact rule does not decide a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfClass {
    /// The operation given may be owed to writes that nobody ever saw, in a way that needs a search.
    UnseenCause(usize),
    /// Two writes carry the same mark.
    IdUsedTwice(usize, usize),
    /// A definite delete whose version is not known and cannot be inferred.
    DeleteWithoutVersion(usize),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Linearizable, with a moment for each block, from which the order follows.
    Linearizable(Timeline),
    /// Not linearizable; the violation that could be known first.
    Violation(Violation),
    /// Not decided by the exact rule.
    OutOfClass(OutOfClass),
}

/// Checks the operations of one object, in any order.
#[must_use]
pub fn check(ops: &[Operation], world: World) -> Outcome {
    let mut blocks = match blocks::Blocks::of(ops, world) {
        Ok(b) => b,
        Err(reason) => return Outcome::OutOfClass(reason),
    };
    let mut found = Earliest::default();
    let chain = chain::check(ops, world, &mut blocks, &mut found);
    let bounds = order::check(ops, &blocks, &chain, &mut found);
    if let Some(violation) = found.0 {
        return Outcome::Violation(violation);
    }
    if let Some(op) = chain.unexplained {
        return Outcome::OutOfClass(OutOfClass::UnseenCause(op as usize));
    }
    match placing::place(ops, world, &blocks, &chain, bounds) {
        Ok(placed) => Outcome::Linearizable(Timeline::new(blocks, chain, placed)),
        Err(placing::Refused::Violation(v)) => Outcome::Violation(v),
        Err(placing::Refused::UnseenCause(op)) => Outcome::OutOfClass(OutOfClass::UnseenCause(op)),
    }
}

/// The violation that could be known first; ties go to the culprit that comes first.
#[derive(Default)]
struct Earliest(Option<Violation>);

impl Earliest {
    /// Offers a violation by `culprit` against the operations `against`, known once all of them have spoken.
    fn offer_of(&mut self, ops: &[Operation], rule: Rule, culprit: u32, against: &[u32]) {
        let known_at =
            against.iter().chain([&culprit]).map(|&i| ops[i as usize].spoke_at()).max().unwrap_or(0);
        let against = against.iter().map(|&i| i as usize).collect();
        self.offer(Violation { rule, culprit: culprit as usize, against, margin: None, known_at });
    }

    fn offer(&mut self, v: Violation) {
        let better = match &self.0 {
            None => true,
            Some(best) => (v.known_at, v.culprit, v.rule) < (best.known_at, best.culprit, best.rule),
        };
        if better {
            self.0 = Some(v);
        }
    }
}
