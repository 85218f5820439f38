//! Any history that can be written is read back the same, and no bytes make the reader fall over.

use proptest::prelude::*;
use rackrift_checkers::history::{
    At, Belief, BeliefEvent, ClockSample, Entry, FaultMark, FaultPhase, Header, HostTime, LeaseSeen,
    NodeSeen, Note, Op, OpType, PodSeen, PodSource, PodState, Value, jsonl,
};

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
            prop::collection::vec((any::<String>(), inner), 0..5).prop_map(Value::Map),
        ]
    })
}

fn op() -> impl Strategy<Value = Entry> {
    let kind = prop::sample::select(vec![OpType::Invoke, OpType::Ok, OpType::Fail, OpType::Info]);
    let optional = || prop::option::of(any::<String>());
    (any::<[u64; 3]>(), kind, any::<String>(), optional(), optional(), value(), optional()).prop_map(
        |([index, time, process], kind, f, key, client, value, error)| {
            Entry::Op(Op { index, time, process, kind, f, key, client, value, error })
        },
    )
}

fn observation() -> impl Strategy<Value = Entry> {
    (
        any::<[u64; 5]>(),
        any::<[u32; 2]>(),
        any::<[bool; 3]>(),
        any::<i64>(),
        prop::collection::vec(any::<String>(), 8),
    )
        .prop_map(|([a, b, c, d, which], [m, n], [x, y, z], wall, words)| {
            let word = |i: usize| words[i].clone();
            let at = At { lo: a, hi: b };
            let host_time = HostTime { boot: word(0), mono: c };
            match which % 7 {
                0 => Entry::Lease(LeaseSeen {
                    time: a,
                    via: word(0),
                    lease: word(1),
                    version: b,
                    uid: word(2),
                    holder: word(3),
                    duration_s: m,
                    transitions: n,
                    acquire_time: word(4),
                    renew_time: word(5),
                    deleted: x,
                    anew: x,
                }),
                1 => Entry::Belief(Belief {
                    at,
                    host: word(1),
                    component: word(2),
                    pid: m,
                    event: if x { BeliefEvent::Leads } else { BeliefEvent::Exits },
                    host_time,
                    line: word(3),
                }),
                2 => Entry::Pod(PodSeen {
                    from: at,
                    to: At { lo: c, hi: d },
                    source: if x { PodSource::Heartbeat } else { PodSource::Api },
                    node: word(1),
                    via: y.then(|| word(2)),
                    owner_kind: word(3),
                    identity: word(4),
                    name: word(5),
                    uid: word(6),
                    container: z.then(|| word(7)),
                    state: if y { PodState::Running } else { PodState::Stopped },
                    beats: a,
                    gap: b,
                    host_from: x.then(|| host_time.clone()),
                    host_to: z.then_some(host_time),
                }),
                3 => Entry::Node(NodeSeen {
                    time: a,
                    via: word(0),
                    node: word(1),
                    version: b,
                    ready: word(2),
                    taints: words[3..].to_vec(),
                }),
                4 => Entry::Fault(FaultMark {
                    time: a,
                    fault: word(0),
                    phase: if x { FaultPhase::Observed } else { FaultPhase::Missing },
                    edge: y.then(|| (word(1), word(2))),
                    detail: z.then(|| word(3)),
                }),
                5 => Entry::Clock(ClockSample {
                    host: word(1),
                    sent: a,
                    received: b,
                    host_time,
                    resolution: d,
                    wall: x.then_some(wall),
                }),
                _ => Entry::Note(Note { time: a, text: word(0) }),
            }
        })
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(prop_oneof![op(), observation()], 0..20)
}

fn header() -> Header {
    Header { rackrift_history: jsonl::FORMAT, origin: "2026-01-01T00:00:00Z".into(), run: "r".into() }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entries in entries()) {
        let bytes = jsonl::write(&header(), &entries);
        prop_assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), entries.len() + 1);
        let read = jsonl::read(&bytes).expect("because it was written by the same rules");
        prop_assert_eq!(read.header, header());
        prop_assert_eq!(read.entries, entries);
        prop_assert!(read.notes.is_empty());
    }

    #[test]
    fn a_history_cut_off_loses_its_last_line_only(entries in entries(), cut in any::<prop::sample::Index>()) {
        let head = jsonl::write(&header(), &[]).len();
        let bytes = jsonl::write(&header(), &entries);
        let cut = head + cut.index(bytes.len() - head + 1);
        let whole = bytes[head..cut].iter().filter(|b| **b == b'\n').count();
        let read = jsonl::read(&bytes[..cut]).expect("because a line cut off is tolerated");
        // A line that lacks nothing but its end is whole.
        prop_assert!(read.entries.len() == whole || read.entries.len() == whole + 1);
        prop_assert_eq!(&read.entries[..], &entries[..read.entries.len()]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Err(e) = jsonl::read(&bytes) {
            prop_assert!(e.line >= 1 && e.column >= 1 && !e.message.is_empty());
        }
    }

    #[test]
    fn a_damaged_history_is_read_or_refused(
        entries in entries(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = jsonl::write(&header(), &entries);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
        match jsonl::read(&bytes) {
            Ok(read) => prop_assert!(read.entries.len() <= lines),
            Err(e) => prop_assert!(e.line <= lines, "{} of {}", e.line, lines),
        }
    }
}
