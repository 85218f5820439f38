//! Histories with parts missing, cut off or shuffled: never a panic, never a made-up failure.

use std::sync::LazyLock;

use proptest::prelude::*;
use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{At, Entry, FaultPhase, PodSource};
use rackrift_checkers::judge::judge;
use rackrift_checkers::verdict::Verdict;

use super::support::{Plan, Run};

static SAMPLE: LazyLock<Run> = LazyLock::new(|| {
    let mut plan = Plan::rack_split();
    plan.client_rate = 0.5;
    plan.build()
});

/// The verdict of the sample's entries that `keep` keeps.
fn without(drop: impl Fn(&Entry) -> bool) -> (Verdict, String) {
    let entries: Vec<Entry> = SAMPLE.entries.iter().filter(|entry| !drop(entry)).cloned().collect();
    let verdict = judge(&SAMPLE.facts, &entries);
    let told = verdict.checks.iter().filter(|c| c.verdict != Verdict::Pass);
    let told: Vec<String> = told.map(|c| format!("{:?} {}: {}", c.verdict, c.id, c.sentence)).collect();
    (verdict.verdict, told.join("\n"))
}

/// A kind of line, and whether a line is of it.
type Kind = (&'static str, fn(&Entry) -> bool);

const SOURCES: [Kind; 9] = [
    ("leases through etcd", |e| matches!(e, Entry::Lease(seen) if seen.via.starts_with("etcd"))),
    ("leases from outside the minority", |e| matches!(e, Entry::Lease(seen) if !seen.via.ends_with('1'))),
    ("logs", |e| matches!(e, Entry::Belief(_))),
    ("pods on nodes", |e| matches!(e, Entry::Pod(seen) if seen.source != PodSource::Api)),
    ("pods on w1", |e| matches!(e, Entry::Pod(seen) if seen.source != PodSource::Api && seen.node == "w1")),
    ("nodes", |e| matches!(e, Entry::Node(_))),
    ("clocks", |e| matches!(e, Entry::Clock(_))),
    ("fault marks", |e| matches!(e, Entry::Fault(_))),
    ("heal", |e| matches!(e, Entry::Fault(m) if matches!(m.phase, FaultPhase::Healing | FaultPhase::Healed))),
];

#[test]
fn a_missing_source_is_never_a_pass_and_never_a_failure() {
    for (name, source) in SOURCES {
        let (verdict, told) = without(source);
        assert!(
            matches!(verdict, Verdict::Unknown | Verdict::Invalid),
            "without {name}: {verdict:?}\n{told}"
        );
    }
}

#[test]
fn an_empty_history_is_invalid() {
    let (verdict, told) = without(|_| true);
    assert_eq!(verdict, Verdict::Invalid, "{told}");
}

#[test]
fn a_history_that_breaks_off_is_never_a_failure_and_no_pass_before_the_heal() {
    let entries = &SAMPLE.entries;
    let heal = entries.iter().position(|e| matches!(e, Entry::Fault(m) if m.phase == FaultPhase::Healed));
    let heal = heal.expect("the sample heals");
    for part in 0..=60 {
        let upto = entries.len() * part / 60;
        let verdict = judge(&SAMPLE.facts, &entries[..upto]);
        let bad = verdict.checks.iter().find(|c| c.verdict == Verdict::Fail);
        assert!(bad.is_none(), "{part}/60: {bad:?}");
        assert!(upto > heal || verdict.verdict != Verdict::Pass, "{part}/60 passed before the heal");
    }
}

#[test]
fn a_single_host_without_faults_pods_and_clients_is_judged() {
    let mut facts = SAMPLE.facts.clone();
    facts.faults.clear();
    facts.pods.clear();
    facts.clients.clear();
    facts.expect = Default::default();
    facts.racks.truncate(1);
    facts.racks[0].hosts.truncate(1);
    facts.hosts.truncate(1);
    let verdict = judge(&facts, &[]);
    assert_eq!(verdict.verdict, Verdict::Unknown, "{verdict:#?}");
    facts.leases.clear();
    let quiet = judge(&facts, &[]);
    assert_eq!(quiet.answers.len(), 3);
    assert!(quiet.answers.iter().all(|a| a.answer.starts_with("Not looked at")), "{quiet:#?}");
}

/// Facts with some parts left out.
fn facts(without: u8) -> Facts {
    let mut facts = SAMPLE.facts.clone();
    let parts: [fn(&mut Facts); 8] = [
        |f| f.faults.clear(),
        |f| f.leases.clear(),
        |f| f.pods.clear(),
        |f| f.clients.clear(),
        |f| f.racks.truncate(1),
        |f| f.hosts.clear(),
        |f| f.expect.takeovers.clear(),
        |f| f.faults.iter_mut().for_each(|fault| fault.edges.clear()),
    ];
    for (bit, part) in parts.into_iter().enumerate() {
        if without & (1 << bit) != 0 {
            part(&mut facts);
        }
    }
    facts
}

/// Moves the moments of a line to places where sums overflow and intervals lie the wrong way round.
fn bend(entry: &mut Entry, how: u64) {
    let wild = |t: &mut u64| {
        *t = match how % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => t.wrapping_mul(how),
            _ => u64::MAX / 2 + 1,
        };
    };
    let wide = |at: &mut At| {
        wild(&mut at.hi);
        if how.is_multiple_of(3) {
            wild(&mut at.lo);
        }
    };
    match entry {
        Entry::Op(op) => wild(&mut op.time),
        Entry::Lease(seen) => {
            wild(&mut seen.time);
            if how.is_multiple_of(5) {
                (seen.duration_s, seen.transitions, seen.version) = (u32::MAX, u32::MAX, how);
            }
        }
        Entry::Belief(seen) => wide(&mut seen.at),
        Entry::Pod(seen) => {
            wide(&mut seen.from);
            wide(&mut seen.to);
            if how.is_multiple_of(5) {
                (seen.beats, seen.gap) = (u64::MAX, u64::MAX);
            }
        }
        Entry::Node(seen) => wild(&mut seen.time),
        Entry::Fault(mark) => wild(&mut mark.time),
        Entry::Clock(sample) => wild(&mut sample.sent),
        Entry::Note(note) => wild(&mut note.time),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_part_of_a_history_in_any_order_is_judged(
        seed in any::<u64>(),
        keep in 1u64..=100,
        bent in prop_oneof![Just(0u64), 1u64..=30],
        shuffled in any::<bool>(),
        without in prop_oneof![Just(0u8), any::<u8>()],
    ) {
        let mut state = seed | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 3
        };
        let kept = SAMPLE.entries.iter().filter(|_| next() % 100 < keep);
        let mut entries: Vec<Entry> = kept.cloned().collect();
        if shuffled {
            for i in (1..entries.len()).rev() {
                let j = next() as usize % (i + 1);
                entries.swap(i, j);
            }
        }
        for entry in &mut entries {
            let how = next();
            if how % 100 < bent {
                bend(entry, how / 100);
            }
        }
        let facts = facts(without);
        let verdict = judge(&facts, &entries);
        prop_assert!(verdict.checks.iter().all(|c| !c.sentence.is_empty()));
        prop_assert_eq!(verdict, judge(&facts, &entries));
    }
}
