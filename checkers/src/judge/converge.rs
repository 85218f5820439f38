//! After the heal all comes back: leases are held, nodes Ready, pods as many as wanted, none left over.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, witness};
use super::index::Index;
use super::lives::lives;
use super::takeover::holder;
use super::wording::{counted, list, seconds, short_list};
use crate::bounds::SECOND;
use crate::facts::PodsFacts;
use crate::history::{Nanos, NodeSeen, PodSeen, PodSource, PodState};
use crate::verdict::{CheckResult, Class, Verdict};

/// When something had come back, or what still stands in the way.
enum Back {
    /// Since then all was right to the end.
    Since(Nanos),
    /// It was not right when last seen.
    Not(String),
    /// Nothing tells.
    Unseen,
}

/// One check, if something was healed.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    if index.facts.faults.is_empty() {
        return Vec::new();
    }
    vec![converged(index)]
}

fn converged(index: &Index<'_>) -> CheckResult {
    let limit = Nanos::from(index.facts.converge_s) * SECOND;
    let finding =
        Finding::new("converged", "All converged after the heal", Class::Promised).bound(seconds(limit));
    let Some(heal) = index.last_cut().and_then(|cut| cut.healed.or(cut.healing)) else {
        return match index.last_cut() {
            None => finding.invalid("Nothing was cut, so there was nothing to come back from."),
            Some(_) => {
                finding.unknown("The history breaks off before the heal: whether all came back is not known.")
            }
        };
    };
    let subjects = subjects(index, heal);
    let finding = finding
        .checked(counted(subjects.len(), "lease, node and workload", "leases, nodes and workloads"))
        .evidence("leases, nodes and pods through the API servers, containers on the nodes");
    let mut late: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut unseen: Vec<&str> = Vec::new();
    let mut last: (Nanos, &str) = (heal, "nothing had changed");
    for (name, back) in &subjects {
        match back {
            Back::Since(t) if t.saturating_sub(heal) > limit => {
                late.push(format!("{name} took {}", seconds(t.saturating_sub(heal))));
            }
            Back::Since(t) => last = last.max((*t, name)),
            Back::Not(why) => open.push(why.clone()),
            Back::Unseen => unseen.push(name),
        }
    }
    let waited = index.end.saturating_sub(heal);
    if !late.is_empty() || (!open.is_empty() && waited >= limit) {
        let sentence = format!(
            "Not all had come back {} after the heal: {}.",
            seconds(limit),
            short_list(&[late.as_slice(), open.as_slice()].concat(), 4)
        );
        return finding.measured("not converged").fail(witness("not-converged", sentence, Vec::new()));
    }
    if !open.is_empty() {
        return finding.measured("not converged").unknown(format!(
            "Not all had come back when the run ended {} after the heal, {} being allowed: {}.",
            seconds(waited),
            seconds(limit),
            short_list(&open, 4)
        ));
    }
    if !unseen.is_empty() {
        return finding.unknown(format!("Nothing was seen after the heal of {}.", short_list(&unseen, 4)));
    }
    let took = last.0.saturating_sub(heal);
    finding.measured(seconds(took)).value(took).say(
        Verdict::Pass,
        format!("All had come back {} after the heal; last came {}.", seconds(took), last.1),
    )
}

fn subjects(index: &Index<'_>, heal: Nanos) -> Vec<(String, Back)> {
    let leases = index.facts.leases.iter().map(|lease| {
        let back = match index.leases.get(lease.lease.as_str()) {
            None => Back::Unseen,
            Some(record) => match record.versions.last() {
                Some(last) if last.seen.holder.is_empty() || last.seen.deleted => {
                    Back::Not(format!("the lease of {} is held by {}", lease.component, holder(index, last)))
                }
                Some(last) if last.first < heal => {
                    Back::Not(format!("the lease of {} is not renewed", lease.component))
                }
                _ => record
                    .versions
                    .iter()
                    .find(|v| v.first >= heal)
                    .map_or(Back::Unseen, |v| Back::Since(v.first)),
            },
        };
        (format!("the lease of {}", lease.component), back)
    });
    let nodes = index
        .hosts_with("worker")
        .into_iter()
        .map(|node| (format!("node {node}"), node_back(index, node, heal)));
    let pods = index.facts.pods.iter().map(|pods| (pods.identity.clone(), pods_back(index, pods, heal)));
    leases.chain(nodes).chain(pods).collect()
}

