//! From the lines of a history to the operations on each key.

use std::collections::{BTreeMap, HashMap};

use super::Counts;
use crate::engine::NEVER;
use crate::engine::versioned::{Act, Operation, Start, Version, World, WriteId, Writers};
use crate::history::{Entry, LeaseSeen, Op, OpType, Value};

/// The operations on one key, and where each stands.
#[derive(Debug, Default)]
pub(super) struct Key<'a> {
    pub(super) ops: Vec<Operation>,
    /// Beside each of `ops`.
    pub(super) told: Vec<Told<'a>>,
    pub(super) counts: Counts,
    marks: Marks<'a>,
}

/// The lines behind an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Told<'a> {
    /// A client's operation.
    Client {
        /// Its invocation, or, if that is missing, its completion.
        first: &'a Op,
        /// Its completion.
        last: Option<&'a Op>,
        /// The line of its end, or of its invocation if it has none.
        line: u64,
    },
    /// An observer's line.
    Observer {
        /// What it showed.
        seen: &'a LeaseSeen,
        /// Its line.
        line: u64,
    },
}

/// Numbers for the marks that writes leave.
#[derive(Debug, Default)]
struct Marks<'a> {
    numbers: HashMap<(&'a str, Option<&'a str>), WriteId>,
    holders: HashMap<&'a str, &'a str>,
}

impl<'a> Marks<'a> {
    /// The number of the mark that a value shows.
    fn of(&mut self, value: &'a Value) -> Option<WriteId> {
        let id = value.get("id")?.as_str()?;
        // Another holder than the one written makes it another mark; no holder at all claims nothing.
        let other = value
            .get("holder")
            .and_then(Value::as_str)
            .filter(|holder| self.holders.get(id).is_some_and(|written| written != holder));
        let next = u32::try_from(self.numbers.len() + 1).ok().and_then(WriteId::new)?;
        Some(*self.numbers.entry((id, other)).or_insert(next))
    }

    /// Notes what a write writes.
    fn write(&mut self, value: &'a Value) {
        let id = value.get("id").and_then(Value::as_str);
        if let (Some(id), Some(holder)) = (id, value.get("holder").and_then(Value::as_str)) {
            self.holders.entry(id).or_insert(holder);
        }
    }
}

/// All keys with operations of clients.
pub(super) fn by_key(entries: &[Entry]) -> BTreeMap<&str, Key<'_>> {
    let mut keys: BTreeMap<&str, Key<'_>> = BTreeMap::new();
    for entry in entries {
        let Entry::Op(op) = entry else { continue };
        let (OpType::Invoke, Some(key)) = (op.kind, &op.key) else { continue };
        keys.entry(key).or_default().marks.write(&op.value);
    }
    let mut open: HashMap<u64, (&Op, u64)> = HashMap::new();
    for (entry, line) in entries.iter().zip(2u64..) {
        match entry {
            Entry::Op(op) if op.kind == OpType::Invoke => {
                // A process that invokes again never learned what became of its last operation.
                if let Some((before, line)) = open.insert(op.process, (op, line)) {
                    add(&mut keys, before, None, line);
                }
            }
            Entry::Op(op) => {
                let first = open.remove(&op.process).map_or(op, |(first, _)| first);
                add(&mut keys, first, Some(op), line);
            }
            Entry::Lease(seen) if !seen.deleted => {
                if let Some(key) = keys.get_mut(seen.lease.as_str()) {
                    key.observe(seen, line);
                }
            }
            _ => {}
        }
    }
    let mut rest: Vec<(&Op, u64)> = open.into_values().collect();
    rest.sort_by_key(|(_, line)| *line);
    for (op, line) in rest {
        add(&mut keys, op, None, line);
    }
    keys
}

fn add<'a>(keys: &mut BTreeMap<&'a str, Key<'a>>, first: &'a Op, last: Option<&'a Op>, line: u64) {
    if let Some(name) = &first.key {
        keys.entry(name).or_default().add(first, last, line);
    }
}

