//! One table: our checkers and their peer on the same histories, in one run.
//!
//! `cargo run --release --manifest-path benches/checkers/Cargo.toml [FOLDER OF PUBLIC HISTORIES]`
//!
//! Parsing is never in a figure unless the row says so. Ours is the best of several runs, the peer's of one, since some
//! of its runs take a minute. The last figures are in `docs/checkers.md`.

mod peer;

use std::path::Path;
use std::time::{Duration, Instant};

use rackrift_checkers::engine::search::{Call, Limits, Model, Outcome, check, check_parts};
use rackrift_checkers::engine::versioned::{self, World};
use rackrift_checkers::generate::{Shape, register, versioned as plants};
use rackrift_checkers::history::{Entry, Header, Op, OpType, Value, calls, edn, foreign, jsonl};
use rackrift_checkers::model::{PerKey, Register, Text, reading};
use reading::Refused;

fn main() {
    println!("{:58} {:>11} {:>11} {:>9}", "history", "ours", "peer", "ratio");
    let folder = std::env::args().nth(1).unwrap_or_else(|| "../shared/histories".to_owned());
    let folder = Path::new(&folder);
    if folder.is_dir() {
        etcd(&folder.join("porcupine/jepsen"));
        texts(&folder.join("porcupine/kv"));
        knossos(&folder.join("knossos/cas-register"));
    } else {
        println!("(no public histories in {})", folder.display());
    }
    small_values();
    versions();
    planted();
    reading_files();
}

fn row(name: &str, ours: Duration, peer: Option<peer::Answer>) {
    let show = |d: Duration| format!("{:.3} ms", d.as_secs_f64() * 1e3);
    let (theirs, ratio) = match peer {
        None => (String::new(), String::new()),
        Some((d, Some(_))) => (show(d), format!("1/{:.0}", d.as_secs_f64() / ours.as_secs_f64())),
        Some((d, None)) => ("over 60 s".to_owned(), format!("< 1/{:.0}", d.as_secs_f64() / ours.as_secs_f64())),
    };
    println!("{name:58} {:>11} {theirs:>11} {ratio:>9}", show(ours));
}

/// The best of some runs.
fn best<T>(runs: usize, mut f: impl FnMut() -> T) -> (Duration, T) {
    let mut run = || {
        let start = Instant::now();
        let got = std::hint::black_box(f());
        (start.elapsed(), got)
    };
    let first = run();
    (1..runs).map(|_| run()).fold(first, |best, next| if next.0 < best.0 { next } else { best })
}

fn ours<M: Model>(model: &M, calls: &[Call<M::Op>], runs: usize) -> (Duration, Option<bool>) {
    let (time, outcome) = best(runs, || check(model, calls, Limits { bytes: 8 << 30, ..Limits::default() }));
    let answer = match outcome {
        Outcome::Linearizable(_) => Some(true),
        Outcome::Violation(_) => Some(false),
        Outcome::Undecided(_) => None,
    };
    (time, answer)
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|f| Some((f.file_name().to_string_lossy().into_owned(), std::fs::read(f.path()).ok()?)))
        .collect();
    files.sort();
    files
}

/// B1: registers of etcd, as many logs as there are.
fn etcd(folder: &Path) {
    let (mut sum, mut theirs, mut worst, mut their_worst, mut logs) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
    for (name, bytes) in files(folder) {
        let read = foreign::read_operations(&bytes).expect("because it was read before");
        let (paired, _) = calls::pair(&read.ops);
        let (_, calls) = reading::register(&paired, Refused::Tells, false);
        let (time, answer) = ours(&Register { start: Value::Nil }, &calls, 20);
        let peer = peer::values(&calls, &Value::Nil);
        assert_eq!(answer, peer.1, "{name}");
        (sum, theirs, logs) = (sum + time, theirs + peer.0, logs + 1);
        (worst, their_worst) = (worst.max(time), their_worst.max(peer.0));
    }
    row(&format!("B1 {logs} etcd logs, sum"), sum, Some((theirs, Some(true))));
    row("B1 the longest of them", worst, Some((their_worst, Some(true))));
}

/// B2: texts by key.
fn texts(folder: &Path) {
    for (name, bytes) in files(folder) {
        let read = foreign::read_operations(&bytes).expect("because it was read before");
        let (paired, _) = calls::pair(&read.ops);
        let (at, ops) = reading::text(&paired);
        let key = |at: usize| paired[at].first.key.clone().unwrap_or_default();
        let keyed: Vec<_> = at
            .iter()
            .zip(&ops)
            .map(|(&at, call)| Call { inv: call.inv, ret: call.ret, op: (key(at), call.op.clone()) })
            .collect();
        let mut parts = std::collections::BTreeMap::<String, (Vec<u32>, Vec<Call<_>>)>::new();
        for (&at, call) in at.iter().zip(ops) {
            parts.entry(key(at)).or_default().1.push(call);
        }
        let peer = peer::texts(&keyed);
        let (time, outcomes) = best(20, || check_parts(&Text, &parts, Limits::default()));
        assert_eq!(Some(outcomes.values().all(|o| matches!(o, Outcome::Linearizable(_)))), peer.1, "{name}");
        row(&format!("B2 {name}, by key"), time, Some(peer));
        let (time, answer) = ours(&PerKey::new(Text), &keyed, 1);
        assert_eq!(answer, peer.1, "{name}");
        row(&format!("B2 {name}, not by key"), time, None);
    }
}