/// A node is back once every API server that shows it says Ready and shows no taint of unreachability.
fn node_back(index: &Index<'_>, node: &str, heal: Nanos) -> Back {
    let Some(lines) = index.nodes.get(node) else { return Back::Unseen };
    let well = |seen: &NodeSeen| {
        seen.ready == "True" && !seen.taints.iter().any(|t| t.starts_with("node.kubernetes.io/unreachable"))
    };
    let vias: BTreeSet<&str> = lines.iter().map(|line| line.seen.via.as_str()).collect();
    let mut since = heal;
    for via in vias {
        let of_via: Vec<&NodeSeen> =
            lines.iter().map(|line| line.seen).filter(|seen| seen.via == via).collect();
        let bad = of_via.iter().rposition(|seen| !well(seen));
        match bad.map(|at| of_via.get(at + 1)) {
            None => {}
            Some(Some(good)) => since = since.max(good.time),
            Some(None) => {
                let last = of_via[of_via.len() - 1];
                let taints =
                    if last.taints.is_empty() { String::new() } else { format!(", {}", list(&last.taints)) };
                return Back::Not(format!("node {node} is Ready={}{taints} through {via}", last.ready));
            }
        }
    }
    Back::Since(since)
}

/// A workload is back once as many pods as wanted run, by the API's word, none is terminating, and no other runs on
/// any node. A bare pod or a job's pod need not come back: the one is never recreated, the other may have ended.
fn pods_back(index: &Index<'_>, pods: &PodsFacts, heal: Nanos) -> Back {
    let lines = index.pods.get(pods.identity.as_str()).map(Vec::as_slice).unwrap_or_default();
    let mut seen: Vec<&PodSeen> = lines
        .iter()
        .map(|line| line.seen)
        .filter(|seen| {
            seen.source == PodSource::Api
                && seen.via.as_deref().is_none_or(|via| index.sees_majority(via, seen.from.hi))
        })
        .collect();
    if seen.is_empty() {
        return Back::Unseen;
    }
    seen.sort_by_key(|seen| seen.from);
    let may_end = matches!(pods.owner_kind.as_str(), "Pod" | "Job");
    let mut state: BTreeMap<&str, PodState> = BTreeMap::new();
    let (mut running, mut terminating) = (0u32, 0u32);
    let mut since: Option<Nanos> = None;
    for pod in seen {
        let old = state.insert(&pod.uid, pod.state);
        running =
            running - u32::from(old == Some(PodState::Running)) + u32::from(pod.state == PodState::Running);
        terminating = terminating - u32::from(old == Some(PodState::Terminating))
            + u32::from(pod.state == PodState::Terminating);
        let right = terminating == 0 && (running == pods.wanted || (may_end && running < pods.wanted));
        since = right.then(|| since.unwrap_or(pod.from.hi));
    }
    let Some(since) = since else {
        let marked = if terminating == 0 { String::new() } else { format!(" and {terminating} terminating") };
        return Back::Not(format!("{} has {running} of {} pods{marked}", pods.identity, pods.wanted));
    };
    let lives = lives(index, &pods.identity);
    let on: Vec<String> = lives.iter().filter(|life| life.running).map(|life| life.who()).collect();
    if on.len() > pods.wanted as usize {
        return Back::Not(format!("{} still run for {} ({} wanted)", list(&on), pods.identity, pods.wanted));
    }
    let gone =
        lives.iter().filter_map(|life| life.latest).filter(|&latest| latest >= heal).max().unwrap_or(heal);
    Back::Since(since.max(gone).max(heal))
}
