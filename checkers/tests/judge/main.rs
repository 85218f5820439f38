//! The judge on synthetic runs: each check sees what is planted for it, and lets the near miss pass.

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod evidence;
mod leaders;
mod pods;
mod robust;
mod sentences;
mod states;
mod streams;

use rackrift_checkers::judge::judge;
use rackrift_checkers::verdict::{CheckResult, RunVerdict, Verdict};
use support::{Plan, Run};

/// The verdict of a run.
fn verdict(run: &Run) -> RunVerdict {
    judge(&run.facts, &run.entries)
}

/// One check of a run.
fn check(run: &Run, id: &str) -> CheckResult {
    let verdict = verdict(run);
    let ids: Vec<&str> = verdict.checks.iter().map(|c| c.id.as_str()).collect();
    let found = verdict.checks.iter().find(|c| c.id == id);
    found.unwrap_or_else(|| panic!("no check {id} among {ids:?}")).clone()
}

/// The sample run with some moments moved.
fn planted(plant: impl FnOnce(&mut Plan)) -> Run {
    let mut plan = Plan::rack_split();
    plant(&mut plan);
    plan.build()
}

/// The check says this word; a `fail` or a window carries a witness of this rule.
#[track_caller]
fn expect(result: &CheckResult, word: Verdict, rule: Option<&str>) {
    assert_eq!(result.verdict, word, "{}: {}", result.id, result.sentence);
    assert_eq!(result.witnesses.first().map(|w| w.rule.as_str()), rule, "{}: {}", result.id, result.sentence);
    assert!(!result.sentence.is_empty());
}

/// The sentence names all of these.
#[track_caller]
fn names(result: &CheckResult, parts: &[&str]) {
    for part in parts {
        assert!(result.sentence.contains(part), "{part:?} is missing in: {}", result.sentence);
    }
}

#[test]
fn a_run_in_which_every_promise_was_kept_passes() {
    let verdict = verdict(&Plan::rack_split().build());
    let other: Vec<_> = verdict.checks.iter().filter(|c| c.verdict != Verdict::Pass).collect();
    assert!(other.is_empty(), "{other:#?}");
    assert_eq!(verdict.verdict, Verdict::Pass);
    assert_eq!(verdict.answers.len(), 3);
}
