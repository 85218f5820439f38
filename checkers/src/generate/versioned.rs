//! Histories of an object with versions, and what can go wrong with them.

use super::Chance;
use super::clients::{Shape, work};
use crate::engine::NEVER;
use crate::engine::versioned::{Act, Operation, Rule, Version, WriteId};

/// Clients that read the object and replace what they read, created by the first write. Versions have gaps, as
/// etcd's revisions have.
#[must_use]
pub fn compare_and_set(shape: Shape) -> Vec<Operation> {
    #[derive(Clone, Copy)]
    enum Ask {
        Read,
        Cas(Version, WriteId),
        Create(WriteId),
    }
    let clients = shape.clients.max(1);
    let known = std::cell::RefCell::new(vec![None::<Version>; clients]);
    let mut state: Option<(Version, WriteId)> = None;
    let (mut last, mut marks) = (0u64, 0u32);
    let done = work(
        shape,
        |chance, client| {
            let version = known.borrow_mut()[client].take();
            let mut mark = || {
                marks += 1;
                WriteId::new(marks).unwrap_or(WriteId::MAX)
            };
            match version {
                Some(version) if chance.happens(2, 3) => Ask::Cas(version, mark()),
                _ if chance.happens(1, 100) => Ask::Create(mark()),
                _ => Ask::Read,
            }
        },
        |client, ask| {
            let before = state;
            let mut make = |id| {
                last += 1 + last % 3;
                let version = Version::new(last).unwrap_or(Version::MIN);
                state = Some((version, id));
                version
            };
            let answer = match (*ask, before) {
                (Ask::Read, Some((version, id))) => (Act::Read { version }, Some(id)),
                (Ask::Read, None) => (Act::Absent, None),
                (Ask::Cas(expected, id), Some((now, _))) if now == expected => {
                    (Act::Cas { expected, version: make(id) }, Some(id))
                }
                (Ask::Cas(expected, id), Some(_)) => (Act::Conflict { expected }, Some(id)),
                (Ask::Cas(_, id), None) => (Act::Absent, Some(id)),
                (Ask::Create(id), None) => (Act::Create { version: make(id) }, Some(id)),
                (Ask::Create(id), Some(_)) => (Act::Exists, Some(id)),
            };
            if let Act::Read { version } | Act::Cas { version, .. } = answer.0 {
                known.borrow_mut()[client] = Some(version);
            }
            answer
        },
    );
    let mut ops = Vec::with_capacity(done.len());
    for done in done {
        let (act, id) = match (done.answer, done.ask, done.ret) {
            (Some(answer), _, ret) if ret != NEVER => answer,
            (_, Ask::Read, _) => continue,
            (_, Ask::Cas(expected, id), _) => (Act::MaybeCas { expected }, Some(id)),
            (_, Ask::Create(id), _) => (Act::MaybeCreate, Some(id)),
        };
        ops.push(Operation { inv: done.inv, ret: done.ret, act, id });
    }
    ops
}

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

/// Plants an anomaly at about `percent` of a valid history, as one more operation at the end of `ops`, whose position
/// is returned; nothing where there is no place for it.
///
/// The operation planted is in a gap of time that no event of the history has (half a tick), so it disturbs nothing
/// else.
pub fn plant(ops: &mut Vec<Operation>, anomaly: Anomaly, percent: usize, seed: u64) -> Option<usize> {
    let mut chance = Chance::seeded(seed);
    let wrote = |op: &Operation| match op.act {
        Act::Cas { expected, version } if op.ret != NEVER => Some((expected, version)),
        _ => None,
    };
    let from = ops.len() * percent / 100;
    let at = (from..ops.len()).chain((0..from).rev()).find(|&i| wrote(&ops[i]).is_some())?;
    let (expected, version) = wrote(&ops[at])?;
    let (inv, ret, id) = (ops[at].inv, ops[at].ret, ops[at].id);
    // One read of the version, or of the one before, so that it is known who said so.
    let mark = |ops: &[Operation]| ops.iter().filter_map(|o| o.id).max().and_then(|id| id.checked_add(1));
    let after = ret + 1 + chance.below(100);
    let planted = match anomaly {
        Anomaly::StaleRead => {
            Operation { inv: after, ret: after + 100, act: Act::Read { version: expected }, id: None }
        }
        Anomaly::FutureRead => Operation { inv: inv - 300, ret: inv - 200, act: Act::Read { version }, id },
        Anomaly::LostUpdate => {
            let version = ops.iter().filter_map(|o| version_of(o.act)).max()?.checked_add(1)?;
            let act = Act::Cas { expected, version };
            Operation { inv: after, ret: NEVER - 1, act, id: mark(ops) }
        }
        Anomaly::ThinAir => {
            let version = ops.iter().filter_map(|o| version_of(o.act)).max()?.checked_add(1)?;
            Operation { inv: after, ret: NEVER - 1, act: Act::Read { version }, id: mark(ops) }
        }
        Anomaly::DuplicateVersion => {
            Operation { inv, ret, act: Act::Cas { expected, version }, id: mark(ops) }
        }
        Anomaly::FailedWriteVisible => {
            let failed = ops.iter().find(|o| matches!(o.act, Act::Conflict { .. } | Act::Exists))?.id;
            Operation { inv, ret: after, act: Act::Read { version }, id: failed }
        }
        Anomaly::ConflictWithoutCause => {
            // The next write must not have begun.
            let next = ops.iter().find(|o| wrote(o).is_some_and(|(e, _)| e == version))?.inv;
            if next <= ret + 2 {
                return None;
            }
            let span = (ret + 1, (ret + 2).min(next - 1));
            Operation { inv: span.0, ret: span.1, act: Act::Conflict { expected: version }, id: mark(ops) }
        }
    };
    ops.push(planted);
    Some(ops.len() - 1)
}

fn version_of(act: Act) -> Option<Version> {
    match act {
        Act::Read { version } | Act::Cas { version, .. } | Act::Create { version } => Some(version),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::versioned::{Outcome, World, check};

    #[test]
    fn valid_histories_pass_and_each_anomaly_is_found_where_it_was_planted() {
        let mut found = [0; Anomaly::ALL.len()];
        for seed in 0..30 {
            let shape = Shape { operations: 600, clients: 6, lost: 10, seed };
            let valid = compare_and_set(shape);
            assert!(matches!(check(&valid, World::CLOSED), Outcome::Linearizable(_)), "seed {seed}");
            for (anomaly, found) in Anomaly::ALL.into_iter().zip(&mut found) {
                for percent in [10, 50, 90] {
                    let mut ops = valid.clone();
                    let Some(planted) = plant(&mut ops, anomaly, percent, seed) else { continue };
                    let Outcome::Violation(v) = check(&ops, World::CLOSED) else {
                        panic!("{anomaly:?} at {percent} %, seed {seed}, was not found")
                    };
                    assert_eq!(v.rule, anomaly.rule(), "{anomaly:?} at {percent} %, seed {seed}");
                    let named = v.culprit == planted || v.against.contains(&planted);
                    assert!(named, "{anomaly:?} at {percent} %, seed {seed}: {v:?} does not name {planted}");
                    *found += 1;
                }
            }
        }
        assert!(found.iter().all(|&n| n >= 10), "{found:?}");
    }
}
