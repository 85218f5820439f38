//! One register with read, write and compare-and-set.

use std::fmt::Display;
use std::hash::Hash;

use crate::engine::search::{Effect, Model};

/// A register that holds a `V`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register<V> {
    /// Its value before the first operation.
    pub start: V,
}

/// An operation on a register, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RegisterOp<V> {
    /// A read that was answered with this value.
    Read(V),
    /// A read whose answer says nothing: allowed everywhere.
    ReadAny,
    /// A write.
    Write(V),
    /// A compare-and-set that succeeded.
    Cas {
        /// The value it replaced.
        from: V,
        /// The value it wrote.
        to: V,
    },
    /// A compare-and-set that was refused, since the value was another one.
    CasRefused {
        /// The value it would have replaced.
        from: V,
    },
}

impl<V: Clone + Eq + Hash + Display> Model for Register<V> {
    type State = V;
    type Op = RegisterOp<V>;

    fn start(&self) -> V {
        self.start.clone()
    }

    fn step(&self, state: &V, op: &RegisterOp<V>) -> Result<V, String> {
        match op {
            RegisterOp::Read(value) if value == state => Ok(state.clone()),
            RegisterOp::Read(value) => Err(format!("cannot read {value}, the register holds {state}")),
            RegisterOp::ReadAny => Ok(state.clone()),
            RegisterOp::Write(value) => Ok(value.clone()),
            RegisterOp::Cas { from, to } if from == state => Ok(to.clone()),
            RegisterOp::Cas { from, to } => {
                Err(format!("cannot replace {from} by {to}, the register holds {state}"))
            }
            RegisterOp::CasRefused { from } if from != state => Ok(state.clone()),
            RegisterOp::CasRefused { from } => {
                Err(format!("cannot refuse to replace {from}, the register holds just that"))
            }
        }
    }

    fn effect(&self, op: &RegisterOp<V>) -> Effect {
        match op {
            RegisterOp::Read(_) | RegisterOp::ReadAny | RegisterOp::CasRefused { .. } => Effect::ReadOnly,
            RegisterOp::Cas { from, to } if from == to => Effect::ReadOnly,
            RegisterOp::Write(_) => Effect::Overwrites,
            RegisterOp::Cas { .. } => Effect::Any,
        }
    }
}

impl<V: Display> Display for RegisterOp<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(value) => write!(f, "read {value}"),
            Self::ReadAny => f.write_str("read, answer unknown"),
            Self::Write(value) => write!(f, "write {value}"),
            Self::Cas { from, to } => write!(f, "cas {from} to {to}"),
            Self::CasRefused { from } => write!(f, "cas from {from}, refused"),
        }
    }
}
