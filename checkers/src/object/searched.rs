//! One key, by search.

use std::collections::BTreeMap;

use super::words::{Told, exhausted, stuck};
use super::{Found, Kind};
use crate::engine::mutex;
use crate::engine::search::{Call, Limits, Model, Outcome, check, verify};
use crate::history::Value;
use crate::history::calls::Paired;
use crate::model::reading::{self, Read, Refused};
use crate::model::{Lock, Queue, Register, Registers, Set, Text};
use crate::verdict::Witness;

/// How the operations on a key are read.
pub(super) struct Reading<'a> {
    pub(super) kind: Kind,
    pub(super) start: Option<&'a Value>,
    pub(super) refused: Refused,
    pub(super) nil_is_any: bool,
    pub(super) limits: Limits<'a>,
    pub(super) lines: &'a [u32],
}

impl Reading<'_> {
    pub(super) fn check(&self, key: &str, calls: &[Paired<'_>]) -> Found {
        match self.kind {
            Kind::Register | Kind::Versioned => self.from(|start| {
                let model = Register { start: start.clone() };
                self.search(key, calls, &model, reading::register(calls, self.refused, self.nil_is_any))
            }),
            Kind::Registers => self.from(|start| {
                let model = match start {
                    Value::Map(pairs) => {
                        Registers { start: pairs.iter().cloned().collect(), others: Value::Nil }
                    }
                    other => Registers { start: BTreeMap::new(), others: other.clone() },
                };
                self.search(key, calls, &model, reading::registers(calls))
            }),
            Kind::Text => self.search(key, calls, &Text, reading::text(calls)),
            Kind::Set => self.search(key, calls, &Set, reading::set(calls)),
            Kind::Queue => self.search(key, calls, &Queue, reading::queue(calls)),
            Kind::Lock => {
                let (at, ops) = reading::lock(calls, self.refused);
                match mutex::check(&ops) {
                    mutex::Outcome::Linearizable => Found::Linearizable,
                    mutex::Outcome::Violation(v) => {
                        let told = Told { key, calls, at: &at, lines: self.lines };
                        Found::Violation(Box::new(told.mutex(&v)))
                    }
                    mutex::Outcome::OutOfClass => self.search(key, calls, &Lock, (at, ops)),
                }
            }
        }
    }

    /// From the value given, or from those that tools start with: the first answer counts, unless another is a yes.
    fn from(&self, search: impl Fn(&Value) -> Found) -> Found {
        match self.start {
            Some(start) => search(start),
            None => match search(&Value::Nil) {
                no @ Found::Violation(_) => match search(&Value::Int(0)) {
                    Found::Linearizable => Found::Linearizable,
                    _ => no,
                },
                found => found,
            },
        }
    }

    fn search<M: Model>(&self, key: &str, calls: &[Paired<'_>], model: &M, read: Read<M::Op>) -> Found
    where
        M::Op: std::fmt::Display,
    {
        let (at, ops): (Vec<usize>, Vec<Call<M::Op>>) = read;
        match check(model, &ops, self.limits) {
            // The order is replayed by other code: a yes rests on it, not on the search that found it.
            Outcome::Linearizable(order) => match verify(model, &ops, &order) {
                Ok(()) => Found::Linearizable,
                Err(e) => Found::Undecided(format!("Undecided: the order found proves nothing: {e}.")),
            },
            Outcome::Violation(found) => {
                let told = Told { key, calls, at: &at, lines: self.lines };
                let witness: Witness = stuck(&told, model, &ops, &found);
                Found::Violation(Box::new(witness))
            }
            Outcome::Undecided(found) => Found::Undecided(exhausted(key, &found)),
        }
    }
}
