//! Leases and leaders: moves, records, beliefs.

use rackrift_checkers::history::{BeliefEvent, Entry, OpType};
use rackrift_checkers::verdict::{Class, Verdict};

use super::support::{Run, s};
use super::{check, expect, names, planted};

const TAKEOVER: &str = "lease-takeover/kube-controller-manager";
const RECORD: &str = "lease-record/kube-controller-manager";
const STOPS: &str = "leader-stops/kube-controller-manager";
const OVERLAP: &str = "belief-overlap/kube-controller-manager";

#[test]
fn an_early_steal_is_a_failure_and_names_both_versions() {
    let run = planted(|plan| plan.kcm.takeover = Some(32.4));
    let record = check(&run, RECORD);
    expect(&record, Verdict::Fail, Some("early-steal"));
    names(&record, &["m2_b31e77a2", "13.0 s", "m1_5d0c1f6e", "15.0 s"]);
    assert_eq!(record.witnesses[0].exhibits.len(), 2);
    assert!(record.witnesses[0].excused_by.is_some_and(|by| by > s(1.9) && by < s(2.1)));
    let takeover = check(&run, TAKEOVER);
    expect(&takeover, Verdict::Fail, Some("early-takeover"));
    names(&takeover, &["m1", "m2", "13.0 s"]);
}

#[test]
fn a_takeover_just_after_expiry_is_none() {
    let run = planted(|plan| plan.kcm.takeover = Some(34.45));
    expect(&check(&run, RECORD), Verdict::Pass, None);
    expect(&check(&run, TAKEOVER), Verdict::Pass, None);
}

#[test]
fn a_takeover_too_early_by_less_than_the_observers_delay_is_undecided() {
    let run = planted(|plan| plan.kcm.takeover = Some(34.2));
    expect(&check(&run, RECORD), Verdict::Pass, None);
    expect(&check(&run, TAKEOVER), Verdict::Unknown, None);
}

#[test]
fn a_late_takeover_is_a_failure_unless_the_api_server_was_silent_as_long() {
    let late = check(&planted(|plan| plan.kcm.takeover = Some(61.0)), TAKEOVER);
    expect(&late, Verdict::Fail, Some("late-takeover"));
    names(&late, &["41.6 s", "later than the flags allow", "never stalled"]);
    // m2's clients had no answer for some 16 s while etcd elected.
    let excused = check(&planted(|plan| plan.kcm.takeover = Some(45.0)), TAKEOVER);
    expect(&excused, Verdict::Pass, None);
    names(&excused, &["which excuses it"]);
    let in_time = check(&planted(|plan| plan.kcm.takeover = Some(43.1)), TAKEOVER);
    expect(&in_time, Verdict::Pass, None);
    names(&in_time, &["within the 15.0 to 23.8 s"]);
}

#[test]
fn a_read_that_failed_for_want_of_an_answer_is_silence_and_a_refusal_is_none() {
    let ended = |error: &str| {
        let mut run = planted(|plan| plan.kcm.takeover = Some(51.0));
        for entry in &mut run.entries {
            if let Entry::Op(op) = entry
                && op.kind == OpType::Info
            {
                (op.kind, op.error) = (OpType::Fail, Some(error.to_owned()));
            }
        }
        check(&run, TAKEOVER)
    };
    expect(&ended("unread: no answer in 5.0 s"), Verdict::Pass, None);
    expect(&ended("conflict: the object has been modified"), Verdict::Fail, Some("late-takeover"));
}

#[test]
fn a_late_takeover_without_clients_is_undecided() {
    let mut run = planted(|plan| plan.kcm.takeover = Some(61.0));
    run.entries.retain(|entry| !matches!(entry, Entry::Op(_)));
    expect(&check(&run, TAKEOVER), Verdict::Unknown, None);
}

/// The run with everything taken out that m2's controller manager did.
fn without_takeover(mut run: Run) -> Run {
    run.entries.retain(|entry| match entry {
        Entry::Lease(seen) => !(seen.lease.ends_with("controller-manager") && seen.holder.starts_with("m2")),
        Entry::Belief(seen) => !(seen.host == "m2" && seen.event == BeliefEvent::Leads),
        _ => true,
    });
    run
}

#[test]
fn nobody_taking_over_is_a_failure_once_a_dead_connection_no_longer_excuses_it() {
    let never = check(&without_takeover(planted(|_| ())), TAKEOVER);
    expect(&never, Verdict::Fail, Some("no-takeover"));
    names(&never, &["Nobody took the lease", "68.8 s"]);
    let short = check(&without_takeover(planted(|plan| plan.heal = 60.0)), TAKEOVER);
    expect(&short, Verdict::Unknown, None);
    names(&short, &["too short to tell"]);
}

#[test]
fn a_leader_that_renews_through_the_cut_makes_the_run_invalid() {
    let renewed = check(&planted(|plan| plan.kcm.takeover = None), TAKEOVER);
    expect(&renewed, Verdict::Invalid, Some("renewed-while-cut"));
    names(&renewed, &["did not bite"]);
}

