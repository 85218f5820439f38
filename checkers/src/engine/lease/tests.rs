use super::*;
use crate::history::{LeaseSeen, Op};

/// A history in short: `time process type f value [error]` a line, the value as JSON.
fn history(lines: &str) -> Vec<Entry> {
    let entry = |(index, line): (usize, &str)| {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let (time, process) = (word().parse::<u64>().unwrap() * 1_000_000, word().parse().unwrap());
        let kind = serde_json::from_value(serde_json::Value::String(word().into())).unwrap();
        let f = word().to_owned();
        let (value, error) = word().split_once(" !").map_or_else(
            || (line.splitn(5, ' ').nth(4).unwrap(), None),
            |(value, error)| (value, Some(error.to_owned())),
        );
        Entry::Op(Op {
            index: index as u64,
            time,
            process,
            kind,
            f,
            key: Some("lab/lease-0".into()),
            client: Some(format!("c{process}")),
            value: serde_json::from_str(value).unwrap(),
            error,
        })
    };
    lines.trim().lines().map(str::trim).enumerate().map(entry).collect()
}

fn one(entries: &[Entry]) -> LeaseCheck {
    let mut checks = check_leases(entries);
    assert_eq!(checks.len(), 1);
    checks.remove(0)
}

fn witness(entries: &[Entry]) -> Witness {
    match one(entries).answer {
        Answer::Violation(w) => *w,
        other => panic!("{other:?}"),
    }
}

fn lines_of(w: &Witness) -> Vec<u64> {
    w.exhibits.iter().filter_map(|e| e.line).collect()
}

const START: &str = r#"
    0 1 invoke read null
    1 1 ok read null
    2 1 invoke create {"id":"w0","holder":"c1"}
    3 1 ok create {"version":10,"id":"w0","holder":"c1"}
    4 2 invoke cas {"expected":10,"id":"w1","holder":"c2"}
    6 2 ok cas {"expected":10,"version":14,"id":"w1","holder":"c2"}"#;

fn after_start(lines: &str) -> Vec<Entry> {
    history(&format!("{}\n{}", START.trim(), lines.trim()))
}

#[test]
fn a_stale_read_names_the_pair_and_a_near_miss_passes() {
    let stale = r#"
        8 3 invoke read null
        9 3 ok read {"version":10,"id":"w0","holder":"c1"}"#;
    let w = witness(&after_start(stale));
    assert_eq!((w.rule.as_str(), lines_of(&w), w.margin), ("stale-read", vec![9, 7], Some(2_000_000)));
    insta::assert_snapshot!(w.sentence, @"Stale read: client c3 started a read of lab/lease-0 at 0.008 s and got version 10 (held by c1), 2.00 ms after client c2 had already been told version 14 (held by c2).");
    // Begun in the very moment in which the write returned, it is concurrent with it.
    let near = stale.replace("8 3", "6 3");
    let check = one(&after_start(&near));
    assert_eq!(check.answer, Answer::Linearizable);
    assert_eq!(
        (check.counts.operations, check.counts.reads, check.counts.writes, check.counts.refused),
        (4, 1, 2, 1)
    );
    assert_eq!(check.counts.versions, 2);
}

#[test]
fn a_write_of_unknown_outcome_happened_if_its_id_is_seen() {
    let lost = r#"
        7 1 invoke cas {"expected":14,"id":"w2","holder":"c1"}
        8 1 info cas {"expected":14,"id":"w2","holder":"c1"} !late: no answer in 5 s"#;
    assert_eq!(one(&after_start(lost)).answer, Answer::Linearizable);
    let seen = format!(
        "{lost}\n20 3 invoke read null\n21 3 ok read {{\"version\":17,\"id\":\"w2\",\"holder\":\"c1\"}}"
    );
    let check = one(&after_start(&seen));
    assert_eq!((check.answer, check.counts.unknown, check.counts.versions), (Answer::Linearizable, 1, 3));
    let gone = format!(
        "{seen}\n30 4 invoke read null\n31 4 ok read {{\"version\":14,\"id\":\"w1\",\"holder\":\"c2\"}}"
    );
    let w = witness(&after_start(&gone));
    assert_eq!((w.rule.as_str(), lines_of(&w)), ("stale-read", vec![13, 11]));
}

