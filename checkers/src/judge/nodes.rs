//! Do the isolated nodes become Unknown, in time and not too early, do the others stay Ready, and are pods evicted
//! no sooner than their toleration allows.
//!
//! Only API servers that reach etcd's majority count: the isolated one goes on showing what it last knew.

use super::finding::{Finding, exhibit, witness};
use super::index::{Index, Line};
use super::takeover::Outcome;
use super::wording::{bare_seconds, counted, length, list, seconds};
use crate::bounds::{Between, LeaseBounds, NodeBounds, SEEN_WITHIN};
use crate::history::{At, Nanos, NodeSeen, PodSource, PodState};
use crate::verdict::{CheckResult, Class, Verdict};

/// The component that judges nodes.
const NODE_CONTROLLER: &str = "kube-controller-manager";

/// One check an expected Unknown node, one for all others, one for evictions.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let expected = &index.facts.expect.unknown_nodes;
    let mut results: Vec<CheckResult> = expected.iter().map(|node| becomes_unknown(index, node)).collect();
    results.extend(others_ready(index));
    results.extend(expected.iter().filter_map(|node| tolerated(index, node)));
    results
}

/// What API servers on the majority's side showed of `node`.
fn shown<'a>(index: &Index<'a>, node: &str) -> Vec<Line<'a, NodeSeen>> {
    let lines = index.nodes.get(node).map(Vec::as_slice).unwrap_or_default();
    lines.iter().filter(|line| index.sees_majority(&line.seen.via, line.seen.time)).copied().collect()
}

/// The span in which a silent node must become Unknown, and what it counts from.
struct Due {
    from: Nanos,
    within: Between,
    words: String,
}

fn due(index: &Index<'_>) -> Option<Due> {
    let silent = index.facts.expect.unknown_nodes.len() as u64;
    let bounds = NodeBounds::of(&index.facts.nodes, silent);
    let cut = index.cut()?;
    let (asked, in_force) = (cut.asked?, cut.in_force.or(cut.asked)?);
    let expected = index.facts.expect.takeovers.iter().find(|t| t.component == NODE_CONTROLLER);
    let due = match expected.map(|expected| Outcome::of(index, expected)) {
        Some(Outcome::Moved(moved)) => Due {
            from: moved.first.first,
            within: bounds.unknown_moved,
            words: format!("after {} took over", moved.to),
        },
        // The move is expected but was not seen: whoever judges the nodes, before or after a takeover.
        Some(_) => {
            let take = index.component(NODE_CONTROLLER).map(|lease| LeaseBounds::of(lease).takeover)?;
            let late = bounds.unknown_moved.after(take).max;
            Due {
                from: asked,
                within: Between { min: bounds.unknown_kept.min, max: late },
                words: "after the cut".into(),
            }
        }
        None => Due { from: in_force, within: bounds.unknown_kept, words: "after the cut".into() },
    };
    Some(due)
}

fn becomes_unknown(index: &Index<'_>, node: &str) -> CheckResult {
    let finding = Finding::new(
        format!("node-unknown/{node}"),
        format!("Silent node becomes Unknown in time: {node}"),
        Class::FromCode,
    );
    let Some(due) = due(index) else {
        return finding
            .invalid(format!("No fault was put in force, so {node} had no reason to become Unknown."));
    };
    let (min, max) = (due.within.min, due.within.max);
    let finding = finding.bound(format!("{} to {} {}", bare_seconds(min), seconds(max), due.words));
    let lines = shown(index, node);
    let since = index.cut().and_then(|cut| cut.asked).unwrap_or(0);
    let Some(unknown) = lines.iter().find(|line| line.seen.ready == "Unknown" && line.seen.time >= since)
    else {
        return never_unknown(index, node, &due, lines.is_empty(), finding);
    };
    let after = unknown.seen.time.saturating_sub(due.from);
    let finding = finding
        .measured(format!("{} {}", seconds(after), due.words))
        .checked(counted(lines.len(), "state", "states"))
        .evidence(format!("node {node} through {}, revision {}", unknown.seen.via, unknown.seen.version))
        .value(after);
    let told = format!("{node} became Unknown {} {}", seconds(after), due.words);
    let exhibit = exhibit(
        format!("node {node}"),
        format!("Ready is Unknown, revision {}, through {}", unknown.seen.version, unknown.seen.via),
        At::exactly(unknown.seen.time),
        None,
        Some(unknown.line),
    );
    // Both moments were seen up to SEEN_WITHIN after they happened.
    if after.saturating_add(SEEN_WITHIN) < min {
        let sentence = format!("{told}, {} before its grace period was over.", length(min - after));
        let mut witness = witness("early-unknown", sentence, vec![exhibit]);
        witness.margin = Some(min - after);
        return finding.fail(witness);
    }
    if after > max.saturating_add(SEEN_WITHIN) {
        let sentence = format!("{told}, {} later than its flags allow.", length(after - max));
        let mut witness = witness("late-unknown", sentence, vec![exhibit]);
        witness.margin = Some(after - max);
        return finding.fail(witness);
    }
    let moment = index.moment(unknown.seen.time);
    // Once is enough where the bound counts from the cut too.
    finding.pass(if told.ends_with("after the cut") {
        format!("{told}.")
    } else {
        format!("{told} ({moment}).")
    })
}

