//! Client operations: a planted stale read, and the read that only looks like one.

use rackrift_checkers::history::{Entry, Nanos, Op, OpType, Value};
use rackrift_checkers::verdict::Verdict;

use super::support::Run;
use super::{check, expect, names, planted, verdict};

const KEY: &str = "lab/lease-0";
const ID: &str = "lease-linearizable";

/// An acknowledged write: invocation, answer, what it wrote.
struct Write {
    invoked: Nanos,
    answered: Nanos,
    wrote: Value,
}

/// The acknowledged writes of one lease, in order.
fn writes(run: &Run) -> Vec<Write> {
    let ops = run.entries.iter().filter_map(|entry| match entry {
        Entry::Op(op) if op.key.as_deref() == Some(KEY) => Some(op),
        _ => None,
    });
    let mut open: Vec<&Op> = Vec::new();
    let mut writes = Vec::new();
    for op in ops {
        if op.kind == OpType::Invoke {
            open.push(op);
            continue;
        }
        let at = open.iter().position(|o| o.process == op.process).expect("an end has a beginning");
        let invoked = open.swap_remove(at).time;
        if op.kind == OpType::Ok && op.f != "read" {
            writes.push(Write { invoked, answered: op.time, wrote: op.value.clone() });
        }
    }
    writes
}

/// Adds a read by a client that otherwise does nothing, and returns the line of its answer.
fn read(run: &mut Run, from: Nanos, to: Nanos, shown: &Value) -> u64 {
    let op = |time, kind, value| {
        let (key, client) = (Some(KEY.to_owned()), Some("late".to_owned()));
        Entry::Op(Op {
            index: 0,
            time,
            process: 9_000,
            kind,
            f: "read".to_owned(),
            key,
            client,
            value,
            error: None,
        })
    };
    run.entries.push(op(from, OpType::Invoke, Value::Nil));
    run.entries.push(op(to, OpType::Ok, shown.clone()));
    run.entries.sort_by_key(recorded);
    let mut next = 0;
    let mut line = 0;
    for (entry, at) in run.entries.iter_mut().zip(2u64..) {
        if let Entry::Op(op) = entry {
            op.index = next;
            next += 1;
            if op.process == 9_000 && op.kind == OpType::Ok {
                line = at;
            }
        }
    }
    line
}

/// When the recorder wrote a line, as far as the line says so.
fn recorded(entry: &Entry) -> Nanos {
    match entry {
        Entry::Op(op) => op.time,
        Entry::Lease(seen) => seen.time,
        Entry::Belief(seen) => seen.at.hi,
        Entry::Pod(seen) => seen.to.hi,
        Entry::Node(seen) => seen.time,
        Entry::Fault(mark) => mark.time,
        Entry::Clock(sample) => sample.received,
        Entry::Note(note) => note.time,
    }
}

#[test]
fn a_planted_stale_read_is_a_failure_and_the_witness_is_the_planted_pair() {
    let mut run = planted(|_| ());
    let all = writes(&run);
    let pair = &all[2..4];
    let (old, newer) = (pair[0].wrote.clone(), pair[1].answered);
    let line = read(&mut run, newer + 1_000_000, newer + 3_000_000, &old);
    let result = check(&run, ID);
    expect(&result, Verdict::Fail, Some("stale-read"));
    names(&result, &["client late", KEY, "Stale read"]);
    let lines: Vec<Option<u64>> = result.witnesses[0].exhibits.iter().map(|e| e.line).collect();
    assert!(lines.contains(&Some(line)), "{lines:?} must hold the planted read on line {line}");
    assert!(lines.len() >= 2);
    assert_eq!(verdict(&run).verdict, Verdict::Fail);
}

#[test]
fn a_read_of_the_old_version_while_the_new_one_is_being_written_is_right() {
    let mut run = planted(|_| ());
    let all = writes(&run);
    let pair = &all[2..4];
    let (old, from, to) = (pair[0].wrote.clone(), pair[1].invoked + 1, pair[1].answered + 3_000_000);
    read(&mut run, from, to, &old);
    expect(&check(&run, ID), Verdict::Pass, None);
}

#[test]
fn the_verdict_says_how_many_operations_were_checked() {
    let run = planted(|_| ());
    let asked =
        run.entries.iter().filter(|e| matches!(e, Entry::Op(op) if op.kind == OpType::Invoke)).count();
    let result = check(&run, ID);
    let digits: String =
        result.checked.chars().take_while(|c| *c != ' ').filter(char::is_ascii_digit).collect();
    assert_eq!(digits.parse::<usize>().expect("a number"), asked, "{}", result.checked);
}

#[test]
fn a_run_without_client_operations_is_invalid_if_they_were_to_be_judged() {
    let mut run = planted(|_| ());
    run.entries.retain(|entry| !matches!(entry, Entry::Op(_)));
    expect(&check(&run, ID), Verdict::Invalid, None);
    run.facts.expect.lease_history = false;
    let verdict = verdict(&run);
    assert!(verdict.checks.iter().all(|c| c.id != ID));
    assert!(verdict.answers[2].answer.starts_with("Not looked at"), "{:?}", verdict.answers[2]);
}
