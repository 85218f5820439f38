//! Which pods ran twice: for each identity, when more ran than are wanted, by the nodes' own word.
//!
//! A StatefulSet's ordinal is promised to run at most once (unless its grace period is 0). Of a Deployment, a
//! ReplicaSet, a Job, a DaemonSet or a bare pod nothing is promised: their windows are measured and never fail.

use std::collections::BTreeSet;

use super::finding::{Finding, MOST_WITNESSES, exhibit, witness};
use super::index::Index;
use super::lives::{Life, beats, lives};
use super::windows::{Window, Windows};
use super::wording::{bare_seconds, count, counted, half_width, length, list, seconds, short_uid};
use crate::facts::PodsFacts;
use crate::history::{At, Nanos, PodSource, PodState};
use crate::verdict::{CheckResult, Class, Exhibit, Verdict, Witness};

/// One check an identity; of those that nothing should replace only if a second pod of theirs ran.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let each = index.facts.pods.iter().filter_map(|pods| {
        let lives = lives(index, &pods.identity);
        let replaced = !matches!(pods.owner_kind.as_str(), "DaemonSet" | "Pod");
        (replaced || lives.len() > pods.wanted as usize).then(|| identity(index, pods, &lives))
    });
    each.collect()
}

/// Whether Kubernetes promises that no more than wanted run.
fn promised(pods: &PodsFacts) -> bool {
    pods.owner_kind == "StatefulSet" && pods.grace_s > 0
}

fn identity(index: &Index<'_>, pods: &PodsFacts, lives: &[Life<'_>]) -> CheckResult {
    let name = &pods.identity;
    let (title, class, bound) = if promised(pods) {
        ("StatefulSet: at most one per ordinal", Class::Promised, format!("at most {}", pods.wanted))
    } else {
        ("More copies than wanted", Class::NotPromised, format!("not promised; {} wanted", pods.wanted))
    };
    let finding = Finding::new(format!("duplicate-pods/{name}"), format!("{title}: {name}"), class)
        .bound(bound)
        .checked(format!(
            "{}, {}",
            counted(lives.len(), "pod", "pods"),
            counted(beats(lives), "heartbeat", "heartbeats")
        ))
        .evidence(evidence(lives));
    let unseen = unseen(index, name, lives);
    let windows = Windows::of(lives, pods.wanted as usize, index.end);
    if let Some(gravest) = windows.certain.iter().max_by_key(|window| window.length()) {
        return certain(index, pods, lives, &windows, gravest, finding);
    }
    if lives.is_empty() || !unseen.is_empty() {
        let which = if unseen.is_empty() { "any pod".to_owned() } else { list(&unseen) };
        return finding.unknown(format!(
            "No node told of {which} of {name}, so whether copies ran at once is not known."
        ));
    }
    if let Some(window) = windows.possible.iter().max_by_key(|window| window.length()) {
        return possible(index, pods, lives, window, finding);
    }
    clear(index, pods, lives, finding)
}

/// Pods that the API shows as running on a node that itself tells nothing of them.
fn unseen(index: &Index<'_>, identity: &str, lives: &[Life<'_>]) -> Vec<String> {
    let lines = index.pods.get(identity).map(Vec::as_slice).unwrap_or_default();
    let told: BTreeSet<&str> = lives.iter().map(|life| life.uid).collect();
    let mut unseen: Vec<String> = lines
        .iter()
        .map(|line| line.seen)
        .filter(|seen| seen.source == PodSource::Api && seen.state == PodState::Running)
        .filter(|seen| !told.contains(seen.uid.as_str()))
        .map(|seen| format!("pod {} on {}", seen.name, seen.node))
        .collect();
    unseen.sort();
    unseen.dedup();
    unseen
}

