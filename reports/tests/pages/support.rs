//! What the report tests share: the sample run, and a strict reader of the markup that is written.

use std::path::PathBuf;

use rackrift_checkers::facts::{Expect, Facts, NodeFlags};
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::{RunVerdict, Verdict};

/// A run as the reports get it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// `run.json`.
    pub(crate) facts: Facts,
    /// `verdict.json`.
    pub(crate) verdict: RunVerdict,
    /// `history.jsonl` without its header.
    pub(crate) entries: Vec<Entry>,
}

/// The sample run of the judge: what `checkers/examples/sample_run.rs` prints.
pub(crate) fn sample() -> Run {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rack-split");
    let read =
        |name: &str| std::fs::read_to_string(dir.join(name)).expect("because the fixture is in the tree");
    let entry = |line: &str| serde_json::from_str(line).expect("because the sample's history is valid");
    Run {
        facts: serde_json::from_str(&read("run.json")).expect("because the sample's facts are valid"),
        verdict: serde_json::from_str(&read("verdict.json")).expect("because the sample's verdict is valid"),
        entries: read("history.jsonl").lines().skip(1).map(entry).collect(),
    }
}

/// A run of which nothing is known.
pub(crate) fn nothing() -> Run {
    let facts = Facts {
        rackrift_run: 1,
        run: String::new(),
        scenario: String::new(),
        purpose: String::new(),
        seed: 0,
        started: String::new(),
        length: 0,
        lab: String::new(),
        versions: Vec::new(),
        racks: Vec::new(),
        leases: Vec::new(),
        nodes: NodeFlags { monitor_period: 0, grace_period: 0, heartbeat: 0, toleration: 0 },
        faults: Vec::new(),
        pods: Vec::new(),
        clients: Vec::new(),
        expect: Expect::default(),
        hosts: Vec::new(),
        converge_s: 0,
        cut_short: None,
    };
    let verdict = RunVerdict {
        rackrift_verdict: 1,
        run: String::new(),
        scenario: String::new(),
        verdict: Verdict::Skipped,
        answers: Vec::new(),
        checks: Vec::new(),
    };
    Run { facts, verdict, entries: Vec::new() }
}
