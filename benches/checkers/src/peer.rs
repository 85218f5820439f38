//! The same histories in the peer's terms: Porcupine, ported to Rust. It knows no operation of unknown outcome, so one
//! returns at the end of time with an answer that is always right, as its own loaders have it.

use std::time::Duration;

use porcupine_rs::{CheckResult, Model, Operation};
use rackrift_checkers::engine::NEVER;
use rackrift_checkers::engine::search::Call;
use rackrift_checkers::history::Value;
use rackrift_checkers::model::{RegisterOp, TextOp};

/// How long the peer may take; beyond that it counts as "over".
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct Register;

/// Operations with the values numbered from 0, and whether the outcome is known.
type NumberedOp = (RegisterOp<u32>, bool);

impl Model for Register {
    type State = u32;
    type Op = NumberedOp;
    type Metadata = ();

    fn init() -> u32 {
        0
    }

    fn step(state: &u32, (op, known): &NumberedOp) -> (bool, u32) {
        match *op {
            RegisterOp::ReadAny => (true, *state),
            RegisterOp::Read(value) => (value == *state, *state),
            RegisterOp::Write(value) => (true, value),
            RegisterOp::Cas { from, to } if from == *state => (true, to),
            RegisterOp::Cas { .. } => (!known, *state),
            RegisterOp::CasRefused { from } => (from != *state, *state),
        }
    }
}

#[derive(Clone)]
struct Text;

impl Model for Text {
    type State = String;
    type Op = (String, TextOp);
    type Metadata = ();

    fn partition_operations(history: &[Operation<Self>]) -> Vec<Vec<Operation<Self>>> {
        let mut parts = std::collections::BTreeMap::<&str, Vec<Operation<Self>>>::new();
        for operation in history {
            parts.entry(&operation.op.0).or_default().push(operation.clone());
        }
        parts.into_values().collect()
    }

    fn init() -> String {
        String::new()
    }

    fn step(state: &String, (_, op): &(String, TextOp)) -> (bool, String) {
        match op {
            TextOp::Get(text) => (text == state, state.clone()),
            TextOp::Put(text) => (true, text.clone()),
            TextOp::Append(more) => (true, format!("{state}{more}")),
        }
    }
}

/// How long it took, and whether it is linearizable; none: undecided.
pub type Answer = (Duration, Option<bool>);

fn timed<M: Model>(history: &[Operation<M>]) -> Answer {
    let start = std::time::Instant::now();
    let answer = porcupine_rs::check_operations_timeout(history, LIMIT);
    let answer = match answer {
        CheckResult::Ok => Some(true),
        CheckResult::Illegal => Some(false),
        CheckResult::Unknown => None,
    };
    (start.elapsed(), answer)
}

fn operations<M: Model, O>(calls: &[Call<O>], of: impl Fn(&Call<O>) -> M::Op) -> Vec<Operation<M>> {
    let end = calls.iter().flat_map(|c| [c.inv, c.ret]).filter(|&t| t != NEVER).max().unwrap_or(0) + 1;
    calls
        .iter()
        .map(|call| Operation {
            client_id: None,
            call_time: call.inv as i64,
            return_time: call.ret.min(end) as i64,
            op: of(call),
            metadata: None,
        })
        .collect()
}

/// A register that starts at 0.
pub fn numbers(calls: &[Call<RegisterOp<u32>>]) -> Answer {
    timed::<Register>(&operations(calls, |call| (call.op.clone(), call.ret != NEVER)))
}

/// A register of small numbers that starts at nil.
pub fn values(calls: &[Call<RegisterOp<Value>>], start: &Value) -> Answer {
    let number = |value: &Value| match value {
        value if value == start => 0,
        Value::Int(n) => *n as u32 + 1,
        _ => u32::MAX,
    };
    let of = |op: &RegisterOp<Value>| match op {
        RegisterOp::Read(v) => RegisterOp::Read(number(v)),
        RegisterOp::ReadAny => RegisterOp::ReadAny,
        RegisterOp::Write(v) => RegisterOp::Write(number(v)),
        RegisterOp::Cas { from, to } => RegisterOp::Cas { from: number(from), to: number(to) },
        RegisterOp::CasRefused { from } => RegisterOp::CasRefused { from: number(from) },
    };
    timed::<Register>(&operations(calls, |call| (of(&call.op), call.ret != NEVER)))
}

/// Texts by key.
pub fn texts(calls: &[Call<(String, TextOp)>]) -> Answer {
    timed::<Text>(&operations(calls, |call| call.op.clone()))
}
