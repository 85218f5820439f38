//! Is the proof a proof? Both answers re-checked by the definition, with nothing of the rules that found them.

use super::{Act, Operation, Rule, Start, Version, Violation, World, WriteId, Writers};
use crate::engine::NEVER;

/// Why an order of operations on a versioned object proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unproved {
    /// An operation is not there, stands in it twice, or is missing.
    #[error("operation {0} is missing, stands in the order twice, or does not exist")]
    Incomplete(usize),
    /// It turns real time round.
    #[error("operation {later} stands before operation {earlier}, which returned before it was invoked")]
    TimeReversed {
        /// The one that stands first.
        later: usize,
        /// The one that returned first.
        earlier: usize,
    },
    /// The object does not allow it.
    #[error("operation {0} is not allowed where it stands")]
    Refused(usize),
}

/// The object, as far as the operations so far tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Absent,
    /// It exists; the version that a write of unknown outcome made shows only later.
    At(Option<Version>, Option<WriteId>),
}

/// Whether `order` explains all operations: each replayed on the object, in O(n).
///
/// Only for objects that nobody else writes: others' writes would belong in between.
///
/// # Errors
/// The first thing wrong with it.
pub fn verify(ops: &[Operation], world: World, order: &[u32]) -> Result<(), Unproved> {
    if world.writers == Writers::Others {
        return Ok(());
    }
    let mut placed = vec![false; ops.len()];
    let mut state = match world.start {
        Start::Absent => State::Absent,
        Start::Unknown => State::Unknown,
    };
    let (mut last, mut latest) = (0, None::<usize>);
    for &op in order {
        let i = op as usize;
        let op = ops.get(i).ok_or(Unproved::Incomplete(i))?;
        if std::mem::replace(&mut placed[i], true) {
            return Err(Unproved::Incomplete(i));
        }
        if let Some(later) = latest.filter(|&l| ops[l].inv > op.ret) {
            return Err(Unproved::TimeReversed { later, earlier: i });
        }
        if latest.is_none_or(|l| ops[l].inv < op.inv) {
            latest = Some(i);
        }
        state = replay(state, op, &mut last).ok_or(Unproved::Refused(i))?;
    }
    let needed = |op: &Operation| op.ret != NEVER && op.act != Act::Failed;
    match ops.iter().zip(placed).position(|(op, placed)| needed(op) && !placed) {
        Some(i) => Err(Unproved::Incomplete(i)),
        None => Ok(()),
    }
}

/// The state after an operation, if it is allowed. `last` is the highest version so far.
fn replay(state: State, op: &Operation, last: &mut u64) -> Option<State> {
    let same = |a: Option<WriteId>, b: Option<WriteId>| a.is_none() || b.is_none() || a == b;
    let mut make = |version: Version| {
        let higher = version.get() > *last;
        *last = version.get();
        higher.then_some(State::At(Some(version), op.id))
    };
    let is = |expected: Version| match state {
        State::Unknown | State::At(None, _) => true,
        State::At(Some(version), _) => version == expected,
        State::Absent => false,
    };
    match op.act {
        Act::Read { version } => {
            let before = match state {
                State::At(_, id) => id,
                _ => None,
            };
            if !is(version) || !same(before, op.id) {
                return None;
            }
            *last = (*last).max(version.get());
            Some(State::At(Some(version), before.or(op.id)))
        }
        Act::Absent => (!matches!(state, State::At(..))).then_some(State::Absent),
        Act::Exists => (state != State::Absent).then_some(state),
        Act::Conflict { expected } => {
            (!matches!(state, State::At(Some(version), _) if version == expected)).then_some(state)
        }
        Act::Write { version } => make(version),
        Act::Cas { expected, version } => {
            *last = (*last).max(expected.get());
            let higher = version.get() > *last;
            *last = version.get();
            (is(expected) && higher).then_some(State::At(Some(version), op.id))
        }
        Act::Create { version } if !matches!(state, State::At(..)) => make(version),
        Act::Delete { expected, version } => {
            if state == State::Absent || expected.is_some_and(|e| !is(e)) {
                return None;
            }
            *last = version.map_or(*last, |v| v.get().max(*last));
            Some(State::Absent)
        }
        Act::MaybeWrite => Some(State::At(None, op.id)),
        Act::MaybeCas { expected } => is(expected).then_some(State::At(None, op.id)),
        Act::MaybeCreate => (!matches!(state, State::At(..))).then_some(State::At(None, op.id)),
        Act::MaybeDelete { expected } => {
            (state != State::Absent && expected.is_none_or(is)).then_some(State::Absent)
        }
        Act::Create { .. } | Act::Failed => None,
    }
}

/// Whether the operations named by a violation contradict each other by themselves; nothing if the rule needs the
/// whole history (a version that *nobody* wrote, a period in which *nothing* else happened).
#[must_use]
pub fn confirm(ops: &[Operation], violation: &Violation) -> Option<bool> {
    let culprit = &ops[violation.culprit];
    let other = violation.against.first().map(|&i| &ops[i]);
    let shows = |op: &Operation| match op.act {
        Act::Read { version }
        | Act::Write { version }
        | Act::Cas { version, .. }
        | Act::Create { version }
        | Act::Delete { version: Some(version), .. } => Some(version),
        _ => None,
    };
    match (violation.rule, other) {
        (Rule::StaleRead | Rule::VersionWentBack, Some(other)) => {
            let (old, new) = (shows(culprit)?, shows(other)?);
            Some(old < new && other.ret < culprit.inv)
        }
        (Rule::FutureRead, Some(writer)) => Some(culprit.ret < writer.inv),
        (Rule::DuplicateVersion, Some(other)) => {
            Some(shows(culprit).is_some() && shows(culprit) == shows(other) && culprit.act.wrote())
        }
        (Rule::FailedWriteVisible, Some(failed)) => Some(
            culprit.id.is_some() && culprit.id == failed.id && !failed.act.wrote() && !failed.act.maybe(),
        ),
        (Rule::LostUpdate, Some(between)) => {
            let (expected, made, there) = (culprit.act.expected()?, shows(culprit)?, shows(between)?);
            // What was lost may be a delete: behind it there is nothing that a conditional write could replace.
            let deleted = there == expected && matches!(between.act, Act::Delete { .. });
            Some((expected < there || deleted) && there < made)
        }
        _ => None,
    }
}