impl<'a> Key<'a> {
    fn add(&mut self, first: &'a Op, last: Option<&'a Op>, line: u64) {
        self.counts.operations += 1;
        let Some(act) = act(first, last) else { return };
        self.counts.count(act);
        let happened_or_refused = last.is_some_and(|last| matches!(last.kind, OpType::Ok | OpType::Fail));
        let shown = match last {
            Some(last) if last.kind == OpType::Ok => &last.value,
            _ => &first.value,
        };
        let id = self.marks.of(shown).or_else(|| self.marks.of(&first.value));
        self.ops.push(Operation {
            // A completion without invocation may have begun at any time.
            inv: if first.kind == OpType::Invoke { first.time } else { 0 },
            ret: last.filter(|_| happened_or_refused).map_or(NEVER, |last| last.time),
            act,
            id,
        });
        self.told.push(Told::Client { first, last, line });
    }

    fn observe(&mut self, seen: &'a LeaseSeen, line: u64) {
        let Some(version) = Version::new(seen.version) else { return };
        self.counts.observed += 1;
        self.ops.push(Operation { inv: 0, ret: seen.time, act: Act::Read { version }, id: None });
        self.told.push(Told::Observer { seen, line });
    }

    /// What may have been there before the first operation.
    pub(super) fn world(&self) -> World {
        let informs = |op: &&Operation| {
            matches!(
                op.act,
                Act::Absent
                    | Act::Read { .. }
                    | Act::Cas { .. }
                    | Act::Create { .. }
                    | Act::Write { .. }
                    | Act::Delete { .. }
            )
        };
        let first = self.ops.iter().filter(informs).min_by_key(|op| op.ret);
        let start = match first.map(|op| op.act) {
            Some(Act::Absent | Act::Create { .. }) => Start::Absent,
            _ => Start::Unknown,
        };
        World { start, writers: Writers::Recorded }
    }
}

/// What an operation did; nothing for one that tells nothing: a read that failed, an unknown kind of operation.
fn act(first: &Op, last: Option<&Op>) -> Option<Act> {
    let kind = last.map_or(OpType::Info, |last| last.kind);
    let value = last.map_or(&first.value, |last| &last.value);
    let expected = version(&first.value, "expected").or_else(|| version(value, "expected"));
    let made = version(value, "version");
    let word = last.and_then(|last| last.error.as_deref()).map_or("", error_word);
    match (first.f.as_str(), kind) {
        ("read", OpType::Ok) if *value == Value::Nil => Some(Act::Absent),
        ("read", OpType::Ok) => made.map(|version| Act::Read { version }),
        ("read", _) => None,
        ("create", OpType::Ok) => Some(made.map_or(Act::MaybeCreate, |version| Act::Create { version })),
        ("create", OpType::Fail) if word == "exists" => Some(Act::Exists),
        ("create", OpType::Info) => Some(Act::MaybeCreate),
        ("write", OpType::Ok) => Some(made.map_or(Act::MaybeWrite, |version| Act::Write { version })),
        ("write", OpType::Info) => Some(Act::MaybeWrite),
        ("cas", OpType::Ok) => match (expected, made) {
            (Some(expected), Some(version)) => Some(Act::Cas { expected, version }),
            (Some(expected), None) => Some(Act::MaybeCas { expected }),
            (None, Some(version)) => Some(Act::Write { version }),
            (None, None) => Some(Act::MaybeWrite),
        },
        ("cas", OpType::Info) => {
            Some(expected.map_or(Act::MaybeWrite, |expected| Act::MaybeCas { expected }))
        }
        ("delete", OpType::Ok) => Some(Act::Delete { expected, version: made }),
        ("delete", OpType::Info) => Some(Act::MaybeDelete { expected }),
        ("cas" | "delete", OpType::Fail) => Some(match (word, expected) {
            ("conflict", Some(expected)) => Act::Conflict { expected },
            ("absent", _) => Act::Absent,
            _ => Act::Failed,
        }),
        ("create" | "write", OpType::Fail) => Some(Act::Failed),
        _ => None,
    }
}

/// A version in a value; 0 is none.
fn version(value: &Value, name: &str) -> Option<Version> {
    value.get(name).and_then(Value::as_int).and_then(|n| u64::try_from(n).ok()).and_then(Version::new)
}

/// The word of the error table that an error begins with.
fn error_word(error: &str) -> &str {
    error.split([':', ' ']).next().unwrap_or(error)
}
