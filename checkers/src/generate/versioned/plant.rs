//! Anomalies of an object with versions, planted into a valid history.
//!
//! # Invariants
//! * What is planted is one operation, in gaps of time that no event of the history has (less than half a tick), so that
//!   it contradicts the operations named and no others.
//! * A near miss is the same operation, changed as little as makes it legal.

use super::super::clients::TICK;
use super::super::places;
use crate::engine::NEVER;
use crate::engine::versioned::{Act, Operation, Rule, Version, WriteId};
use crate::history::Nanos;

/// What can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anomaly {
    /// A read returns a version older than one returned before it began.
    StaleRead,
    /// A read returns a version before its write was invoked.
    FutureRead,
    /// Two writes replace the same version.
    LostUpdate,
    /// A read shows a version that nobody wrote.
    ThinAir,
    /// Two writes make the same version.
    DuplicateVersion,
    /// A read shows the mark of a write that certainly failed.
    FailedWriteVisible,
    /// A conflict on the version that was current during the whole operation.
    ConflictWithoutCause,
}

impl Anomaly {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::StaleRead,
        Self::FutureRead,
        Self::LostUpdate,
        Self::ThinAir,
        Self::DuplicateVersion,
        Self::FailedWriteVisible,
        Self::ConflictWithoutCause,
    ];

    /// The rule that it breaks.
    #[must_use]
    pub const fn rule(self) -> Rule {
        match self {
            Self::StaleRead => Rule::StaleRead,
            Self::FutureRead => Rule::FutureRead,
            Self::LostUpdate => Rule::LostUpdate,
            Self::ThinAir => Rule::ThinAir,
            Self::DuplicateVersion => Rule::DuplicateVersion,
            Self::FailedWriteVisible => Rule::FailedWriteVisible,
            Self::ConflictWithoutCause => Rule::ConflictWithoutCause,
        }
    }

    /// Its name: that of the rule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.rule().word()
    }
}
/// Whether to plant an anomaly or its near miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The anomaly.
    Broken,
    /// The same, changed as little as makes it legal.
    NearMiss,
}

/// What was planted: positions among the operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The operation added.
    pub added: usize,
    /// All operations that prove the anomaly, the one added first.
    pub guilty: Vec<usize>,
}

/// Plants an anomaly, or its near miss, at about `at` (0 to 1) of a valid history, as one more operation at the end of
/// `ops`; nothing where there is no place for it.
pub fn plant(ops: &mut Vec<Operation>, anomaly: Anomaly, at: f64, kind: Kind) -> Option<Planted> {
    let blocks = Blocks::of(ops);
    let mark = ops.iter().filter_map(|op| op.id).max()?.checked_add(1)?;
    let order = places::from(at, blocks.versions.len());
    let (operation, with) = order.into_iter().find_map(|b| {
        let place = Place { ops, blocks: &blocks, b, mark, near: kind == Kind::NearMiss };
        place.fill(anomaly)
    })?;
    let added = ops.len();
    ops.push(operation);
    Some(Planted { added, guilty: std::iter::once(added).chain(with).collect() })
}

/// A moment and the operation that sets it.
type Bound = (Nanos, usize);

/// The blocks of a valid history, in version order.
struct Blocks {
    versions: Vec<Version>,
    /// The operation that wrote it, if its answer came.
    writer: Vec<Option<usize>>,
    /// The smallest return in this block or a later one: by then it was written.
    latest: Vec<Bound>,
    /// The largest invocation in this block or an earlier one: until then the next was not written.
    earliest: Vec<Bound>,
    /// By operation, in the order of invocations: the largest return of a refusal so far.
    refused: Vec<Nanos>,
}

