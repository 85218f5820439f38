//! Runs of every size give a whole report: none, little, and far too much.

use crate::markup;
use crate::support::{Run, nothing, sample};
use rackrift_checkers::facts::{ClientFacts, PodsFacts, RackFacts};
use rackrift_checkers::history::{
    At, Belief, BeliefEvent, ClockSample, Entry, FaultMark, FaultPhase, HostTime, LeaseSeen, NodeSeen, Note,
    Op, OpType, PodSeen, PodSource, PodState, Value,
};
use rackrift_checkers::verdict::{CheckResult, Class, Exhibit, Verdict, Witness};
use rackrift_reports::{SuiteEntry, html, junit, markdown, suite_html, suite_markdown, terminal};

fn all(run: &Run) -> [String; 4] {
    let Run { facts, verdict, entries } = run;
    [
        html(facts, verdict, entries),
        markdown(facts, verdict, entries),
        junit(facts, verdict),
        terminal(facts, verdict, entries, 100, true),
    ]
}

#[test]
fn a_run_of_which_nothing_is_known() {
    let [page, markdown, junit, terminal] = all(&nothing());
    let elements = markup::read(&page).unwrap();
    assert!(page.contains("No check was applied"));
    assert!(elements.iter().all(|e| e.name != "figure"), "no empty picture");
    assert!(markdown.contains("nothing checked"));
    assert!(junit.contains("testsuite"));
    assert!(terminal.contains("nothing checked"));
    assert!(suite_html(&[]).contains("Nothing ran"));
    assert!(suite_markdown(&[]).contains("Nothing ran"));
}

#[test]
fn facts_without_a_history_and_a_history_without_facts() {
    let mut run = sample();
    run.entries.clear();
    markup::read(&all(&run)[0]).unwrap();
    let run = Run { entries: sample().entries, ..nothing() };
    markup::read(&all(&run)[0]).unwrap();
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    assert_eq!(all(&sample()), all(&sample()));
}

#[test]
fn every_picture_has_words_and_every_anchor_a_target() {
    let page = &all(&sample())[0];
    let elements = markup::read(page).unwrap();
    let ids: Vec<&str> = elements.iter().filter_map(|e| e.get("id")).collect();
    for svg in elements.iter().filter(|e| e.name == "svg") {
        let named = svg.get("aria-label").is_some_and(|l| !l.is_empty());
        let titled = svg.get("aria-labelledby").is_some_and(|id| ids.contains(&id));
        assert!(named || titled || svg.get("aria-hidden") == Some("true"), "{svg:?}");
    }
    for link in elements.iter().filter_map(|e| e.get("href")).filter_map(|h| h.strip_prefix('#')) {
        assert!(ids.contains(&link), "#{link} leads nowhere");
    }
    for label in elements.iter().filter_map(|e| e.get("aria-labelledby")) {
        assert!(ids.contains(&label), "{label} labels nothing");
    }
}

fn host_time(mono: u64) -> HostTime {
    HostTime { boot: "b".to_owned(), mono }
}

/// A run of `n` entries of every kind, with hundreds of hosts, clients, pods and witnesses.
fn huge(n: u64) -> Run {
    let mut run = sample();
    let hosts = |rack: u64| (0..150).map(|i| (format!("h{rack}-{i}"), vec!["worker".to_owned()])).collect();
    run.facts.racks = (0..12).map(|r| RackFacts { name: format!("rack-{r}"), hosts: hosts(r) }).collect();
    run.facts.pods = (0..300)
        .map(|i| PodsFacts {
            identity: format!("lab/web-{i}"),
            owner_kind: "Deployment".into(),
            wanted: 1,
            grace_s: 5,
        })
        .collect();
    run.facts.clients = (0..300)
        .map(|i| ClientFacts { client: format!("c{i}"), host: format!("h0-{i}"), rack: "rack-0".into() })
        .collect();
    run.facts.faults[0].edges =
        (0..2_000).map(|i| (format!("h0-{}", i % 150), format!("h1-{}", i / 150))).collect();
    run.entries = (0..n).map(|i| entry(i, i * 155_000_000_000 / n)).collect();
    let exhibit = |i: u64| Exhibit {
        who: format!("client c{i}"),
        what: "read version 7".to_owned(),
        from: At::exactly(i),
        to: None,
        line: Some(i),
    };
    let witness = |i: u64| Witness {
        rule: "stale-read".to_owned(),
        sentence: format!("Read {i} was stale by 3 versions."),
        exhibits: vec![exhibit(i), exhibit(i + 1)],
        margin: Some(i),
        excused_by: None,
        at: Some(At::exactly(i * 1_000_000)),
    };
    run.verdict.checks.extend((0..800).map(|c| CheckResult {
        id: format!("check-{c}"),
        title: format!("Check {c}"),
        class: Class::Promised,
        verdict: Verdict::Fail,
        bound: "at most 60 s".to_owned(),
        measured: "70 s".to_owned(),
        sentence: "It took too long.".to_owned(),
        checked: String::new(),
        evidence: String::new(),
        witnesses: (0..60).map(witness).collect(),
        value: Some(70_000_000_000),
    }));
    run
}

