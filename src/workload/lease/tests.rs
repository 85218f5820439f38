//! The whole workload against servers whose behaviour is known, judged by the checkers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rackrift_checkers::history::foreign::read_operations;
use rackrift_checkers::history::{Entry, Op, OpType};
use rackrift_checkers::object::{self, Options};
use rackrift_checkers::verdict::Verdict;

use super::fake::{Manner, Store, serve};
use super::*;

/// Two servers of one cluster, two clients on each, two leases, until `wanted` operations have ended.
async fn run(manner: Manner, wanted: u64) -> (LeaseReport, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    let recorder = Recorder::create(&path, "r1").unwrap();
    let store = Arc::new(Mutex::new(Store::default()));
    let servers: Vec<ApiServer> = ["m1", "m2"]
        .iter()
        .map(|host| ApiServer::at(host, &serve(dir.path(), host, &store, manner)))
        .collect();
    let config = LeaseConfig {
        keys: 2,
        clients: 2,
        period: Duration::from_millis(2),
        deadline: Duration::from_secs(20),
        seed: 7,
        ..LeaseConfig::default()
    };
    let load = start(&config, &servers, &recorder);
    while recorder.close().unwrap().ops < 2 * wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let report = load.stop(Duration::from_secs(60)).await;
    (report, std::fs::read(&path).unwrap())
}

fn ops(history: &[u8]) -> Vec<Op> {
    let text = std::str::from_utf8(history).unwrap();
    let entries = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    entries.filter_map(|entry| if let Entry::Op(op) = entry { Some(op) } else { None }).collect()
}

fn verdicts(history: &[u8]) -> Vec<Verdict> {
    let operations = read_operations(history).unwrap();
    object::check(&operations, &Options::default()).unwrap().into_iter().map(|c| c.verdict).collect()
}

#[tokio::test]
async fn every_operation_is_told_and_every_write_has_an_id_of_its_own() {
    let (report, history) = run(Manner::Lossy, 400).await;
    let ops = ops(&history);
    let mut open: BTreeSet<u64> = BTreeSet::new();
    let mut silent: BTreeSet<u64> = BTreeSet::new();
    let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for op in &ops {
        assert!(!silent.contains(&op.process), "process {} speaks after an unknown end", op.process);
        if op.kind == OpType::Invoke {
            assert!(open.insert(op.process), "process {} has two operations open", op.process);
            if let Some(id) = op.value.get("id").and_then(|id| id.as_str()) {
                assert!(ids.insert(id.to_owned()), "{id} was written twice");
            }
            continue;
        }
        assert!(open.remove(&op.process), "process {} ends what it did not begin", op.process);
        if op.kind == OpType::Info {
            silent.insert(op.process);
        }
        let word = match op.kind {
            OpType::Ok => "ok",
            OpType::Fail => "fail",
            OpType::Info | OpType::Invoke => "info",
        };
        *ended.entry(word).or_default() += 1;
    }
    assert_eq!(open, BTreeSet::new());
    let of = |word: &str| ended.get(word).copied().unwrap_or(0);
    assert_eq!((report.ok, report.fail, report.info), (of("ok"), of("fail"), of("info")));
    assert_eq!((report.operations * 2, report.stuck), (ops.len() as u64, 0));
    // The seams are exercised: answers were lost, compare-and-sets refused, and other writes went through.
    assert!(report.info > 5 && report.fail > 5 && report.ok > 100, "{report}");
    let fs: BTreeSet<&str> = ops.iter().map(|op| op.f.as_str()).collect();
    assert_eq!(fs, BTreeSet::from(["cas", "create", "read"]));
    let clients: BTreeSet<&str> = ops.iter().filter_map(|op| op.client.as_deref()).collect();
    assert_eq!(clients, BTreeSet::from(["m1-1", "m1-2", "m2-1", "m2-2"]));
}

#[tokio::test]
async fn what_a_right_server_answers_is_linearizable_with_lost_answers_too() {
    for manner in [Manner::Good, Manner::Lossy] {
        let (_, history) = run(manner, 300).await;
        assert_eq!(verdicts(&history), [Verdict::Pass, Verdict::Pass], "{manner:?}");
    }
}

#[tokio::test]
async fn stale_reads_are_found() {
    let (report, history) = run(Manner::Stale, 300).await;
    assert_eq!(verdicts(&history), [Verdict::Pass, Verdict::Fail], "{report}");
}

#[tokio::test]
async fn the_first_client_of_each_server_reads_every_lease_once_more() {
    let (_, history) = run(Manner::Good, 50).await;
    let last_of = |client: &str| -> Vec<(String, String)> {
        let ops = ops(&history);
        let own = ops.iter().filter(|op| op.client.as_deref() == Some(client) && op.kind == OpType::Ok);
        let mut last: Vec<_> =
            own.rev().take(2).map(|op| (op.f.clone(), op.key.clone().unwrap_or_default())).collect();
        last.reverse();
        last
    };
    let reads = ["rackrift/lease-0", "rackrift/lease-1"].map(|key| ("read".to_owned(), key.to_owned()));
    assert_eq!((last_of("m1-1"), last_of("m2-1")), (reads.to_vec(), reads.to_vec()));
}

#[test]
fn words_of_the_report() {
    let mut report = LeaseReport { operations: 10, ok: 7, fail: 2, info: 1, ..LeaseReport::default() };
    insta::assert_snapshot!(report);
    (report.skipped, report.stuck) = (12, 1);
    insta::assert_snapshot!(report);
}