impl Blocks {
    fn of(ops: &[Operation]) -> Self {
        // Which version a write of unknown outcome made is known from who saw its mark.
        let marks = ops.iter().filter_map(|op| op.id).max().map_or(0, |id| id.get() as usize);
        let mut seen = vec![None; marks + 1];
        for op in ops {
            if let (Act::Read { version }, Some(id)) = (op.act, op.id) {
                seen[id.get() as usize] = Some(version);
            }
        }
        let version = |op: &Operation| match op.act {
            Act::Read { version } | Act::Cas { version, .. } | Act::Create { version } => Some(version),
            Act::MaybeCas { .. } | Act::MaybeCreate => op.id.and_then(|id| seen[id.get() as usize]),
            _ => None,
        };
        let mut versions: Vec<Version> = ops.iter().filter_map(version).collect();
        versions.sort_unstable();
        versions.dedup();
        let mut blocks = Self {
            writer: vec![None; versions.len()],
            latest: vec![(NEVER, 0); versions.len()],
            earliest: vec![(0, 0); versions.len()],
            refused: Vec::with_capacity(ops.len()),
            versions,
        };
        let mut until = 0;
        blocks.refused.extend(ops.iter().map(|op| {
            let refusal = matches!(op.act, Act::Conflict { .. } | Act::Exists | Act::Absent);
            until = until.max(if refusal { op.ret } else { 0 });
            until
        }));
        for (i, op) in ops.iter().enumerate() {
            let Some(Ok(b)) = version(op).map(|v| blocks.versions.binary_search(&v)) else { continue };
            if matches!(op.act, Act::Cas { .. } | Act::Create { .. }) {
                blocks.writer[b] = Some(i);
            }
            blocks.latest[b] = blocks.latest[b].min((op.ret, i));
            blocks.earliest[b] = blocks.earliest[b].max((op.inv, i));
        }
        for b in (1..blocks.versions.len()).rev() {
            blocks.latest[b - 1] = blocks.latest[b - 1].min(blocks.latest[b]);
        }
        for b in 1..blocks.versions.len() {
            blocks.earliest[b] = blocks.earliest[b].max(blocks.earliest[b - 1]);
        }
        blocks
    }
}

/// A block at which something may be planted.
struct Place<'a> {
    ops: &'a [Operation],
    blocks: &'a Blocks,
    b: usize,
    /// A mark that no operation has.
    mark: WriteId,
    near: bool,
}

/// The operation to add, and those that it contradicts.
type Filled = (Operation, Vec<usize>);