/// B3: registers of Knossos.
fn knossos(folder: &Path) {
    let (mut sum, mut theirs, mut count, mut over) = (Duration::ZERO, Duration::ZERO, 0, 0);
    for verdict in ["good", "bad"] {
        for (name, bytes) in files(&folder.join(verdict)) {
            let read = foreign::read_operations(&bytes).expect("because it was read before");
            let (paired, _) = calls::pair(&read.ops);
            let (_, calls) = reading::register(&paired, Refused::TellsNothing, true);
            let (time, answer) = ours(&Register { start: Value::Int(0) }, &calls, 5);
            let peer = peer::values(&calls, &Value::Int(0));
            assert_eq!(answer, Some(verdict == "good"), "{name}");
            over += u32::from(peer.1.is_none());
            (sum, theirs, count) = (sum + time, theirs + peer.0, count + 1);
        }
    }
    row(&format!("B3 {count} files of knossos, sum ({over} over for the peer)"), sum, Some((theirs, Some(true))));
}

/// B5: registers with values 0 to 4.
fn small_values() {
    for (operations, clients, lost, with_peer) in [
        (1_000, 10, 0, true),
        (1_000, 20, 0, true),
        (1_000, 30, 0, false),
        (1_000, 40, 0, false),
        (1_000, 50, 0, false),
        (1_000, 20, 20, true),
        (1_000, 30, 50, false),
        (10_000, 5, 0, true),
        (10_000, 20, 10, false),
        (10_000, 30, 0, false),
        (100_000, 5, 0, false),
        (200_000, 5, 0, false),
        (100_000, 20, 0, false),
    ] {
        let shape = Shape { operations, clients, lost, seed: 7 };
        let calls = register::small_values(shape, 5);
        let (time, answer) = ours(&Register { start: 0 }, &calls, 3);
        let name = format!("B5 small values, {operations} × {clients} clients, {} % lost", lost as f64 / 10.0);
        let name = if answer == Some(true) { name } else { format!("{name}: {answer:?}") };
        row(&name, time, with_peer.then(|| peer::numbers(&calls)));
    }
}

/// B4: versions.
fn versions() {
    for (operations, clients, lost) in [
        (10_000, 10, 0),
        (100_000, 10, 0),
        (1_000_000, 10, 0),
        (1_000_000, 100, 0),
        (1_000_000, 100, 50),
        (2_000_000, 100, 0),
    ] {
        let ops = plants::compare_and_set(Shape { operations, clients, lost, seed: 7 });
        let (time, outcome) = best(5, || versioned::check(&ops, World::CLOSED));
        assert!(matches!(outcome, versioned::Outcome::Linearizable(_)));
        let name = format!("B4 versions, {operations} × {clients} clients, {} % lost", lost as f64 / 10.0);
        row(&name, time, None);
    }
}

/// B8: the same with something wrong at 10, 50 and 99 percent.
fn planted() {
    let valid = plants::compare_and_set(Shape { operations: 1_000_000, clients: 10, lost: 1, seed: 7 });
    for anomaly in plants::Anomaly::ALL {
        for percent in [10, 50, 99] {
            let mut ops = valid.clone();
            let at = f64::from(percent) / 100.0;
            let Some(planted) = plants::plant(&mut ops, anomaly, at, plants::Kind::Broken) else { continue };
            let (time, outcome) = best(3, || versioned::check(&ops, World::CLOSED));
            let versioned::Outcome::Violation(v) = outcome else { panic!("{anomaly:?} at {percent} % not found") };
            assert!(planted.guilty.contains(&v.culprit), "{anomaly:?} at {percent} %");
            row(&format!("B8 1000000 versions, {anomaly:?} at {percent} %, pair named"), time, None);
        }
    }
}

/// Reading files: a million operations, two million lines.
fn reading_files() {
    let mut entries = Vec::new();
    for (i, call) in (0u64..1_000_000).zip(std::iter::repeat(())).map(|(i, ())| (i, i)) {
        for kind in [OpType::Invoke, OpType::Ok] {
            let value = Value::Map(vec![
                ("version".into(), Value::Int(call as i64)),
                ("id".into(), Value::Str(format!("w{call}"))),
                ("holder".into(), Value::Str("m1-1".into())),
            ]);
            entries.push(Entry::Op(Op {
                index: entries.len() as u64,
                time: i * 1000 + u64::from(kind == OpType::Ok),
                process: i % 6,
                kind,
                f: "read".into(),
                key: Some("rackrift/lease-0".into()),
                client: Some("m1-1".into()),
                value: if kind == OpType::Invoke { Value::Nil } else { value },
                error: None,
            }));
        }
    }
    let header = Header { rackrift_history: 1, origin: String::new(), run: "r".into() };
    let bytes = jsonl::write(&header, &entries);
    let (time, read) = best(3, || jsonl::read(&bytes).map(|h| h.entries.len()));
    assert_eq!(read, Ok(entries.len()));
    row(&format!("reading 1000000 operations, JSON Lines, {} MB", bytes.len() >> 20), time, None);
    let ops: Vec<Op> = entries
        .into_iter()
        .filter_map(|e| if let Entry::Op(op) = e { Some(op) } else { None })
        .collect();
    let text = edn::write(&ops);
    let (time, read) = best(1, || edn::read(text.as_bytes()).map(|h| h.ops.len()));
    assert_eq!(read, Ok(ops.len()));
    row(&format!("reading 1000000 operations, EDN, {} MB", text.len() >> 20), time, None);
}
