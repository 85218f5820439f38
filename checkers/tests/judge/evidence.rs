//! Did the fault bite, is the evidence there, are the hosts clean.

use rackrift_checkers::history::{Entry, FaultPhase};
use rackrift_checkers::verdict::Verdict;

use super::support::{Run, s};
use super::{check, expect, names, planted, verdict};

const COVERAGE: &str = "fault-coverage/rack-split-1";

#[test]
fn a_suite_without_its_partition_is_invalid_not_passed() {
    let run = planted(|plan| {
        plan.cut = None;
        plan.kcm.takeover = None;
        plan.scheduler.takeover = None;
    });
    let coverage = check(&run, COVERAGE);
    expect(&coverage, Verdict::Invalid, None);
    names(&coverage, &["never asked for", "proves nothing"]);
    assert_eq!(verdict(&run).verdict, Verdict::Invalid);
}

#[test]
fn one_edge_that_was_never_seen_cut_makes_the_run_invalid() {
    let mut run = planted(|_| ());
    run.entries.retain(|entry| match entry {
        Entry::Fault(mark) => {
            !(mark.phase == FaultPhase::Observed
                && mark.edge.as_ref().is_some_and(|(a, b)| a == "w1" && b == "lb"))
        }
        _ => true,
    });
    let coverage = check(&run, COVERAGE);
    expect(&coverage, Verdict::Invalid, Some("fault-not-observed"));
    names(&coverage, &["w1 → lb", "1 of 30"]);
    assert_eq!(verdict(&run).verdict, Verdict::Invalid);
}

#[test]
fn an_edge_seen_open_during_the_cut_makes_the_run_invalid_and_after_the_heal_it_does_not() {
    let opened = |when: f64| -> Run {
        let mut run = planted(|_| ());
        for entry in &mut run.entries {
            if let Entry::Fault(mark) = entry
                && mark.phase == FaultPhase::Observed
                && mark.edge.as_ref().is_some_and(|(a, b)| a == "w1" && b == "lb")
                && mark.time > s(60.0)
                && mark.time < s(70.5)
            {
                mark.phase = FaultPhase::Missing;
                mark.time = s(when);
            }
        }
        run
    };
    let hole = check(&opened(65.0), COVERAGE);
    expect(&hole, Verdict::Invalid, Some("fault-missing"));
    names(&hole, &["w1 → lb"]);
    expect(&check(&opened(128.5), COVERAGE), Verdict::Pass, None);
}

#[test]
fn an_edge_never_seen_healed_is_undecided() {
    let mut run = planted(|_| ());
    run.entries.retain(|entry| {
        !matches!(entry, Entry::Fault(mark) if mark.phase == FaultPhase::Healed
            && mark.edge.as_ref().is_some_and(|(a, _)| a == "w1"))
    });
    let healed = check(&run, "fault-healed/rack-split-1");
    expect(&healed, Verdict::Unknown, None);
    names(&healed, &["w1 → lb", "rackrift heal"]);
}

#[test]
fn missing_sources_are_named() {
    let mut run = planted(|_| ());
    run.entries.retain(|entry| match entry {
        Entry::Clock(sample) => sample.host != "w1",
        Entry::Belief(seen) => !(seen.host == "m1" && seen.component == "kube-scheduler"),
        Entry::Op(op) => op.client.as_deref() != Some("b2"),
        _ => true,
    });
    let evidence = check(&run, "evidence");
    expect(&evidence, Verdict::Unknown, None);
    names(&evidence, &["clock samples of w1", "log of kube-scheduler on m1", "client b2"]);
}

#[test]
fn a_run_that_was_cut_short_says_so() {
    let mut run = planted(|_| ());
    run.facts.cut_short = Some("interrupted".to_owned());
    let complete = check(&run, "run-complete");
    expect(&complete, Verdict::Unknown, None);
    names(&complete, &["interrupted"]);
}

#[test]
fn a_host_that_is_not_as_before_is_a_failure() {
    let mut run = planted(|_| ());
    run.facts.hosts[1].rules_after.push('x');
    let hosts = check(&run, "hosts-clean");
    expect(&hosts, Verdict::Fail, Some("dirty-host"));
    names(&hosts, &["w1", "rules differ"]);
    let mut fired = planted(|_| ());
    fired.facts.hosts[1].dead_man = "fired".to_owned();
    expect(&check(&fired, "hosts-clean"), Verdict::Invalid, None);
    let mut unseen = planted(|_| ());
    unseen.facts.hosts.pop();
    expect(&check(&unseen, "hosts-clean"), Verdict::Unknown, None);
}
