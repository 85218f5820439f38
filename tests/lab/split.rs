//! The scenario the program was made for, on real components.

use std::path::Path;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::verdict::{CheckResult, RunVerdict, Verdict};

use crate::program::{Program, step};

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn checks<'a>(verdict: &'a RunVerdict, prefix: &str) -> Vec<&'a CheckResult> {
    verdict.checks.iter().filter(|c| c.id.starts_with(prefix)).collect()
}

#[track_caller]
fn all_pass(verdict: &RunVerdict, prefix: &str, at_least: usize) {
    let found = checks(verdict, prefix);
    assert!(found.len() >= at_least, "{} checks {prefix}", found.len());
    for check in found {
        assert_eq!(check.verdict, Verdict::Pass, "{check:#?}");
    }
}

pub(crate) fn is_seen_and_judged(program: &Program) {
    step("rack-split: cut for 105 s");
    let run = program.run(&["run", "rack-split", "--seed", "7"], 420);
    eprintln!("{}", run.out);
    run.expect_exit(0);
    let dir = program.runs().join("latest");
    let verdict: RunVerdict = read(&dir.join("verdict.json"));
    let facts: Facts = read(&dir.join("run.json"));
    assert_eq!(verdict.verdict, Verdict::Pass);
    assert_eq!(facts.cut_short, None);
    assert!(facts.length > 105_000_000_000, "shorter than its cut: {} ns", facts.length);
    all_pass(&verdict, "lease-takeover/", 2);
    all_pass(&verdict, "leader-stops/", 2);
    all_pass(&verdict, "lease-linearizable", 1);
    all_pass(&verdict, "node-unknown/", 1);
    all_pass(&verdict, "fault-coverage/", 1);
    all_pass(&verdict, "hosts-clean", 1);
    all_pass(&verdict, "converged", 1);
    all_pass(&verdict, "duplicate-pods/rackrift/db-0", 1);
    all_pass(&verdict, "daemon-undisturbed/", 2);
    let [twice] = checks(&verdict, "duplicate-pods/rackrift/web")[..] else {
        panic!("{:#?}", verdict.checks)
    };
    assert!(twice.measured.contains("certain"), "{twice:#?}");
    assert!(twice.value.is_some_and(|ns| ns > 1_000_000_000), "{twice:#?}");
    for file in ["report.html", "report.md", "junit.xml", "history.jsonl", "journal.jsonl", "plan-1.txt"] {
        let size = std::fs::metadata(dir.join(file)).unwrap_or_else(|e| panic!("{file}: {e}")).len();
        assert!(size > 100, "{file}: {size} bytes");
    }

    step("check and report redo both from the saved run");
    let path = dir.display().to_string();
    let old = std::fs::read(dir.join("verdict.json")).unwrap();
    let html = std::fs::read(dir.join("report.html")).unwrap();
    for file in ["verdict.json", "report.html", "report.md", "junit.xml"] {
        std::fs::remove_file(dir.join(file)).unwrap();
    }
    program.run(&["report", &path], 60).expect_exit(64).expect_says(&["verdict.json"]);
    program.run(&["check", &path], 60).expect_exit(0);
    program.run(&["report", &path], 60).expect_exit(0);
    assert!(std::fs::read(dir.join("verdict.json")).unwrap() == old, "another verdict from the same run");
    assert!(std::fs::read(dir.join("report.html")).unwrap() == html, "another report from the same run");
}

pub(crate) fn without_its_fault_is_invalid(program: &Program) {
    step("the same with the partition left out");
    let scenario = program.folder().join("short.yaml");
    let text = "scenario: short\nproves: nothing\ncannot-prove: anything\n\
        arrange: {leaders: {components: [kube-controller-manager, kube-scheduler], on: \"rack:a\"}}\n\
        workloads: {pods: true, leases: {clients: 1, keys: 2, rate: 5}}\nbaseline: 5s\n\
        faults: [{cut: {name: rack-split, shape: {rack-split: [\"rack:a\", \"all - rack:a\"]}, hold: 15s}}]\nsettle: 30s\n\
        expect: {takeovers: [kube-controller-manager], lease-history: true}\n";
    std::fs::write(&scenario, text).unwrap();
    let path = scenario.display().to_string();
    program.run(&["run", &path, "--without-faults"], 240).expect_exit(2).expect_says(&[
        "invalid",
        "The fault was in force",
        "was planned but never asked for",
    ]);
}
