//! Pods that nothing may touch or bring back: a DaemonSet's pods are neither evicted nor restarted, a bare pod is never
//! recreated.

use super::finding::{Finding, exhibit, witness};
use super::index::{Index, Line};
use super::lives::{Life, beats, lives};
use super::wording::{counted, length, middle, short_uid};
use crate::facts::PodsFacts;
use crate::history::{PodSeen, PodSource, PodState};
use crate::verdict::{CheckResult, Class, Witness};

/// One check a DaemonSet's pod, one a bare pod.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let each = index.facts.pods.iter().filter_map(|pods| match pods.owner_kind.as_str() {
        "DaemonSet" => Some(daemon(index, pods)),
        "Pod" => Some(bare(index, pods)),
        _ => None,
    });
    each.collect()
}

fn daemon(index: &Index<'_>, pods: &PodsFacts) -> CheckResult {
    let name = &pods.identity;
    let lives = lives(index, name);
    let finding = Finding::new(
        format!("daemon-undisturbed/{name}"),
        format!("DaemonSet pod not evicted, not restarted: {name}"),
        Class::Promised,
    )
    .bound("0 evictions, 0 restarts")
    .checked(counted(beats(&lives), "heartbeat", "heartbeats"))
    .evidence("container ids and heartbeats");
    let marked = marked(index, name);
    let restarts: usize = lives.iter().map(Life::restarts).sum();
    let finding = finding.measured(format!(
        "{}, {}",
        counted(usize::from(marked.is_some()), "eviction", "evictions"),
        counted(restarts, "restart", "restarts")
    ));
    if let Some(marked) = marked {
        let sentence = format!(
            "The DaemonSet pod {} on {} was marked for deletion {}; an unreachable node must not evict it.",
            marked.seen.name,
            marked.seen.node,
            index.moment(marked.seen.from.hi)
        );
        let who = format!("pod {}", marked.seen.name);
        let shown = exhibit(who, "marked for deletion", marked.seen.from, None, Some(marked.line));
        return finding.fail(witness("daemon-evicted", sentence, vec![shown]));
    }
    let life = match lives.as_slice() {
        [life] => life,
        [] => {
            let why = format!("No node told of the DaemonSet pod {name}, so whether it ran on is not known.");
            return finding.measured("–").unknown(why);
        }
        // Two at once are not promised away: `duplicates` measures for how long. The one that was there first is judged.
        [old, new, ..] if new.from().hi < old.to().lo => old,
        [old, new, ..] => return finding.fail(replaced(index, old, new)),
    };
    if life.restarts() > 0 {
        return finding.fail(restarted(index, life));
    }
    let (begun, heal) = match index.cut() {
        Some(cut) => (cut.asked.unwrap_or(index.end), cut.healed.or(cut.healing).unwrap_or(index.end)),
        None => (index.end, 0),
    };
    // A file of heartbeats that was not fetched again looks like one that ended: only the runtime's word counts.
    if life.to().hi < heal && life.stopped {
        let sentence = format!(
            "The DaemonSet pod {} ended {} and did not come back.",
            life.who(),
            index.moment(middle(life.to()))
        );
        return finding.measured("ended").fail(witness("daemon-ended", sentence, vec![shown(life)]));
    }
    if life.from().hi > begun || life.to().lo < heal {
        return finding.unknown(format!(
            "{} is only known to have run from {} until {}; it must be followed from before the cut to after the heal.",
            life.who(),
            index.moment(middle(life.from())),
            index.moment(middle(life.to()))
        ));
    }
    finding.value(0).pass(format!(
        "{} ran on in one container {}; its longest pause between heartbeats was {}.",
        life.who(),
        if index.cut().is_some() { "from before the cut to after the heal" } else { "throughout" },
        length(life.gap)
    ))
}