fn entry(i: u64, time: u64) -> Entry {
    let at = At { lo: time, hi: time + 1_000_000 };
    match i % 16 {
        0 => Entry::Note(Note { time, text: format!("note {i}") }),
        1 => Entry::Lease(LeaseSeen {
            time,
            via: format!("api:h0-{}", i % 7),
            lease: format!("lab/lease-{}", i % 90),
            version: i,
            uid: String::new(),
            holder: format!("h0-{}_{i}", i % 150),
            duration_s: 15,
            transitions: 1,
            acquire_time: String::new(),
            renew_time: String::new(),
            deleted: false,
            anew: false,
        }),
        2 => Entry::Belief(Belief {
            at,
            host: format!("h0-{}", i % 150),
            component: format!("component-{}", i % 40),
            pid: (i % 1_000) as u32,
            event: if i % 32 == 2 { BeliefEvent::Leads } else { BeliefEvent::Lost },
            host_time: host_time(time),
            line: "line".to_owned(),
        }),
        3 => Entry::Pod(PodSeen {
            from: at,
            to: At { lo: time + 5_000_000, hi: time + 6_000_000 },
            source: PodSource::Heartbeat,
            node: format!("h0-{}", i % 150),
            via: None,
            owner_kind: "Deployment".into(),
            identity: format!("lab/web-{}", i % 300),
            name: format!("web-{i}"),
            uid: format!("uid-{}", i % 9_000),
            container: Some(format!("token-{}", i % 20_000)),
            state: PodState::Running,
            beats: 5,
            gap: 200_000_000,
            host_from: Some(host_time(time)),
            host_to: Some(host_time(time)),
        }),
        4 => Entry::Node(NodeSeen {
            time,
            via: format!("api:h0-{}", i % 3),
            node: format!("h1-{}", i % 150),
            version: i,
            ready: if i.is_multiple_of(3) { "True" } else { "Unknown" }.to_owned(),
            taints: Vec::new(),
        }),
        5 => Entry::Fault(FaultMark {
            time,
            fault: "rack-split-1".to_owned(),
            phase: if i % 32 == 5 { FaultPhase::Missing } else { FaultPhase::Observed },
            edge: Some((format!("h0-{}", i % 150), format!("h1-{}", i % 13))),
            detail: None,
        }),
        6 => Entry::Clock(ClockSample {
            host: "h0-1".to_owned(),
            sent: time,
            received: time + 1,
            host_time: host_time(time),
            resolution: 1,
            wall: None,
        }),
        kind => Entry::Op(Op {
            index: i,
            time,
            process: i / 16 * 8 + kind / 2,
            kind: if kind % 2 == 1 { OpType::Invoke } else { OpType::Ok },
            f: "read".to_owned(),
            key: Some("lab/lease-0".to_owned()),
            client: Some(format!("c{}", i % 400)),
            value: Value::Nil,
            error: None,
        }),
    }
}

#[test]
fn half_a_million_entries_give_a_report_under_two_megabytes() {
    let run = huge(500_000);
    let [page, markdown, _, terminal] = all(&run);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(markdown.len() < 900 * 1024, "{} bytes", markdown.len());
    assert!(terminal.len() < 200_000, "{} bytes", terminal.len());
    markup::read(&page).unwrap();
    assert!(page.contains("not drawn"), "what is left out is said");
    let suite = [SuiteEntry { facts: &run.facts, verdict: &run.verdict, folder: "a" }];
    assert!(suite_html(&suite).len() < 100_000);
}
