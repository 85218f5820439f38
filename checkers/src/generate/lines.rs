//! From what clients did to the lines of a history, with those marked that prove what was planted.

use crate::engine::NEVER;
use crate::history::{Entry, Nanos, Op, OpType, Value};

/// An operation as a client records it.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// Invoked, ns.
    pub(super) inv: Nanos,
    /// Returned, ns; [`NEVER`] if the answer was lost.
    pub(super) ret: Nanos,
    /// What was called.
    pub(super) f: &'static str,
    /// What was asked.
    pub(super) asked: Value,
    /// What became of it.
    pub(super) ended: OpType,
    /// What was answered.
    pub(super) answer: Value,
    /// Why it failed, or is unknown.
    pub(super) error: Option<&'static str>,
    /// Whose it is; nothing: of any client that is free then.
    pub(super) client: Option<u64>,
    /// Whether it proves what was planted.
    pub(super) guilty: bool,
}

/// The lines of a history, in any order until [`Lines::sorted`].
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// Processes so far.
    processes: u64,
}

#[derive(Debug)]
struct Line {
    time: Nanos,
    ends: bool,
    entry: Entry,
    guilty: bool,
}

impl Lines {
    /// Adds the operations on a key, by clients of its own. The line that proves something is that of an operation's
    /// end.
    pub(super) fn operations(&mut self, key: &str, mut ops: Vec<Told>) {
        ops.sort_by_key(|op| op.inv);
        let end =
            ops.iter().flat_map(|op| [op.inv, op.ret]).filter(|&t| t != NEVER).max().unwrap_or(0) + 1000;
        // By client of this key: until when it is busy, and its process, new after each answer lost.
        let mut busy: Vec<(Nanos, u64)> = Vec::new();
        let named = ops.iter().filter_map(|op| op.client).max().map_or(0, |highest| highest + 1);
        for _ in 0..named {
            busy.push((0, self.process()));
        }
        for op in ops {
            let free = busy.iter().position(|&(until, _)| until < op.inv);
            let client = op.client.and_then(|c| usize::try_from(c).ok()).or(free).unwrap_or(busy.len());
            if client == busy.len() {
                busy.push((0, self.process()));
            }
            let process = busy[client].1;
            let ret = if op.ret == NEVER { end } else { op.ret };
            busy[client].0 = op.ret;
            let line = |time, kind, value, error: Option<&str>| {
                Entry::Op(Op {
                    index: 0,
                    time,
                    process,
                    kind,
                    f: op.f.to_owned(),
                    key: Some(key.to_owned()),
                    client: Some(format!("c{process}")),
                    value,
                    error: error.map(str::to_owned),
                })
            };
            let (begins, ends) =
                (line(op.inv, OpType::Invoke, op.asked, None), line(ret, op.ended, op.answer, op.error));
            self.lines.push(Line { time: op.inv, ends: false, entry: begins, guilty: false });
            self.lines.push(Line { time: ret, ends: true, entry: ends, guilty: op.guilty });
        }
    }

    fn process(&mut self) -> u64 {
        self.processes += 1;
        self.processes - 1
    }

    /// The entries in the order of time, and the positions of those that prove what was planted.
    pub(super) fn sorted(mut self) -> (Vec<Entry>, Vec<usize>) {
        // What begins in the moment in which something else ends was open at the same time.
        self.lines.sort_by_key(|line| (line.time, line.ends));
        let guilty =
            self.lines.iter().enumerate().filter(|(_, line)| line.guilty).map(|(at, _)| at).collect();
        let mut index = 0;
        let entries = self.lines.into_iter().map(|line| match line.entry {
            Entry::Op(op) => {
                index += 1;
                Entry::Op(Op { index: index - 1, ..op })
            }
            other => other,
        });
        (entries.collect(), guilty)
    }
}

/// A map of the fields that are there.
pub(super) fn map<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    Value::Map(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// A number.
pub(super) fn number(n: u64) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}
