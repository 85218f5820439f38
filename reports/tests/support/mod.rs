//! What the report tests share: the sample run.

use std::path::PathBuf;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::RunVerdict;

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
#[must_use]
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