/// The first time that an API server showed a pod of the identity as marked for deletion.
fn marked<'a>(index: &Index<'a>, identity: &str) -> Option<Line<'a, PodSeen>> {
    let lines = index.pods.get(identity)?;
    let marked = |line: &&Line<'a, PodSeen>| {
        line.seen.source == PodSource::Api && line.seen.state == PodState::Terminating
    };
    lines.iter().filter(marked).min_by_key(|line| line.seen.from).copied()
}

fn shown(life: &Life<'_>) -> crate::verdict::Exhibit {
    let who = format!("pod {} (uid {}) on {}", life.name, short_uid(life.uid), life.node);
    exhibit(who, "ran", life.from(), Some(life.to()), Some(life.line))
}

fn replaced(index: &Index<'_>, old: &Life<'_>, new: &Life<'_>) -> Witness {
    let sentence = format!(
        "The DaemonSet pod {} (uid {}) was replaced by {} (uid {}), which ran from {}.",
        old.who(),
        short_uid(old.uid),
        new.who(),
        short_uid(new.uid),
        index.moment(middle(new.from()))
    );
    witness("daemon-replaced", sentence, vec![shown(old), shown(new)])
}

fn restarted(index: &Index<'_>, life: &Life<'_>) -> Witness {
    let tokens = life.containers.values().find(|tokens| tokens.len() > 1);
    let (old, new) = match tokens.map(Vec::as_slice) {
        Some([old, new, ..]) => (*old, *new),
        _ => ("?", "?"),
    };
    // Where signs of life pause longest, one container gave way to the next.
    let pause = life.stretches.windows(2).max_by_key(|pair| pair[1].from.lo.saturating_sub(pair[0].to.hi));
    let when = match pause {
        Some(pair) => {
            format!(
                "{}, after {} without a sign of life",
                index.moment(middle(pair[1].from)),
                length(pair[1].from.lo - pair[0].to.hi)
            )
        }
        None => "at a moment that its heartbeats do not show".to_owned(),
    };
    let sentence =
        format!("The container of DaemonSet pod {} was restarted ({old}, then {new}) {when}.", life.who());
    let mut exhibits = vec![shown(life)];
    exhibits.extend(pause.into_iter().flatten().map(|stretch| {
        exhibit(
            format!("pod {}", life.who()),
            "signs of life",
            stretch.from,
            Some(stretch.to),
            Some(life.line),
        )
    }));
    witness("daemon-restarted", sentence, exhibits)
}

fn bare(index: &Index<'_>, pods: &PodsFacts) -> CheckResult {
    let name = &pods.identity;
    let lives = lives(index, name);
    let finding = Finding::new(
        format!("not-recreated/{name}"),
        format!("Bare pod never recreated: {name}"),
        Class::Promised,
    )
    .bound("1 UID")
    .measured(counted(lives.len(), "UID", "UIDs"))
    .checked(counted(beats(&lives), "heartbeat", "heartbeats"))
    .evidence("UIDs on the nodes and through the API servers");
    match lives.as_slice() {
        [] => finding
            .unknown(format!("No node told of the bare pod {name}, so whether it came back is not known.")),
        [old, new, ..] => {
            let sentence = format!(
                "The bare pod {} (uid {}) was recreated as {} (uid {}) {}; nobody owns it, so nothing may.",
                old.who(),
                short_uid(old.uid),
                new.who(),
                short_uid(new.uid),
                index.moment(middle(new.from()))
            );
            finding.fail(witness("bare-recreated", sentence, vec![shown(old), shown(new)]))
        }
        [life] => {
            let marked = match marked(index, name) {
                Some(line) => format!("was marked for deletion {}", index.moment(line.seen.from.hi)),
                None => "was not marked for deletion".to_owned(),
            };
            let end = match life.latest {
                Some(_) => format!("ran until {}", index.moment(middle(life.to()))),
                None => format!(
                    "was still there {}, when its node last told of it",
                    index.moment(middle(life.to()))
                ),
            };
            finding.pass(format!("{} {marked}, {end}, and was not recreated.", life.who()))
        }
    }
}