fn evidence(lives: &[Life<'_>]) -> String {
    let nodes: BTreeSet<&str> = lives.iter().map(|life| life.node).collect();
    let nodes: Vec<&str> = nodes.into_iter().collect();
    if nodes.is_empty() { "none".to_owned() } else { format!("heartbeats and runtime of {}", list(&nodes)) }
}

fn certain(
    index: &Index<'_>,
    pods: &PodsFacts,
    lives: &[Life<'_>],
    windows: &Windows,
    gravest: &Window,
    finding: Finding,
) -> CheckResult {
    let mut certain: Vec<&Window> = windows.certain.iter().collect();
    certain.sort_by_key(|window| std::cmp::Reverse(window.length()));
    let witnesses: Vec<Witness> = certain
        .iter()
        .take(MOST_WITNESSES)
        .map(|window| duplicate(index, pods, lives, windows, window))
        .collect();
    let sentence = witnesses[0].sentence.clone();
    let excuse = witnesses[0].excused_by.unwrap_or_else(|| gravest.length());
    let mut finding = finding
        .measured(format!(
            "{} of {} for {}, certain: clocks are known to {}, and only an error of {} would undo it",
            count(gravest.depth),
            pods.wanted,
            length(gravest.length()),
            length(clock_bound(lives)),
            length(excuse)
        ))
        .value(gravest.length());
    for witness in witnesses {
        finding = finding.witness(witness);
    }
    if promised(pods) { finding.say(Verdict::Fail, sentence) } else { finding.pass(sentence) }
}

fn duplicate(
    index: &Index<'_>,
    pods: &PodsFacts,
    lives: &[Life<'_>],
    windows: &Windows,
    window: &Window,
) -> Witness {
    let who: Vec<&Life<'_>> = window.who.iter().map(|&i| &lives[i]).collect();
    // The two that matter: whoever should have ended, and whoever began too soon.
    let (Some(old), Some(new)) = (who.iter().min_by_key(|l| l.to()), who.iter().max_by_key(|l| l.from()))
    else {
        return witness("duplicate-pod", "", Vec::new());
    };
    let allowed = if promised(pods) {
        format!("Kubernetes promises at most {}.", pods.wanted)
    } else {
        format!("Wanted: {}; Kubernetes allows more across a partition.", pods.wanted)
    };
    let sentence = format!(
        "{} pods of {} ({}) certainly ran at once for {}: {} ran on until {}, and {} ran from {}. {allowed}",
        count(window.depth),
        pods.identity,
        pods.owner_kind,
        length(window.length()),
        named(old, promised(pods)),
        index.moment(super::wording::middle(old.to())),
        named(new, promised(pods)),
        index.moment(super::wording::middle(new.from())),
    );
    let exhibits = who.iter().map(|life| shown(life)).collect();
    let mut witness = witness("duplicate-pod", sentence, exhibits);
    let measured = windows.measured.iter().filter(|m| m.from < window.to && m.to > window.from);
    witness.margin = Some(window.length());
    witness.excused_by = measured.map(Window::length).max();
    witness.at = Some(At { lo: window.from, hi: window.to });
    witness
}

/// A pod by name and node; with its UID where two pods bear one name.
fn named(life: &Life<'_>, with_uid: bool) -> String {
    if with_uid { format!("{} (uid {})", life.who(), short_uid(life.uid)) } else { life.who() }
}

fn shown(life: &Life<'_>) -> Exhibit {
    let what = format!("ran, {}", counted(life.beats as usize, "heartbeat", "heartbeats"));
    let who = format!("pod {} (uid {}) on {}", life.name, short_uid(life.uid), life.node);
    exhibit(who, what, life.from(), Some(life.to()), Some(life.line))
}

fn clock_bound(lives: &[Life<'_>]) -> Nanos {
    lives.iter().map(|life| half_width(life.from()).max(half_width(life.to()))).max().unwrap_or(0)
}

fn possible(
    index: &Index<'_>,
    pods: &PodsFacts,
    lives: &[Life<'_>],
    window: &Window,
    finding: Finding,
) -> CheckResult {
    let who: Vec<&Life<'_>> = window.who.iter().map(|&i| &lives[i]).collect();
    let names: Vec<String> = who.iter().map(|life| named(life, promised(pods))).collect();
    let silent = who.iter().find(|life| life.latest.is_none() && index.heard(life.node) < window.to);
    let why = match silent {
        Some(life) => {
            format!("{} told nothing more after {}", life.node, index.moment(index.heard(life.node)))
        }
        None => format!(
            "their moments are known to {}, or {} where only heartbeats tell of a pod",
            length(clock_bound(lives)),
            length(super::lives::BEAT_SLACK)
        ),
    };
    let sentence = format!(
        "{} of {} may have run at once for up to {}, but need not have: {why}.",
        list(&names),
        pods.identity,
        length(window.length())
    );
    let exhibits = who.iter().map(|life| shown(life)).collect();
    let mut witness = witness("duplicate-pod-possible", &sentence, exhibits);
    witness.at = Some(At { lo: window.from, hi: window.to });
    let finding =
        finding.measured(format!("possibly {}, none certain", length(window.length()))).witness(witness);
    let expected = index.facts.expect.duplicates.contains(&pods.identity);
    if promised(pods) || expected { finding.unknown(sentence) } else { finding.value(0).pass(sentence) }
}

fn clear(index: &Index<'_>, pods: &PodsFacts, lives: &[Life<'_>], finding: Finding) -> CheckResult {
    if index.facts.expect.duplicates.contains(&pods.identity) {
        if index.cut().is_some_and(|cut| cut.healing.is_none()) {
            return finding.unknown(format!(
                "{} had not run more than the {} wanted when the history broke off in mid-fault; whether it did \
                 later is not known.",
                pods.identity, pods.wanted
            ));
        }
        return finding.measured(format!("never more than {}", pods.wanted)).value(0).invalid(format!(
            "{} never ran more than the {} wanted, although this scenario is to show such a window: it says nothing \
             about one.",
            pods.identity, pods.wanted
        ));
    }
    let gap = nearest(lives, pods.wanted as usize);
    let finding = finding.value(0).measured(match gap {
        Some(gap) => format!("clear by {}", length(gap)),
        None => format!("never more than {}", pods.wanted),
    });
    let sentence = match gap {
        Some(gap) => format!(
            "{} never ran more than {} at once: between the end of one pod and the start of the next lay {} or more.",
            pods.identity,
            pods.wanted,
            if gap >= crate::bounds::SECOND { seconds(gap) } else { format!("{} s", bare_seconds(gap)) }
        ),
        None => format!(
            "{} never ran more than {} at once; no replacement was exercised.",
            pods.identity, pods.wanted
        ),
    };
    finding.pass(sentence)
}

/// The smallest time between the possible end of a pod and the possible start of one that replaced it.
fn nearest(lives: &[Life<'_>], wanted: usize) -> Option<Nanos> {
    if lives.len() <= wanted {
        return None;
    }
    let mut begins: Vec<Nanos> = lives.iter().map(|life| life.earliest).collect();
    begins.sort_unstable();
    let later = |end: Nanos| begins.get(begins.partition_point(|&from| from < end)).copied();
    lives.iter().filter_map(|life| Some(later(life.latest?)? - life.latest?)).min()
}
