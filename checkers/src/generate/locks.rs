//! Mutexes: clients acquire and release, and are refused while another holds it.

use std::cell::RefCell;
use std::collections::HashMap;

use super::clients::{Done, Shape, TICK, work};
use super::history::{Kind, Plan};
use super::lines::{Lines, Told};
use super::places;
use crate::history::{Nanos, OpType, Value};

/// What a client calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Acquire,
    Release,
}

/// One mutex a key; two hold the first one at once. Near miss: the second was told so in the very moment in which
/// the first began to release it.
pub(super) fn two_holders(plan: &Plan) -> Option<Lines> {
    let mut lines = Lines::default();
    for (key, seed, operations) in plan.shares() {
        let mut told = valid(Shape { operations, clients: plan.clients, lost: 0, seed });
        if key == 0 && plan.kind != Kind::Valid {
            plant(&mut told, plan)?;
        }
        lines.operations(&format!("lab/mutex-{key}"), told);
    }
    Some(lines)
}

fn valid(shape: Shape) -> Vec<Told> {
    let holds = RefCell::new(vec![false; shape.clients.max(1)]);
    let mut held = false;
    let mut whose = Vec::with_capacity(shape.operations);
    let done = work(
        shape,
        |_, client| {
            whose.push(client as u64);
            if holds.borrow()[client] { Call::Release } else { Call::Acquire }
        },
        |client, call| {
            let given = *call == Call::Release || !held;
            if given {
                held = *call == Call::Acquire;
                holds.borrow_mut()[client] = held;
            }
            given
        },
    );
    done.into_iter().zip(whose).map(|(done, client)| told(&done, client)).collect()
}

fn told(done: &Done<Call, bool>, client: u64) -> Told {
    let given = done.answer == Some(true);
    let f = if done.ask == Call::Acquire { "acquire" } else { "release" };
    let ended = if given { OpType::Ok } else { OpType::Fail };
    call(f, (done.inv, done.ret), client, ended)
}

fn call(f: &'static str, (inv, ret): (Nanos, Nanos), client: u64, ended: OpType) -> Told {
    Told {
        inv,
        ret,
        f,
        asked: Value::Nil,
        ended,
        answer: Value::Nil,
        error: (ended == OpType::Fail).then_some("held"),
        client: Some(client),
        guilty: false,
    }
}

/// A section of a client that nobody else is, which begins while another one is held.
fn plant(ops: &mut Vec<Told>, plan: &Plan) -> Option<()> {
    let mut sections: Vec<(usize, Nanos, Nanos)> = Vec::new();
    // By client: its section that is not released yet.
    let mut open: HashMap<Option<u64>, usize> = HashMap::new();
    for (i, op) in ops.iter().enumerate().filter(|(_, op)| op.ended == OpType::Ok) {
        if op.f == "acquire" {
            open.insert(op.client, i);
        } else if let Some(acquire) = open.remove(&op.client) {
            sections.push((acquire, ops[acquire].ret, op.inv));
        }
    }
    let (acquire, from, until) = sections[places::from(plan.at, sections.len()).next()?];
    let told = from + (until - from) / 2 + TICK / 4;
    let near = plan.kind == Kind::NearMiss;
    let client = ops.iter().filter_map(|op| op.client).max()? + 1;
    let taken = (told - TICK / 4, if near { until } else { told });
    ops[acquire].guilty = true;
    ops.push(Told { guilty: true, ..call("acquire", taken, client, OpType::Ok) });
    ops.push(call("release", (until + TICK / 4, until + TICK / 2), client, OpType::Ok));
    Some(())
}