fn never_unknown(index: &Index<'_>, node: &str, due: &Due, unseen: bool, finding: Finding) -> CheckResult {
    if unseen {
        return finding.unknown(format!(
            "No API server with etcd's majority showed node {node}, so its state is not known."
        ));
    }
    let until = index.cut().and_then(|cut| cut.healing).unwrap_or(index.end);
    let lasted = until.saturating_sub(due.from);
    let finding = finding.measured(format!("not within {}", seconds(lasted)));
    if index.cut().is_some_and(|cut| !cut.bit()) {
        return finding.invalid(format!("{node} stayed Ready, for the fault did not bite."));
    }
    if lasted <= due.within.max {
        return finding.unknown(format!(
            "{node} was not called Unknown in the {} {}; up to {} are allowed, so the cut, or what was recorded of it, was too \
             short to tell.",
            seconds(lasted),
            due.words,
            seconds(due.within.max)
        ));
    }
    let sentence = format!(
        "{node} was never called Unknown in the {} {}; its flags give it {}.",
        seconds(lasted),
        due.words,
        seconds(due.within.max)
    );
    finding.fail(witness("never-unknown", sentence, Vec::new()))
}

fn others_ready(index: &Index<'_>) -> Option<CheckResult> {
    let silent = &index.facts.expect.unknown_nodes;
    let isolated = index.isolated();
    let workers = index.hosts_with("worker");
    let others: Vec<&str> = workers
        .into_iter()
        .chain(index.nodes.keys().copied())
        .filter(|node| !silent.iter().any(|s| s == node) && !isolated.contains(node))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    if others.is_empty() {
        return None;
    }
    let title = if silent.is_empty() { "Nodes stay Ready" } else { "Other nodes stay Ready" };
    let finding = Finding::new("nodes-ready", title, Class::FromCode)
        .bound("Ready all the time")
        .checked(counted(others.len(), "node", "nodes"));
    let seen: Vec<(&str, Vec<Line<'_, NodeSeen>>)> =
        others.iter().map(|node| (*node, shown(index, node))).collect();
    for (node, lines) in &seen {
        let Some(bad) = lines.iter().find(|line| line.seen.ready != "True") else { continue };
        let sentence = format!(
            "{node} was shown as Ready={} by {} {}, although nothing cut it off.",
            bad.seen.ready,
            bad.seen.via,
            index.moment(bad.seen.time)
        );
        let what = format!("Ready is {}, revision {}", bad.seen.ready, bad.seen.version);
        let exhibit = exhibit(format!("node {node}"), what, At::exactly(bad.seen.time), None, Some(bad.line));
        return Some(finding.measured(format!("{node} {}", bad.seen.ready)).fail(witness(
            "node-not-ready",
            sentence,
            vec![exhibit],
        )));
    }
    let unseen: Vec<&str> =
        seen.iter().filter(|(_, lines)| lines.is_empty()).map(|(node, _)| *node).collect();
    if !unseen.is_empty() {
        return Some(
            finding.unknown(format!("No API server with etcd's majority showed {}.", list(&unseen))),
        );
    }
    Some(
        finding
            .measured("Ready")
            .evidence("API servers with etcd's majority")
            .pass(format!("{} stayed Ready throughout.", list(&others))),
    )
}

/// P10: no pod is marked for deletion before its toleration has run since its node was tainted NoExecute.
fn tolerated(index: &Index<'_>, node: &str) -> Option<CheckResult> {
    let silent = index.facts.expect.unknown_nodes.len() as u64;
    let bounds = NodeBounds::of(&index.facts.nodes, silent).evicted;
    let lines = shown(index, node);
    let tainted = lines.iter().find(|line| line.seen.ready == "Unknown")?;
    let marked = index
        .pods
        .values()
        .flatten()
        .filter(|line| {
            let pod = line.seen;
            pod.source == PodSource::Api
                && pod.state == PodState::Terminating
                && pod.node == node
                && pod.via.as_deref().is_some_and(|via| index.sees_majority(via, pod.from.hi))
                && pod.from.hi >= tainted.seen.time
        })
        .min_by_key(|line| line.seen.from);
    let finding = Finding::new(
        format!("eviction/{node}"),
        format!("No eviction before the toleration ends: {node}"),
        Class::Promised,
    )
    .bound(format!("{} to {} after Unknown", bare_seconds(bounds.min), seconds(bounds.max)));
    let Some(marked) = marked else {
        return Some(finding.measured("no eviction").say(
            Verdict::Skipped,
            format!("No pod of {node} was marked for deletion while it was Unknown, so no toleration was exercised."),
        ));
    };
    let after = marked.seen.from.hi.saturating_sub(tainted.seen.time);
    let finding = finding
        .measured(format!("{} after Unknown", seconds(after)))
        .evidence(format!("node {node} and pod {} through {}", marked.seen.name, tainted.seen.via))
        .value(after);
    let told = format!(
        "the first pod of {node} ({}) was marked for deletion {} after it became Unknown",
        marked.seen.name,
        seconds(after)
    );
    if after.saturating_add(SEEN_WITHIN) < bounds.min {
        let sentence = format!("Evicted too early: {told}; {} are tolerated.", seconds(bounds.min));
        let exhibits = vec![
            exhibit(
                format!("node {node}"),
                "Unknown",
                At::exactly(tainted.seen.time),
                None,
                Some(tainted.line),
            ),
            exhibit(
                format!("pod {}", marked.seen.name),
                "marked for deletion",
                marked.seen.from,
                None,
                Some(marked.line),
            ),
        ];
        let mut witness = witness("early-eviction", sentence, exhibits);
        witness.margin = Some(bounds.min - after);
        return Some(finding.fail(witness));
    }
    let late = if after > bounds.max.saturating_add(SEEN_WITHIN) {
        "; later than computed, which is allowed"
    } else {
        ""
    };
    Some(finding.pass(format!("As promised, {told}, its toleration being {}{late}.", seconds(bounds.min))))
}
