//! Objects with versions, as the lease workload records them.

use super::clients::Shape;
use super::history::{Kind, Plan};
use super::lines::{Lines, Told, map, number};
use super::versioned::{self, Anomaly, compare_and_set, plant};
use crate::engine::versioned::{Act, Operation, Version, WriteId};
use crate::history::{OpType, Value};

/// Answers lost, of a thousand.
const LOST: u64 = 20;

/// One object a key; the anomaly is in the first.
pub(super) fn lines(plan: &Plan, anomaly: Anomaly) -> Option<Lines> {
    let mut lines = Lines::default();
    for (key, seed, operations) in plan.shares() {
        let mut ops = compare_and_set(Shape { operations, clients: plan.clients, lost: LOST, seed });
        let kind = match plan.kind {
            Kind::Valid => None,
            Kind::Broken => Some(versioned::Kind::Broken),
            Kind::NearMiss => Some(versioned::Kind::NearMiss),
        };
        let mut guilty = Vec::new();
        if let (0, Some(kind)) = (key, kind) {
            guilty = plant(&mut ops, anomaly, plan.at, kind)?.guilty;
        }
        let told = ops.iter().enumerate().map(|(i, op)| told(op, guilty.contains(&i)));
        lines.operations(&format!("lab/lease-{key}"), told.collect());
    }
    Some(lines)
}

/// One operation.
fn told(op: &Operation, guilty: bool) -> Told {
    let (f, asked, ended, answer, error) = words(op);
    Told { inv: op.inv, ret: op.ret, f, asked, ended, answer, error, client: None, guilty }
}

type Words = (&'static str, Value, OpType, Value, Option<&'static str>);

/// Function, argument, outcome, answer and error.
fn words(op: &Operation) -> Words {
    use OpType::{Fail, Info, Ok};
    let id = || op.id.map(|id: WriteId| Value::Str(format!("w{id}")));
    let version = |v: Version| Some(number(v.get()));
    let made = |v: Version| map([("version", version(v)), ("id", id())]);
    let bare = || map([("id", id())]);
    let over = |e: Version| map([("expected", version(e)), ("id", id())]);
    match op.act {
        Act::Read { version: v } => ("read", Value::Nil, Ok, made(v), None),
        Act::Absent if op.id.is_none() => ("read", Value::Nil, Ok, Value::Nil, None),
        Act::Write { version: v } => ("write", bare(), Ok, made(v), None),
        Act::Cas { expected, version: v } => {
            let answer = map([("expected", version(expected)), ("version", version(v)), ("id", id())]);
            ("cas", over(expected), Ok, answer, None)
        }
        Act::Create { version: v } => ("create", bare(), Ok, made(v), None),
        Act::Delete { expected, version: v } => {
            let asked = map([("expected", expected.and_then(version))]);
            ("delete", asked, Ok, map([("version", v.and_then(version))]), None)
        }
        Act::Conflict { expected } => ("cas", over(expected), Fail, over(expected), Some("conflict")),
        Act::Absent => ("cas", bare(), Fail, bare(), Some("absent")),
        Act::Exists => ("create", bare(), Fail, bare(), Some("exists")),
        Act::Failed => ("write", bare(), Fail, bare(), Some("not-sent")),
        Act::MaybeWrite => ("write", bare(), Info, bare(), Some("late")),
        Act::MaybeCas { expected } => ("cas", over(expected), Info, over(expected), Some("late")),
        Act::MaybeCreate => ("create", bare(), Info, bare(), Some("late")),
        Act::MaybeDelete { expected } => {
            let asked = map([("expected", expected.and_then(version))]);
            ("delete", asked.clone(), Info, asked, Some("late"))
        }
    }
}
