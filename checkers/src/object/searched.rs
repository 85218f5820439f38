//! One key, by search.

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
    pub(super) start: &'a Value,
    pub(super) refused: Refused,
    pub(super) nil_is_any: bool,
    pub(super) limits: Limits<'a>,
    pub(super) lines: &'a [u32],
}

impl Reading<'_> {
    pub(super) fn check(&self, key: &str, calls: &[Paired<'_>]) -> Found {
        match self.kind {
            Kind::Register | Kind::Versioned => {
                let start = Register { start: self.start.clone() };
                self.search(key, calls, &start, reading::register(calls, self.refused, self.nil_is_any))
            }
            Kind::Registers => {
                let start = match self.start {
                    Value::Map(pairs) => pairs.iter().cloned().collect(),
                    _ => Default::default(),
                };
                self.search(key, calls, &Registers { start }, reading::registers(calls))
            }
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
