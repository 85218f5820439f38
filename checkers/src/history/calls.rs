//! From invocations and completions to operations with a beginning and an end; and what is wrong with a history.
//!
//! # Invariants
//! * A history that is not well formed is still read, in the way that accuses nobody: an operation whose completion
//!   cannot be told may have happened at any later time or never; one whose invocation is missing may have begun at
//!   any time. Each such place is named.
//! * Time follows the order of the lines: where the clock goes back, the largest time so far counts.

use std::collections::HashMap;

use super::{Nanos, Op, OpType};
use crate::engine::NEVER;

/// An operation: its invocation and its completion.
#[derive(Debug, Clone, Copy)]
pub struct Paired<'a> {
    /// The invocation; the completion, if that is missing.
    pub first: &'a Op,
    /// The completion, if there is one.
    pub last: Option<&'a Op>,
    /// Position of its end among the lines read, or of its beginning if it has none.
    pub at: usize,
    /// Invoked, ns.
    pub inv: Nanos,
    /// Returned, ns; [`NEVER`] if the outcome is unknown.
    pub ret: Nanos,
}

impl Paired<'_> {
    /// What became of it: `info` if nothing tells.
    #[must_use]
    pub fn outcome(&self) -> OpType {
        self.last.map_or(OpType::Info, |last| last.kind)
    }
}

/// Something wrong with a history, at a position among its operations' lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A process invokes while its last operation is open.
    #[error(
        "process {process} invokes an operation while its last one, invoked at operation {open}, is open"
    )]
    TwoOpen {
        /// Where.
        at: usize,
        /// The process.
        process: u64,
        /// Where the open one was invoked.
        open: usize,
    },
    /// A completion of a process that has no operation open.
    #[error("process {process} completes an operation that it never invoked")]
    NeverInvoked {
        /// Where.
        at: usize,
        /// The process.
        process: u64,
    },
    /// A completion of another function than was invoked.
    #[error("process {process} completes another function than it invoked at operation {open}")]
    OtherFunction {
        /// Where.
        at: usize,
        /// The process.
        process: u64,
        /// Where the open one was invoked.
        open: usize,
    },
    /// A process speaks although the outcome of its last operation is unknown.
    #[error("process {process} goes on although its operation ended as info at operation {ended}")]
    SpokeAfterInfo {
        /// Where.
        at: usize,
        /// The process.
        process: u64,
        /// Where the other one ended.
        ended: usize,
    },
    /// A time lower than the one before.
    #[error("time goes back by {by} ns")]
    TimeWentBack {
        /// Where.
        at: usize,
        /// By how much, ns.
        by: Nanos,
    },
}

impl Flaw {
    /// Position among the lines read, from 0.
    #[must_use]
    pub const fn at(&self) -> usize {
        match self {
            Self::TwoOpen { at, .. }
            | Self::NeverInvoked { at, .. }
            | Self::OtherFunction { at, .. }
            | Self::SpokeAfterInfo { at, .. }
            | Self::TimeWentBack { at, .. } => *at,
        }
    }
}

/// The operations of a history in the order of their invocations, and its flaws in the order of their lines.
#[must_use]
pub fn pair<'a>(ops: impl IntoIterator<Item = &'a Op>) -> (Vec<Paired<'a>>, Vec<Flaw>) {
    let mut calls: Vec<Paired<'a>> = Vec::new();
    let mut flaws: Vec<Flaw> = Vec::new();
    // By process: the call that is open, or the line at which one ended as `info`.
    let mut open: HashMap<u64, Open> = HashMap::new();
    let mut now = 0;
    for (at, op) in ops.into_iter().enumerate() {
        if op.time < now {
            flaws.push(Flaw::TimeWentBack { at, by: now - op.time });
        }
        now = now.max(op.time);
        let process = op.process;
        if op.kind == OpType::Invoke {
            match open.insert(process, Open::Call { call: calls.len(), at }) {
                Some(Open::Call { at: before, .. }) => {
                    flaws.push(Flaw::TwoOpen { at, process, open: before })
                }
                Some(Open::Unknown { at: ended }) => flaws.push(Flaw::SpokeAfterInfo { at, process, ended }),
                None => {}
            }
            calls.push(Paired { first: op, last: None, at, inv: now, ret: NEVER });
            continue;
        }
        let ret = if op.kind == OpType::Info { NEVER } else { now };
        match open.remove(&process) {
            Some(Open::Call { call, at: invoked }) => {
                let call = &mut calls[call];
                if call.first.f != op.f {
                    flaws.push(Flaw::OtherFunction { at, process, open: invoked });
                }
                (call.last, call.at, call.ret) = (Some(op), at, ret);
            }
            other => {
                flaws.push(match other {
                    Some(Open::Unknown { at: ended }) => Flaw::SpokeAfterInfo { at, process, ended },
                    _ => Flaw::NeverInvoked { at, process },
                });
                calls.push(Paired { first: op, last: Some(op), at, inv: 0, ret });
            }
        }
        if op.kind == OpType::Info {
            open.insert(process, Open::Unknown { at });
        }
    }
    (calls, flaws)
}

enum Open {
    Call { call: usize, at: usize },
    Unknown { at: usize },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Value;

    fn op(time: u64, process: u64, kind: OpType) -> Op {
        Op {
            index: 0,
            time,
            process,
            kind,
            f: "read".into(),
            key: None,
            client: None,
            value: Value::Nil,
            error: None,
        }
    }

    #[test]
    fn operations_are_paired_by_process() {
        use OpType::{Fail, Info, Invoke, Ok};
        let ops = [
            op(1, 0, Invoke),
            op(2, 1, Invoke),
            op(3, 0, Ok),
            op(4, 0, Invoke),
            op(5, 1, Fail),
            op(6, 0, Info),
            op(7, 2, Invoke),
        ];
        let (calls, flaws) = pair(&ops);
        assert_eq!(flaws, []);
        let got: Vec<_> = calls.iter().map(|c| (c.inv, c.ret, c.at, c.outcome())).collect();
        assert_eq!(got, [(1, 3, 2, Ok), (2, 5, 4, Fail), (4, NEVER, 5, Info), (7, NEVER, 6, Info)]);
    }

    #[test]
    fn each_flaw_is_named_and_read_in_the_kindest_way() {
        use OpType::{Info, Invoke, Ok};
        let other = Op { f: "write".into(), ..op(15, 5, Ok) };
        let ops = [
            op(1, 0, Invoke),
            op(2, 0, Invoke),
            op(3, 0, Ok),
            op(9, 1, Ok),
            op(5, 2, Invoke),
            op(10, 2, Info),
            op(11, 2, Invoke),
            op(12, 5, Invoke),
            other,
        ];
        let (calls, flaws) = pair(&ops);
        let said: Vec<String> = flaws.iter().map(|f| format!("{}: {f}", f.at())).collect();
        insta::assert_snapshot!(said.join("\n"), @"
        1: process 0 invokes an operation while its last one, invoked at operation 0, is open
        3: process 1 completes an operation that it never invoked
        4: time goes back by 4 ns
        6: process 2 goes on although its operation ended as info at operation 5
        8: process 5 completes another function than it invoked at operation 7
        ");
        let got: Vec<_> = calls.iter().map(|c| (c.inv, c.ret)).collect();
        assert_eq!(got, [(1, NEVER), (2, 3), (0, 9), (9, NEVER), (11, NEVER), (12, 15)]);
    }
}
