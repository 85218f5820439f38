//! What is written as EDN is read back the same, and no bytes make the foreign readers fall over.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rackrift_checkers::history::{Op, OpType, Value, edn, foreign};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<String>().prop_map(Value::Str),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::btree_map(any::<String>(), inner, 0..5).prop_map(map),
        ]
    })
}

/// EDN maps have no order and no key twice.
fn map(pairs: BTreeMap<String, Value>) -> Value {
    Value::Map(pairs.into_iter().collect())
}

/// Maps come back sorted by another rule: keywords before strings.
fn sorted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Map(pairs) => map(pairs.iter().map(|(k, v)| (k.clone(), sorted(v))).collect()),
        other => other.clone(),
    }
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(vec![OpType::Invoke, OpType::Ok, OpType::Fail, OpType::Info]);
    let optional = || prop::option::of(any::<String>());
    (0..i64::MAX as u64, kind, any::<String>(), optional(), optional(), value(), optional()).prop_map(
        |(process, kind, f, key, client, value, error)| Op {
            index: 0,
            time: 0,
            process,
            kind,
            f,
            key,
            client,
            value,
            error,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(mut ops in prop::collection::vec(op(), 0..20)) {
        for (i, op) in ops.iter_mut().enumerate() {
            (op.index, op.time) = (i as u64, i as u64);
        }
        let text = edn::write(&ops);
        let mut read = edn::read(text.as_bytes()).expect("because it was written by the same rules");
        prop_assert!(read.notes.is_empty(), "{:?}", read.notes);
        for op in read.ops.iter_mut().chain(&mut ops) {
            op.value = sorted(&op.value);
        }
        prop_assert_eq!(read.ops, ops);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(e) = foreign::read_operations(&bytes) {
            prop_assert!(e.line >= 1 && e.column >= 1 && !e.message.is_empty());
        }
    }

    #[test]
    fn text_of_the_right_letters_is_read_or_refused(text in r#"[\[\](){}:a-f0-9 "\\;,#_\n-]{0,80}"#) {
        let log = format!("INFO  jepsen.util - {text}");
        for text in [text, log] {
            if let Err(e) = foreign::read_operations(text.as_bytes()) {
                prop_assert!(e.line >= 1 && e.column >= 1 && !e.message.is_empty());
            }
        }
    }
}
