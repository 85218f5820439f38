//! Pods: duplicate windows that are certain, possible or clear; pods that nothing may touch; nodes and evictions.

use rackrift_checkers::history::{Entry, PodSeen, PodSource, PodState};
use rackrift_checkers::verdict::{Class, Verdict};

use super::support::{Run, s};
use super::{check, expect, names, planted, verdict};

const DB: &str = "duplicate-pods/lab/db-0";
const WEB: &str = "duplicate-pods/lab/web";

#[test]
fn an_ordinal_that_runs_twice_is_a_failure_that_names_both_pods() {
    let run = planted(|plan| plan.db_new_start = 128.0);
    let db = check(&run, DB);
    expect(&db, Verdict::Fail, Some("duplicate-pod"));
    names(&db, &["db-0 on w1 (uid 3f8d2b66)", "db-0 on w2 (uid 9a7be210)", "1.6 s", "promises at most 1"]);
    assert_eq!(db.value, i64::try_from(s(1.6) - s(0.004)).ok());
    assert_eq!(db.witnesses[0].exhibits.len(), 2);
    assert_eq!(db.witnesses[0].excused_by, Some(s(1.6)));
    assert_eq!(verdict(&run).verdict, Verdict::Fail);
}

#[test]
fn an_ordinal_that_may_have_run_twice_is_undecided() {
    for (start, bound) in [(129.605, 0.002), (129.0, 0.5)] {
        let db = check(
            &planted(|plan| {
                plan.db_new_start = start;
                plan.clock_bound = bound;
            }),
            DB,
        );
        expect(&db, Verdict::Unknown, Some("duplicate-pod-possible"));
        names(&db, &["may have run at once", "need not have"]);
    }
}

#[test]
fn an_ordinal_whose_pods_lie_apart_passes_with_the_distance() {
    let db = check(&planted(|_| ()), DB);
    expect(&db, Verdict::Pass, None);
    names(&db, &["never ran more than 1 at once", "3.8 s or more"]);
    assert_eq!(db.measured, "clear by 3.8 s");
}

#[test]
fn an_ordinal_with_grace_zero_is_measured() {
    let mut run = planted(|plan| plan.db_new_start = 128.0);
    run.facts.pods[1].grace_s = 0;
    let db = check(&run, DB);
    assert_eq!(db.class, Class::NotPromised);
    expect(&db, Verdict::Pass, Some("duplicate-pod"));
}

#[test]
fn a_deployments_window_is_measured_and_never_fails() {
    let web = check(&planted(|_| ()), WEB);
    assert_eq!(web.class, Class::NotPromised);
    expect(&web, Verdict::Pass, Some("duplicate-pod"));
    names(&web, &["25.9 s", "w1", "w2", "Deployment"]);
    assert_eq!(web.value, i64::try_from(s(25.9) - s(0.004)).ok());
    assert_eq!(web.witnesses[0].excused_by, Some(s(25.9)));
    let job = check(&planted(|_| ()), "duplicate-pods/lab/batch");
    expect(&job, Verdict::Pass, Some("duplicate-pod"));
}

#[test]
fn a_deployments_possible_window_is_no_certain_one() {
    let mut run = planted(|plan| plan.web_replacement = 129.405);
    expect(&check(&run, WEB), Verdict::Unknown, Some("duplicate-pod-possible"));
    run.facts.expect.duplicates.clear();
    let web = check(&run, WEB);
    expect(&web, Verdict::Pass, Some("duplicate-pod-possible"));
    assert_eq!(web.value, Some(0));
}

#[test]
fn a_window_that_was_to_be_shown_and_did_not_open_is_invalid() {
    let mut run = planted(|plan| plan.web_replacement = 135.0);
    expect(&check(&run, WEB), Verdict::Invalid, None);
    run.facts.expect.duplicates.clear();
    expect(&check(&run, WEB), Verdict::Pass, None);
}

#[test]
fn a_restarted_daemon_pod_is_a_failure_that_names_both_containers() {
    let agent = check(&planted(|plan| plan.agent_restart = Some(70.0)), "daemon-undisturbed/lab/agent@w1");
    expect(&agent, Verdict::Fail, Some("daemon-restarted"));
    names(&agent, &["agent-q8w4n on w1", "c-agent-1", "c-agent-1b", "1.2 s"]);
    expect(&check(&planted(|_| ()), "daemon-undisturbed/lab/agent@w1"), Verdict::Pass, None);
}

#[test]
fn an_evicted_daemon_pod_is_a_failure() {
    let mut run = planted(|_| ());
    let api = copies(&run, |pod| pod.identity == "lab/agent@w1" && pod.source == PodSource::Api);
    let marked = api.into_iter().map(|pod| PodSeen { state: PodState::Terminating, ..pod });
    run.entries.extend(marked.map(Entry::Pod));
    expect(&check(&run, "daemon-undisturbed/lab/agent@w1"), Verdict::Fail, Some("daemon-evicted"));
}

