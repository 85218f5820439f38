//! A mutex: with owners, or without as Knossos has it.

use crate::engine::search::{Effect, Model};

/// A mutex that knows who holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock;

/// An operation on a mutex, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockOp {
    /// This process got it.
    Acquire(u64),
    /// This process gave it back.
    Release(u64),
    /// This process was told that somebody holds it.
    Held(u64),
}

impl Model for Lock {
    type State = Option<u64>;
    type Op = LockOp;

    fn start(&self) -> Option<u64> {
        None
    }

    fn step(&self, state: &Option<u64>, op: &LockOp) -> Result<Option<u64>, String> {
        match (op, state) {
            (LockOp::Acquire(p), None) => Ok(Some(*p)),
            (LockOp::Acquire(p), Some(holder)) => {
                Err(format!("process {p} cannot acquire, {holder} holds it"))
            }
            (LockOp::Release(p), Some(holder)) if p == holder => Ok(None),
            (LockOp::Release(p), Some(holder)) => {
                Err(format!("process {p} cannot release, {holder} holds it"))
            }
            (LockOp::Release(p), None) => Err(format!("process {p} cannot release, nobody holds it")),
            (LockOp::Held(_), Some(_)) => Ok(*state),
            (LockOp::Held(p), None) => Err(format!("process {p} cannot be refused, nobody holds it")),
        }
    }

    fn effect(&self, op: &LockOp) -> Effect {
        if matches!(op, LockOp::Held(_)) { Effect::ReadOnly } else { Effect::Any }
    }
}

impl std::fmt::Display for LockOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Acquire(_) => f.write_str("acquire"),
            Self::Release(_) => f.write_str("release"),
            Self::Held(_) => f.write_str("acquire, refused"),
        }
    }
}