#[test]
fn a_leader_outside_the_minority_makes_the_run_invalid() {
    let mut run = planted(|_| ());
    run.facts.expect.takeovers[0].from = "m2".to_owned();
    expect(&check(&run, TAKEOVER), Verdict::Invalid, None);
}

#[test]
fn a_move_where_none_is_expected_is_a_failure() {
    let mut run = planted(|_| ());
    run.facts.expect.takeovers.clear();
    run.facts.expect.steady = vec!["kube-controller-manager".to_owned()];
    let moved = check(&run, "lease-steady/kube-controller-manager");
    expect(&moved, Verdict::Fail, Some("unexpected-move"));
    names(&moved, &["from m1 to m2"]);
    let mut quiet = planted(|plan| {
        plan.cut = None;
        plan.kcm.takeover = None;
    });
    quiet.facts.expect.steady = vec!["kube-controller-manager".to_owned()];
    expect(&check(&quiet, "lease-steady/kube-controller-manager"), Verdict::Pass, None);
}

#[test]
fn two_holders_of_one_revision_are_a_failure_that_names_both() {
    let mut run = planted(|_| ());
    let seen = run.entries.iter_mut().rev().find_map(|entry| match entry {
        Entry::Lease(seen) if seen.lease.ends_with("controller-manager") && seen.via == "etcd:e3" => {
            Some(seen)
        }
        _ => None,
    });
    let seen = seen.expect("the sample has leases");
    seen.holder = "m1_5d0c1f6e".to_owned();
    let version = seen.version;
    let record = check(&run, RECORD);
    expect(&record, Verdict::Fail, Some("two-holders"));
    names(&record, &["m1_5d0c1f6e", "m2_b31e77a2", &version.to_string(), "etcd:e3"]);
    assert_eq!(record.witnesses[0].exhibits.len(), 2);
}

#[test]
fn an_observer_that_lags_tells_nothing_different() {
    let mut run = planted(|_| ());
    for entry in &mut run.entries {
        if let Entry::Lease(seen) = entry
            && seen.via == "etcd:e3"
        {
            seen.time += s(0.4);
        }
    }
    expect(&check(&run, RECORD), Verdict::Pass, None);
}

#[test]
fn transitions_that_do_not_count_a_change_are_a_failure() {
    let run = planted(|plan| plan.kcm.transitions_step = 0);
    expect(&check(&run, RECORD), Verdict::Fail, Some("transitions"));
}

#[test]
fn an_old_leader_that_goes_on_too_long_is_a_failure() {
    let late = planted(|plan| (plan.kcm.lost, plan.kcm.exits) = (35.0, 35.1));
    let stops = check(&late, STOPS);
    expect(&stops, Verdict::Fail, Some("late-stop"));
    names(&stops, &["m1 kube-controller-manager pid 812", "15.7 s", "15.0 s"]);
    let in_time = planted(|plan| (plan.kcm.lost, plan.kcm.exits) = (34.1, 34.2));
    expect(&check(&in_time, STOPS), Verdict::Pass, None);
}

#[test]
fn an_old_leader_that_acts_beside_the_new_one_is_a_failure_with_the_clock_error_that_would_excuse_it() {
    let run = planted(|plan| (plan.kcm.lost, plan.kcm.exits) = (41.0, 41.1));
    let both = check(&run, OVERLAP);
    expect(&both, Verdict::Fail, Some("two-leaders"));
    names(&both, &["m1 kube-controller-manager pid 812", "m2 kube-controller-manager pid 797", "1.5 s"]);
    assert_eq!(both.witnesses[0].excused_by, Some(s(41.0) - s(39.52)));
}

#[test]
fn beliefs_that_may_overlap_within_the_clocks_bounds_are_undecided() {
    let wide = planted(|plan| {
        plan.clock_bound = 1.0;
        (plan.kcm.lost, plan.kcm.exits) = (39.0, 39.1);
    });
    let maybe = check(&wide, OVERLAP);
    expect(&maybe, Verdict::Unknown, Some("two-leaders"));
    names(&maybe, &["may both have led", "need not have"]);
    let narrow = planted(|plan| (plan.kcm.lost, plan.kcm.exits) = (39.0, 39.1));
    expect(&check(&narrow, OVERLAP), Verdict::Pass, None);
}

#[test]
fn a_scheduler_that_leads_on_while_it_releases_is_measured_not_failed() {
    let run = planted(|plan| plan.scheduler.exits = 37.3);
    let both = check(&run, "belief-overlap/kube-scheduler");
    assert_eq!(both.class, Class::NotPromised);
    expect(&both, Verdict::Pass, Some("two-leaders"));
    assert!(both.value.is_some_and(|ns| ns > 970_000_000 && ns < 980_000_000), "{both:?}");
}

#[test]
fn a_leader_whose_end_nobody_saw_is_undecided() {
    let mut run = planted(|_| ());
    run.entries.retain(|entry| {
        !matches!(entry, Entry::Belief(b) if matches!(b.event, BeliefEvent::Lost | BeliefEvent::Exits))
    });
    expect(&check(&run, STOPS), Verdict::Unknown, None);
    expect(&check(&run, OVERLAP), Verdict::Unknown, Some("two-leaders"));
}