/// Copies of what the history says of some pods.
fn copies(run: &Run, of: impl Fn(&PodSeen) -> bool) -> Vec<PodSeen> {
    let pods = run.entries.iter().filter_map(|entry| match entry {
        Entry::Pod(pod) if of(pod) => Some(pod.clone()),
        _ => None,
    });
    pods.collect()
}

/// Adds a second pod of an identity that runs for as long as the first.
fn doubled(identity: &str, uid: &str) -> Run {
    let mut run = planted(|_| ());
    let mine = copies(&run, |pod| pod.identity == identity && pod.source != PodSource::Api);
    let second = mine.into_iter().map(|pod| PodSeen {
        uid: uid.to_owned(),
        name: format!("{}-second", pod.name),
        container: pod.container.map(|c| format!("{c}-second")),
        ..pod
    });
    run.entries.extend(second.map(Entry::Pod));
    run
}

#[test]
fn two_daemon_pods_at_once_are_a_finding_with_length_not_a_failure() {
    let run = doubled("lab/agent@w1", "2222aaaa");
    let twice = check(&run, "duplicate-pods/lab/agent@w1");
    assert_eq!(twice.class, Class::NotPromised);
    expect(&twice, Verdict::Pass, Some("duplicate-pod"));
    assert!(twice.value.is_some_and(|ns| ns > 100_000_000_000));
    expect(&check(&run, "daemon-undisturbed/lab/agent@w1"), Verdict::Pass, None);
    assert_ne!(verdict(&run).verdict, Verdict::Fail);
}

#[test]
fn a_daemon_pod_that_its_node_stopped_for_good_is_a_failure_and_one_that_only_fell_silent_is_undecided() {
    let mut run = planted(|plan| plan.agent_restart = Some(70.0));
    run.entries.retain(|e| !matches!(e, Entry::Pod(p) if p.container.as_deref() == Some("c-agent-1b")));
    let id = "daemon-undisturbed/lab/agent@w1";
    expect(&check(&run, id), Verdict::Fail, Some("daemon-ended"));
    run.entries.retain(
        |e| !matches!(e, Entry::Pod(p) if p.identity == "lab/agent@w1" && p.state == PodState::Stopped),
    );
    expect(&check(&run, id), Verdict::Unknown, None);
}

#[test]
fn a_bare_pod_twice_is_measured_and_its_recreation_is_a_failure_of_its_own() {
    let run = doubled("lab/bare", "2222bbbb");
    let twice = check(&run, "duplicate-pods/lab/bare");
    assert_eq!(twice.class, Class::NotPromised);
    expect(&twice, Verdict::Pass, Some("duplicate-pod"));
    let recreated = check(&run, "not-recreated/lab/bare");
    expect(&recreated, Verdict::Fail, Some("bare-recreated"));
    names(&recreated, &["d41f00aa", "2222bbbb"]);
    expect(&check(&planted(|_| ()), "not-recreated/lab/bare"), Verdict::Pass, None);
}

#[test]
fn a_node_called_unknown_too_early_or_too_late_is_a_failure() {
    // G = 50 s counts from the takeover at 39.5 s; MP = 5 s.
    let id = "node-unknown/w1";
    let early = check(&planted(|plan| plan.w1_unknown = 88.0), id);
    expect(&early, Verdict::Fail, Some("early-unknown"));
    expect(&check(&planted(|plan| plan.w1_unknown = 89.6), id), Verdict::Pass, None);
    let late = check(&planted(|plan| plan.w1_unknown = 126.5), id);
    expect(&late, Verdict::Fail, Some("late-unknown"));
    expect(&check(&planted(|plan| plan.w1_unknown = 124.0), id), Verdict::Pass, None);
}

#[test]
fn a_pod_evicted_before_its_toleration_ends_is_a_failure() {
    let early = check(&planted(|plan| plan.evicted = 100.0), "eviction/w1");
    expect(&early, Verdict::Fail, Some("early-eviction"));
    names(&early, &["7.6 s", "10.0 s"]);
    expect(&check(&planted(|plan| plan.evicted = 102.0), "eviction/w1"), Verdict::Pass, None);
}

#[test]
fn a_node_that_comes_back_late_has_not_converged() {
    // Healed at 128.3 s, 60 s are allowed.
    let late = planted(|plan| {
        plan.w1_ready = 195.0;
        plan.end = 220.0;
    });
    let converged = check(&late, "converged");
    expect(&converged, Verdict::Fail, Some("not-converged"));
    names(&converged, &["node w1"]);
    let in_time = planted(|plan| {
        plan.w1_ready = 186.0;
        plan.end = 220.0;
    });
    expect(&check(&in_time, "converged"), Verdict::Pass, None);
    let cut_off = planted(|plan| plan.w1_ready = 186.0);
    let mut cut_off = cut_off;
    cut_off.entries.retain(|entry| !matches!(entry, Entry::Node(seen) if seen.time > s(155.0)));
    expect(&check(&cut_off, "converged"), Verdict::Unknown, None);
}