#[test]
fn each_kind_of_violation_has_its_sentence() {
    let cases = [
        // Two clients replaced the same version.
        "7 1 invoke cas {\"expected\":10,\"id\":\"w2\",\"holder\":\"c1\"}
         8 1 ok cas {\"expected\":10,\"version\":15,\"id\":\"w2\",\"holder\":\"c1\"}",
        // A conflict on the version in force.
        "7 1 invoke cas {\"expected\":14,\"id\":\"w2\",\"holder\":\"c1\"}
         8 1 fail cas {\"expected\":14,\"id\":\"w2\",\"holder\":\"c1\"} !conflict: changed
         9 3 invoke read null
         10 3 ok read {\"version\":14,\"id\":\"w1\",\"holder\":\"c2\"}",
        // A write that failed is seen.
        "7 1 invoke cas {\"expected\":10,\"id\":\"w2\",\"holder\":\"c1\"}
         8 1 fail cas {\"expected\":10,\"id\":\"w2\",\"holder\":\"c1\"} !conflict: changed
         9 3 invoke read null
         10 3 ok read {\"version\":17,\"id\":\"w2\",\"holder\":\"c1\"}",
        // Nobody wrote it.
        "9 3 invoke read null\n10 3 ok read {\"version\":17,\"id\":\"w9\",\"holder\":\"c9\"}",
        // The id of one write with the holder of another.
        "9 3 invoke read null\n10 3 ok read {\"version\":14,\"id\":\"w1\",\"holder\":\"c1\"}",
        // It was there all the time.
        "9 3 invoke read null\n10 3 ok read null\n11 1 invoke read null\n12 1 ok read {\"version\":14,\"id\":\"w1\"}",
        // Created over an existing one.
        "9 3 invoke create {\"id\":\"w3\",\"holder\":\"c3\"}\n10 3 ok create {\"version\":20,\"id\":\"w3\",\"holder\":\"c3\"}",
        // The same version for two.
        "9 3 invoke cas {\"expected\":10,\"id\":\"w3\",\"holder\":\"c3\"}
         10 3 ok cas {\"expected\":10,\"version\":14,\"id\":\"w3\",\"holder\":\"c3\"}",
        // Read before it was written.
        "7 3 invoke read null\n8 3 ok read {\"version\":17,\"id\":\"w3\",\"holder\":\"c1\"}
         9 1 invoke cas {\"expected\":14,\"id\":\"w3\",\"holder\":\"c1\"}
         10 1 ok cas {\"expected\":14,\"version\":17,\"id\":\"w3\",\"holder\":\"c1\"}",
    ];
    let said: Vec<String> = cases.iter().map(|c| witness(&after_start(c)).sentence).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn an_observer_proves_that_a_version_was_written_but_not_that_it_is_current() {
    let seen = |time: u64, version, holder: &str| {
        Entry::Lease(LeaseSeen {
            time: time * 1_000_000,
            via: "etcd:e3".into(),
            lease: "lab/lease-0".into(),
            version,
            uid: "u".into(),
            holder: holder.into(),
            duration_s: 5,
            transitions: 0,
            acquire_time: String::new(),
            renew_time: String::new(),
            deleted: false,
            anew: false,
        })
    };
    let mut late = after_start("");
    late.push(seen(500, 10, "c1"));
    let check = one(&late);
    assert_eq!((check.answer, check.counts.observed), (Answer::Linearizable, 1));
    let mut early = after_start("");
    early.insert(4, seen(3, 14, "c2"));
    let w = witness(&early);
    insta::assert_snapshot!(w.sentence, @"Read from the future: observer etcd:e3 showed version 14 (held by c2) of lab/lease-0 at 0.003 s, 1.00 ms before client c2 began to write it at 0.004 s.");
}

#[test]
fn histories_that_are_not_well_formed_are_read_in_the_kindest_way() {
    // Process 1 invokes twice, the completion of process 9 has no invocation, and the last operation never ends.
    let odd = "7 1 invoke cas {\"expected\":14,\"id\":\"w2\",\"holder\":\"c1\"}
        8 1 invoke read null
        9 1 ok read {\"version\":14,\"id\":\"w1\",\"holder\":\"c2\"}
        10 9 ok read {\"version\":10,\"id\":\"w0\",\"holder\":\"c1\"}
        11 1 invoke cas {\"expected\":14,\"id\":\"w3\",\"holder\":\"c1\"}";
    let check = one(&after_start(odd));
    assert_eq!((check.answer, check.counts.operations, check.counts.unknown), (Answer::Linearizable, 7, 2));
}

#[test]
fn an_unknown_start_is_not_thin_air_and_keys_are_apart() {
    let old = r#"
        1 1 invoke read null
        2 1 ok read {"version":5,"id":"w7","holder":"old"}"#;
    assert_eq!(one(&history(old)).answer, Answer::Linearizable);
    let mut two = history(old);
    for entry in &mut two {
        if let Entry::Op(op) = entry {
            op.key = Some("lab/lease-1".into());
        }
    }
    two.extend(after_start(""));
    let keys: Vec<String> = check_leases(&two).into_iter().map(|c| c.key).collect();
    assert_eq!(keys, ["lab/lease-0", "lab/lease-1"]);
}
