//! From the operations of a history to those of a model.
//!
//! # Invariants
//! * An operation that says nothing is left out: a read without an answer, one that certainly failed (unless its
//!   failure tells of the state), a function that the model does not know.
//! * What is left in keeps its position in the list given, so that a witness finds its line.

use std::collections::BTreeSet;

use super::{LockOp, Micro, QueueOp, RegisterOp, SetOp, TextOp, Txn};
use crate::engine::search::Call;
use crate::history::calls::Paired;
use crate::history::{OpType, Value};

/// What a refused compare-and-set or lock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// That the value was another one at some moment (Porcupine).
    Tells,
    /// Nothing: operations that failed are left out (Knossos).
    TellsNothing,
}

/// The operations of a model, each with the position of the one it comes from.
pub type Read<O> = (Vec<usize>, Vec<Call<O>>);

fn read<O>(calls: &[Paired<'_>], of: impl Fn(&Paired<'_>, OpType, &Value) -> Option<O>) -> Read<O> {
    let mut read = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
    for (at, call) in calls.iter().enumerate() {
        let outcome = call.outcome();
        let value = match call.last {
            Some(last) if outcome == OpType::Ok => &last.value,
            _ => &call.first.value,
        };
        if let Some(op) = of(call, outcome, value) {
            read.0.push(at);
            read.1.push(Call { inv: call.inv, ret: call.ret, op });
        }
    }
    read
}

/// A register: `read`, `write`, `cas` with `[from to]`. If `nil_is_any`, a read of nil says nothing, as in Knossos.
#[must_use]
pub fn register(calls: &[Paired<'_>], refused: Refused, nil_is_any: bool) -> Read<RegisterOp<Value>> {
    read(calls, |call, outcome, value| match (call.first.f.as_str(), outcome) {
        ("read", OpType::Ok) if nil_is_any && *value == Value::Nil => Some(RegisterOp::ReadAny),
        ("read", OpType::Ok) => Some(RegisterOp::Read(value.clone())),
        ("write", OpType::Ok | OpType::Info) => Some(RegisterOp::Write(call.first.value.clone())),
        ("cas", outcome) => {
            let Value::List(pair) = &call.first.value else { return None };
            let [from, to] = pair.as_slice() else { return None };
            match (outcome, refused) {
                (OpType::Ok | OpType::Info, _) => {
                    Some(RegisterOp::Cas { from: from.clone(), to: to.clone() })
                }
                (OpType::Fail, Refused::Tells) => Some(RegisterOp::CasRefused { from: from.clone() }),
                _ => None,
            }
        }
        _ => None,
    })
}

/// One key of a key-value store: `get`, `put`, `append`.
#[must_use]
pub fn text(calls: &[Paired<'_>]) -> Read<TextOp> {
    let word = |value: &Value| match value {
        Value::Str(text) => text.clone(),
        Value::Nil => String::new(),
        other => other.to_string(),
    };
    read(calls, |call, outcome, value| match (call.first.f.as_str(), outcome) {
        ("get", OpType::Ok) => Some(TextOp::Get(word(value))),
        ("put", OpType::Ok | OpType::Info) => Some(TextOp::Put(word(&call.first.value))),
        ("append", OpType::Ok | OpType::Info) => Some(TextOp::Append(word(&call.first.value))),
        _ => None,
    })
}

/// Several registers: `txn` with parts `[read k v]` and `[write k v]`, in which nil read says nothing.
#[must_use]
pub fn registers(calls: &[Paired<'_>]) -> Read<Txn> {
    read(calls, |call, outcome, value| {
        if call.first.f != "txn" || outcome == OpType::Fail {
            return None;
        }
        let Value::List(parts) = value else { return None };
        parts.iter().map(micro).collect::<Option<_>>().map(Txn)
    })
}

fn micro(part: &Value) -> Option<Micro> {
    let Value::List(words) = part else { return None };
    let [f, key, value] = words.as_slice() else { return None };
    let key = match key {
        Value::Str(key) => key.clone(),
        other => other.to_string(),
    };
    match f.as_str()? {
        "read" | "r" => Some(Micro::Read { key, value: (*value != Value::Nil).then(|| value.clone()) }),
        "write" | "w" => Some(Micro::Write { key, value: value.clone() }),
        _ => None,
    }
}

/// A set: `add`, `remove`, and `read` of all elements.
#[must_use]
pub fn set(calls: &[Paired<'_>]) -> Read<SetOp> {
    read(calls, |call, outcome, value| match (call.first.f.as_str(), outcome) {
        ("add", OpType::Ok | OpType::Info) => Some(SetOp::Add(call.first.value.clone())),
        ("remove", OpType::Ok | OpType::Info) => Some(SetOp::Remove(call.first.value.clone())),
        ("read", OpType::Ok) => match value {
            Value::List(all) => Some(SetOp::Read(all.iter().cloned().collect::<BTreeSet<_>>())),
            _ => None,
        },
        _ => None,
    })
}

/// A queue: `enqueue`, `dequeue`; a dequeue that failed found the queue empty.
#[must_use]
pub fn queue(calls: &[Paired<'_>]) -> Read<QueueOp> {
    read(calls, |call, outcome, value| match (call.first.f.as_str(), outcome) {
        ("enqueue", OpType::Ok | OpType::Info) => Some(QueueOp::Enqueue(call.first.value.clone())),
        ("dequeue", OpType::Ok) if *value == Value::Nil => Some(QueueOp::Empty),
        ("dequeue", OpType::Ok) => Some(QueueOp::Dequeue(value.clone())),
        ("dequeue", OpType::Fail) => Some(QueueOp::Empty),
        ("dequeue", OpType::Info) => Some(QueueOp::DequeueUnknown),
        _ => None,
    })
}

/// A mutex: `acquire`, `release`; an acquire that failed was told that somebody holds it, if `refused` tells.
#[must_use]
pub fn lock(calls: &[Paired<'_>], refused: Refused) -> Read<LockOp> {
    read(calls, |call, outcome, _| {
        let process = call.first.process;
        match (call.first.f.as_str(), outcome) {
            ("acquire", OpType::Ok | OpType::Info) => Some(LockOp::Acquire(process)),
            ("acquire", OpType::Fail) if refused == Refused::Tells => Some(LockOp::Held(process)),
            ("release", OpType::Ok | OpType::Info) => Some(LockOp::Release(process)),
            _ => None,
        }
    })
}