impl Place<'_> {
    fn fill(&self, anomaly: Anomaly) -> Option<Filled> {
        match anomaly {
            Anomaly::StaleRead => self.stale_read(),
            Anomaly::FutureRead => self.future_read(),
            Anomaly::LostUpdate => self.lost_update(),
            Anomaly::ThinAir => self.thin_air(),
            Anomaly::DuplicateVersion => self.duplicate_version(),
            Anomaly::FailedWriteVisible => self.failed_write_visible(),
            Anomaly::ConflictWithoutCause => self.conflict_without_cause(),
        }
    }

    /// The write of a block, if it was a compare-and-set on the block before.
    fn update(&self, b: usize) -> Option<(usize, &Operation, Version)> {
        let i = self.blocks.writer.get(b).copied()??;
        match self.ops[i].act {
            Act::Cas { expected, .. } => Some((i, &self.ops[i], expected)),
            _ => None,
        }
    }

    /// Whether nothing was refused in a stretch of time. A refusal may say more of when versions were written than
    /// their writers do: the proof would be another one, and a near miss none.
    fn quiet(&self, from: Nanos, to: Nanos) -> bool {
        let begun = self.ops.partition_point(|op| op.inv <= to);
        begun.checked_sub(1).is_none_or(|last| self.blocks.refused[last] < from)
    }

    /// An operation beside the write of the block, a little later at both ends: it may stand wherever that may.
    fn beside(&self, write: &Operation, act: Act, id: Option<WriteId>) -> Operation {
        Operation { inv: write.inv + TICK / 4, ret: write.ret + TICK / 4, act, id }
    }

    /// The version before it, read after somebody was told of this one. Near miss: the read began in that very moment.
    fn stale_read(&self) -> Option<Filled> {
        let (_, write, expected) = self.update(self.b)?;
        let (told, by) = self.blocks.latest[self.b];
        if !self.quiet(write.inv, told + TICK) {
            return None;
        }
        let (inv, ret) = if self.near { (told, told + TICK / 4) } else { (told + TICK / 4, told + TICK / 2) };
        Some((Operation { inv, ret, act: Act::Read { version: expected }, id: None }, vec![by]))
    }

    /// This version, read before its write began. Near miss: the read returned in that very moment.
    fn future_read(&self) -> Option<Filled> {
        let (i, write, _) = self.update(self.b)?;
        let before = self.blocks.earliest[self.b.checked_sub(1)?];
        let ret = if self.near { write.inv } else { write.inv - TICK / 4 };
        let act = Act::Read { version: self.blocks.versions[self.b] };
        let read = Operation { inv: write.inv - TICK / 2, ret, act, id: write.id };
        (before.0 < write.inv).then_some((read, vec![i]))
    }

    /// A second write over the same version. Near miss: it is refused.
    fn lost_update(&self) -> Option<Filled> {
        let (i, write, expected) = self.update(self.b)?;
        let version = Version::new(self.blocks.versions[self.b].get() - 1).filter(|&v| v > expected)?;
        let act = if self.near { Act::Conflict { expected } } else { Act::Cas { expected, version } };
        Some((self.beside(write, act, Some(self.mark)), vec![i]))
    }

    /// A read of a version that nobody wrote. Near miss: of the one before it, which somebody wrote.
    fn thin_air(&self) -> Option<Filled> {
        let (_, write, _) = self.update(self.b)?;
        let written = self.blocks.versions[self.b];
        let version = written.checked_add(1).filter(|v| self.blocks.versions.get(self.b + 1) != Some(v))?;
        // The next write no longer follows what it expected; nobody must know that before the read is told.
        let next = self.blocks.writer.get(self.b + 1).copied().flatten();
        if next.is_some_and(|next| self.ops[next].ret <= write.ret) {
            return None;
        }
        let (version, id) = if self.near { (written, write.id) } else { (version, Some(self.mark)) };
        Some((self.beside(write, Act::Read { version }, id), Vec::new()))
    }

    /// A second write that makes the same version. Near miss: its answer is lost.
    fn duplicate_version(&self) -> Option<Filled> {
        let (i, write, expected) = self.update(self.b)?;
        let version = self.blocks.versions[self.b];
        let act = if self.near { Act::MaybeCas { expected } } else { Act::Cas { expected, version } };
        let mut second = self.beside(write, act, Some(self.mark));
        if self.near {
            second.ret = NEVER;
        }
        Some((second, vec![i]))
    }

    /// A read that shows the mark of a write that was refused. Near miss: that of the write which made the version.
    fn failed_write_visible(&self) -> Option<Filled> {
        let (i, write, _) = self.update(self.b)?;
        let refused = |&i: &usize| matches!(self.ops[i].act, Act::Conflict { .. } | Act::Exists);
        let failed = (0..i).rev().find(refused)?;
        let id = if self.near { write.id } else { self.ops[failed].id };
        let act = Act::Read { version: self.blocks.versions[self.b] };
        Some((self.beside(write, act, id), vec![failed]))
    }

    /// A write refused although the version it expected was the current one all the time. Near miss: it was refused
    /// only after the next version had been written.
    fn conflict_without_cause(&self) -> Option<Filled> {
        let expected = self.blocks.versions[self.b];
        let (next, after, over) = self.update(self.b + 1)?;
        let (told, by) = self.blocks.latest[self.b];
        let (until, open) = self.blocks.earliest[self.b].max((after.inv, next));
        let write = &self.ops[self.blocks.writer[self.b]?];
        if over != expected || until <= told || !self.quiet(write.inv, until) {
            return None;
        }
        let ret = if self.near { self.blocks.latest[self.b + 1].0 } else { told + TICK / 2 };
        let act = Act::Conflict { expected };
        Some((Operation { inv: told + TICK / 4, ret, act, id: Some(self.mark) }, vec![by, open]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::clients::Shape;
    use super::super::compare_and_set;
    use super::*;
    use crate::engine::versioned::{Outcome, World, check};

    #[test]
    fn each_anomaly_is_found_where_it_was_planted_and_its_near_miss_passes() {
        for seed in 0..30 {
            let shape = Shape { operations: 600, clients: 4, lost: 10, seed };
            let valid = compare_and_set(shape);
            assert!(matches!(check(&valid, World::CLOSED), Outcome::Linearizable(_)), "seed {seed}");
            for anomaly in Anomaly::ALL {
                for at in [0.1, 0.5, 0.99] {
                    let case = format!("{anomaly:?} at {at}, seed {seed}");
                    let mut ops = valid.clone();
                    let planted = plant(&mut ops, anomaly, at, Kind::Broken).expect(&case);
                    let Outcome::Violation(v) = check(&ops, World::CLOSED) else {
                        panic!("{case}: not found")
                    };
                    assert_eq!(v.rule, anomaly.rule(), "{case}");
                    let mut named: Vec<usize> = std::iter::once(v.culprit).chain(v.against).collect();
                    let mut guilty = planted.guilty;
                    named.sort_unstable();
                    guilty.sort_unstable();
                    assert_eq!(named, guilty, "{case}");
                    let mut ops = valid.clone();
                    plant(&mut ops, anomaly, at, Kind::NearMiss).expect(&case);
                    assert!(
                        matches!(check(&ops, World::CLOSED), Outcome::Linearizable(_)),
                        "{case}: near miss"
                    );
                }
            }
        }
    }
}
