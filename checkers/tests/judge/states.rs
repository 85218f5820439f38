//! A fault that waits for a state: did it come.

use rackrift_checkers::facts::UntilFacts;
use rackrift_checkers::history::{Entry, FaultMark, FaultPhase};
use rackrift_checkers::verdict::Verdict;

use super::support::{Run, s};
use super::{check, expect, names, planted};

const REACHED: &str = "reached/rack-split-1";

/// The split as a fault that waits at most `longest` seconds for a move of the lease, which is seen at `reached`.
fn waiting(longest: f64, reached: Option<f64>) -> Run {
    let mut run = planted(|_| ());
    let state = "the lease of kube-scheduler has moved".to_owned();
    run.facts.faults[0].until = Some(UntilFacts { state: state.clone(), longest: s(longest) });
    if let Some(when) = reached {
        let mark = Entry::Fault(FaultMark {
            time: s(when),
            fault: "rack-split-1".to_owned(),
            phase: FaultPhase::Reached,
            edge: None,
            detail: Some(state),
        });
        run.entries.push(mark);
    }
    run
}

/// How long the cut of the planted story is in force, s.
fn held() -> f64 {
    let run = planted(|_| ());
    let first = |phase| {
        run.entries.iter().find_map(|e| match e {
            Entry::Fault(m) if m.phase == phase => Some(m.time),
            _ => None,
        })
    };
    let (asked, healing) =
        (first(FaultPhase::Asked).expect("asked"), first(FaultPhase::Healing).expect("healing"));
    (healing - asked) as f64 / 1e9
}

#[test]
fn a_state_that_came_passes_and_says_after_how_long() {
    let found = check(&waiting(held(), Some(50.06)), REACHED);
    expect(&found, Verdict::Pass, Some("reached"));
    names(&found, &["rack-split-1", "the lease of kube-scheduler has moved"]);
}

#[test]
fn a_state_that_did_not_come_in_the_whole_time_fails() {
    let found = check(&waiting(held(), None), REACHED);
    expect(&found, Verdict::Fail, Some("not-reached"));
    names(&found, &["rack-split-1", "the lease of kube-scheduler has moved"]);
}

#[test]
fn a_fault_that_was_ended_before_its_time_says_nothing_of_its_state() {
    expect(&check(&waiting(held() + 5.0, None), REACHED), Verdict::Unknown, None);
}

#[test]
fn a_fault_that_was_never_asked_for_waited_for_nothing() {
    let mut run = waiting(held(), None);
    run.entries.retain(|e| !matches!(e, Entry::Fault(_)));
    expect(&check(&run, REACHED), Verdict::Invalid, None);
}
