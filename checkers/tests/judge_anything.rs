//! Whatever operations a history has, in whatever order, each kind of object is judged without falling over, and a
//! history that is not well formed never passes.

use proptest::prelude::*;
use rackrift_checkers::engine::lease::check_leases;
use rackrift_checkers::engine::search::Limits;
use rackrift_checkers::history::foreign::{Format, Operations};
use rackrift_checkers::history::{Entry, Op, OpType, Value, edn};
use rackrift_checkers::object::{Kind, Options, check};
use rackrift_checkers::verdict::Verdict;

fn value() -> impl Strategy<Value = Value> {
    let small = prop_oneof![Just(Value::Nil), (-1i64..5).prop_map(Value::Int), "[ab]?".prop_map(Value::Str)];
    let versioned =
        (0i64..6, 0i64..6, 0u8..4, any::<[bool; 3]>()).prop_map(|(version, expected, id, with)| {
            let fields = [
                ("version", Value::Int(version)),
                ("expected", Value::Int(expected)),
                ("id", Value::Str(format!("w{id}"))),
            ];
            let kept = fields.into_iter().zip(with).filter(|(_, with)| *with);
            Value::Map(kept.map(|((name, value), _)| (name.to_owned(), value)).collect())
        });
    let part = ("(read|write)", "[xy]", 0i64..3)
        .prop_map(|(f, key, n)| Value::List(vec![Value::Str(f), Value::Str(key), Value::Int(n)]));
    prop_oneof![
        small.clone(),
        prop::collection::vec(small, 0..3).prop_map(Value::List),
        versioned,
        prop::collection::vec(part, 0..3).prop_map(Value::List),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(vec![OpType::Invoke, OpType::Ok, OpType::Fail, OpType::Info]);
    let f = prop::sample::select(vec![
        "read", "write", "cas", "create", "delete", "txn", "get", "put", "append", "add", "remove",
        "enqueue", "dequeue", "acquire", "release",
    ]);
    let error = prop::option::of(prop::sample::select(vec!["conflict: x", "exists", "absent", "late"]));
    (0u64..30, 0u64..4, kind, f, prop::option::of("[kl]"), value(), error).prop_map(
        |(time, process, kind, f, key, value, error)| Op {
            index: 0,
            time,
            process,
            kind,
            f: f.to_owned(),
            key,
            client: None,
            value,
            error: error.map(str::to_owned),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_operations_are_judged(ops in prop::collection::vec(op(), 0..24), sorted in any::<bool>()) {
        let mut ops = ops;
        if sorted {
            ops.sort_by_key(|op| op.time);
        }
        let lines = (1..).take(ops.len()).collect();
        let leases: Vec<Entry> = ops.iter().cloned().map(Entry::Op).collect();
        let counted: u64 = check_leases(&leases).iter().map(|c| c.counts.operations).sum();
        prop_assert!(counted <= ops.len() as u64);
        let operations = Operations { format: Format::Edn, ops, lines, notes: Vec::new() };
        for kind in Kind::ALL {
            let limits = Limits { steps: 20_000, ..Limits::default() };
            let options = Options { kind: Some(kind), limits, ..Options::default() };
            let checks = check(&operations, &options).expect("because the kind is given");
            for check in &checks {
                prop_assert!(!check.sentence.is_empty());
                prop_assert_eq!(check.verdict == Verdict::Fail, check.id == "linearizable" && !check.witnesses.is_empty());
                for exhibit in check.witnesses.iter().flat_map(|w| &w.exhibits) {
                    prop_assert!(exhibit.line.is_some_and(|line| line <= operations.ops.len() as u64));
                }
            }
        }
    }

    #[test]
    fn writing_and_reading_again_changes_no_verdict(ops in prop::collection::vec(op(), 0..16)) {
        let lines = (1..).take(ops.len()).collect();
        let ops: Vec<Op> =
            (0..).zip(ops).map(|(i, op)| Op { index: i, time: i, ..op }).collect();
        let again = edn::read(edn::write(&ops).as_bytes()).expect("because it was written by the same rules");
        let operations = Operations { format: Format::Edn, ops, lines, notes: Vec::new() };
        for kind in Kind::ALL {
            let options = || Options { kind: Some(kind), limits: Limits { steps: 20_000, ..Limits::default() }, ..Options::default() };
            let words = |of: &Operations| -> Vec<Verdict> {
                let checks = check(of, &options()).expect("because the kind is given");
                checks.into_iter().map(|c| c.verdict).collect()
            };
            prop_assert_eq!(words(&operations), words(&again));
        }
    }
}
