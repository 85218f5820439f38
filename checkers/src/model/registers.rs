//! Several registers, read and written together.

use std::collections::BTreeMap;

use crate::engine::search::{Effect, Model};
use crate::history::Value;

/// Registers by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registers {
    /// Their values before the first operation.
    pub start: BTreeMap<String, Value>,
    /// What all others hold then.
    pub others: Value,
}

/// A part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Micro {
    /// Reads a register.
    Read {
        /// Which.
        key: String,
        /// What it held; absent if that is not known.
        value: Option<Value>,
    },
    /// Writes a register.
    Write {
        /// Which.
        key: String,
        /// What.
        value: Value,
    },
}

/// A transaction: its parts, in order; all take effect at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Txn(pub Vec<Micro>);

impl Model for Registers {
    type State = BTreeMap<String, Value>;
    type Op = Txn;

    fn start(&self) -> Self::State {
        self.start.clone()
    }

    fn step(&self, state: &Self::State, Txn(op): &Txn) -> Result<Self::State, String> {
        let mut next = state.clone();
        for part in op {
            match part {
                Micro::Read { value: None, .. } => {}
                Micro::Read { key, value: Some(value) } => {
                    let held = next.get(key).unwrap_or(&self.others);
                    if held != value {
                        return Err(format!("cannot read {value} from {key}, it holds {held}"));
                    }
                }
                Micro::Write { key, value } => {
                    next.insert(key.clone(), value.clone());
                }
            }
        }
        Ok(next)
    }

    fn effect(&self, Txn(op): &Txn) -> Effect {
        if op.iter().all(|part| matches!(part, Micro::Read { .. })) { Effect::ReadOnly } else { Effect::Any }
    }
}

impl std::fmt::Display for Txn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            match part {
                Micro::Read { key, value: Some(value) } => write!(f, "read {key} = {value}")?,
                Micro::Read { key, value: None } => write!(f, "read {key}")?,
                Micro::Write { key, value } => write!(f, "write {key} = {value}")?,
            }
        }
        Ok(())
    }
}
