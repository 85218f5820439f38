//! One small history of each anomaly, as a file, so that anybody can see what it looks like and what is said of it.

use super::clients::Shape;
use super::versioned::{Anomaly, Kind, compare_and_set, plant};
use crate::engine::NEVER;
use crate::engine::versioned::{Act, Operation, WriteId};
use crate::history::{Entry, Header, Op, OpType, Value, jsonl};

/// Operations of an example: few enough to be read.
const OPERATIONS: usize = 24;
/// Clients of an example.
const CLIENTS: usize = 3;
/// How many seeds after the one given are tried: not every short history has a place for every anomaly.
const TRIES: u64 = 64;

/// A history in which everything is right.
pub const VALID: &str = "valid";

/// The names of all examples.
#[must_use]
pub fn names() -> Vec<&'static str> {
    std::iter::once(VALID).chain(Anomaly::ALL.map(Anomaly::name)).collect()
}

/// The example of this name as JSON Lines, nothing if there is none.
#[must_use]
pub fn example(name: &str, seed: u64) -> Option<Vec<u8>> {
    let anomaly = Anomaly::ALL.into_iter().find(|a| a.name() == name);
    if anomaly.is_none() && name != VALID {
        return None;
    }
    let header = Header {
        rackrift_history: jsonl::FORMAT,
        origin: "1970-01-01T00:00:00Z".into(),
        run: name.to_owned(),
    };
    (seed..seed.saturating_add(TRIES)).find_map(|seed| {
        let mut ops = compare_and_set(Shape { operations: OPERATIONS, clients: CLIENTS, lost: 20, seed });
        if let Some(anomaly) = anomaly {
            plant(&mut ops, anomaly, 0.6, Kind::Broken)?;
        }
        let entries: Vec<Entry> = entries(&ops).into_iter().map(Entry::Op).collect();
        Some(jsonl::write(&header, &entries))
    })
}

/// Invocations and completions, by clients that do one thing at a time.
fn entries(ops: &[Operation]) -> Vec<Op> {
    let mut by_start: Vec<&Operation> = ops.iter().collect();
    by_start.sort_by_key(|op| op.inv);
    // By process: when it is free again.
    let mut busy: Vec<u64> = Vec::new();
    let end = ops.iter().flat_map(|op| [op.inv, op.ret]).filter(|&t| t < NEVER - 1).max().unwrap_or(0) + 1000;
    let mut lines: Vec<(u64, bool, Op)> = Vec::new();
    for op in by_start {
        let free = busy.iter().position(|&until| until < op.inv);
        let process = free.unwrap_or_else(|| {
            busy.push(0);
            busy.len() - 1
        });
        let ret = if op.ret >= NEVER - 1 { end } else { op.ret };
        busy[process] = if op.ret == NEVER { NEVER } else { ret };
        let (f, asked, ended, answer, error) = words(op);
        let line = |time, kind, value, error: Option<&str>| Op {
            index: 0,
            time,
            process: process as u64,
            kind,
            f: f.to_owned(),
            key: Some("lab/lease-0".to_owned()),
            client: Some(format!("c{process}")),
            value,
            error: error.map(str::to_owned),
        };
        lines.push((op.inv, false, line(op.inv, OpType::Invoke, asked, None)));
        lines.push((ret, true, line(ret, ended, answer, error)));
    }
    lines.sort_by_key(|(time, ends, _)| (*time, *ends));
    (0..).zip(lines).map(|(index, (.., op))| Op { index, ..op }).collect()
}

type Words = (&'static str, Value, OpType, Value, Option<&'static str>);

/// Function, argument, outcome, answer and error, as the lease workload records them.
fn words(op: &Operation) -> Words {
    use OpType::{Fail, Info, Ok};
    let map = |fields: &[(&str, Option<u64>)]| {
        let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let mut pairs: Vec<(String, Value)> =
            fields.iter().filter_map(|(name, n)| Some(((*name).to_owned(), number((*n)?)))).collect();
        pairs.extend(op.id.map(|id: WriteId| ("id".to_owned(), Value::Str(format!("w{id}")))));
        Value::Map(pairs)
    };
    let version = |v: crate::engine::versioned::Version| Some(v.get());
    match op.act {
        Act::Read { version: v } => ("read", Value::Nil, Ok, map(&[("version", version(v))]), None),
        Act::Absent if op.id.is_none() => ("read", Value::Nil, Ok, Value::Nil, None),
        Act::Write { version: v } => ("write", map(&[]), Ok, map(&[("version", version(v))]), None),
        Act::Cas { expected, version: v } => {
            let asked = ("expected", version(expected));
            ("cas", map(&[asked]), Ok, map(&[asked, ("version", version(v))]), None)
        }
        Act::Create { version: v } => ("create", map(&[]), Ok, map(&[("version", version(v))]), None),
        Act::Delete { expected, version: v } => {
            let asked = ("expected", expected.and_then(version));
            ("delete", map(&[asked]), Ok, map(&[asked, ("version", v.and_then(version))]), None)
        }
        Act::Conflict { expected } => {
            let asked = map(&[("expected", version(expected))]);
            ("cas", asked.clone(), Fail, asked, Some("conflict"))
        }
        Act::Absent => ("cas", map(&[]), Fail, map(&[]), Some("absent")),
        Act::Exists => ("create", map(&[]), Fail, map(&[]), Some("exists")),
        Act::Failed => ("write", map(&[]), Fail, map(&[]), Some("not-sent")),
        Act::MaybeWrite => ("write", map(&[]), Info, map(&[]), Some("late")),
        Act::MaybeCas { expected } => {
            let asked = map(&[("expected", version(expected))]);
            ("cas", asked.clone(), Info, asked, Some("late"))
        }
        Act::MaybeCreate => ("create", map(&[]), Info, map(&[]), Some("late")),
        Act::MaybeDelete { expected } => {
            let asked = map(&[("expected", expected.and_then(version))]);
            ("delete", asked.clone(), Info, asked, Some("late"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lease::{Answer, check_leases};

    #[test]
    fn each_example_is_found_to_be_what_its_name_says() {
        let mut said = String::new();
        for name in names() {
            for seed in [1, 2, 3] {
                let history = jsonl::read(&example(name, seed).unwrap()).unwrap();
                let checks = check_leases(&history.entries);
                assert_eq!(checks.len(), 1);
                match &checks[0].answer {
                    Answer::Linearizable => assert_eq!(name, VALID, "seed {seed}"),
                    Answer::Violation(w) => {
                        assert_eq!(w.rule, name, "seed {seed}");
                        if seed == 1 {
                            said.push_str(&format!("{}\n", w.sentence));
                        }
                    }
                    Answer::Undecided(why) => panic!("{name} {seed}: {why}"),
                }
            }
        }
        assert_eq!(example("no-such-thing", 1), None);
        insta::assert_snapshot!(said);
    }
}
