//! Is the evidence there: each observer, each heartbeat file, each clock.
//!
//! What is missing here makes the checks that need it `unknown`; this check says so in one place.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::index::Index;
use super::wording::{bare_seconds, count, counted, length, short_list};
use crate::bounds::LeaseBounds;
use crate::history::{Nanos, PodSource};
use crate::verdict::{CheckResult, Class};

/// Sources that the run needs, and which of them told something.
#[derive(Default)]
struct Roll {
    present: usize,
    missing: Vec<String>,
}

impl Roll {
    fn call(&mut self, source: impl Into<String>, present: bool) {
        if present {
            self.present += 1;
        } else {
            self.missing.push(source.into());
        }
    }
}

/// One check over all sources, one more if the run did not end by its plan.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let mut results = vec![sources(index)];
    if let Some(why) = &index.facts.cut_short {
        results.push(
            Finding::new("run-complete", "The run ended by its plan", Class::Evidence)
                .bound("to the end")
                .measured(format!("{} s of history", bare_seconds(index.end)))
                .unknown(format!("The run was cut short ({why}): what came after is not known.")),
        );
    }
    results
}

fn sources(index: &Index<'_>) -> CheckResult {
    let mut roll = Roll::default();
    leases(index, &mut roll);
    beliefs(index, &mut roll);
    pods(index, &mut roll);
    clocks(index, &mut roll);
    clients(index, &mut roll);
    let all = roll.present + roll.missing.len();
    let finding = Finding::new("evidence", "The evidence is there", Class::Evidence)
        .bound(counted(all, "source", "sources"))
        .measured(format!("{} of {}", count(roll.present), count(all)))
        .checked(counted(all, "source", "sources"))
        .evidence("lines of the history by source")
        .value(roll.missing.len() as Nanos);
    if roll.missing.is_empty() {
        return finding.pass(format!(
            "All {} told something: etcd, API servers, logs, heartbeats, clocks and clients; round trips to host \
             clocks took at most {}.",
            counted(all, "source", "sources"),
            length(slowest_clock(index))
        ));
    }
    finding.unknown(format!("Missing: {}.", short_list(&roll.missing, 6)))
}

/// Somebody with etcd's majority showed each judged lease from before the cut to the end.
fn leases(index: &Index<'_>, roll: &mut Roll) {
    let expect = &index.facts.expect;
    let judged: BTreeSet<&str> = expect
        .takeovers
        .iter()
        .map(|t| t.component.as_str())
        .chain(expect.steady.iter().map(String::as_str))
        .collect();
    for component in judged {
        let Some(lease) = index.component(component) else {
            roll.call(format!("flags of {component}"), false);
            continue;
        };
        let silence = LeaseBounds::of(lease).takeover.max;
        let begun = index.cut().and_then(|cut| cut.asked).unwrap_or(index.end);
        let seen = index.leases.get(lease.lease.as_str()).is_some_and(|record| {
            record.observers.iter().any(|(via, showing)| {
                via.starts_with("etcd:")
                    && index.always_sees_majority(via)
                    && showing.first <= begun
                    && showing.last.saturating_add(silence) >= index.end
            })
        });
        roll.call(format!("the lease of {component} through an etcd member that was not cut off"), seen);
    }
}

fn beliefs(index: &Index<'_>, roll: &mut Roll) {
    for expected in &index.facts.expect.takeovers {
        for host in [&expected.from].into_iter().chain(&expected.to) {
            let lines = index.beliefs.get(expected.component.as_str());
            let spoke = lines.is_some_and(|lines| lines.iter().any(|line| line.seen.host == *host));
            roll.call(format!("the log of {} on {host}", expected.component), spoke);
        }
    }
    for node in &index.facts.expect.unknown_nodes {
        let seen = index.nodes.get(node.as_str());
        let seen = seen.is_some_and(|lines| {
            lines.iter().any(|line| index.sees_majority(&line.seen.via, line.seen.time))
        });
        roll.call(format!("node {node} through an API server that was not cut off"), seen);
    }
}

/// Each identity's heartbeats, and a last word of each worker after the heal.
fn pods(index: &Index<'_>, roll: &mut Roll) {
    for pods in &index.facts.pods {
        let lines = index.pods.get(pods.identity.as_str());
        let beat =
            lines.is_some_and(|lines| lines.iter().any(|line| line.seen.source == PodSource::Heartbeat));
        roll.call(format!("heartbeats of {}", pods.identity), beat);
    }
    if index.facts.pods.is_empty() {
        return;
    }
    let heal = index.last_cut().and_then(|cut| cut.healed.or(cut.healing)).unwrap_or(0);
    for worker in index.hosts_with("worker") {
        let heard = index.heard(worker);
        roll.call(format!("pods of {worker} as the node itself tells, to after the heal"), heard > heal);
    }
}

fn clocks(index: &Index<'_>, roll: &mut Roll) {
    let spoke: BTreeSet<&str> = index
        .beliefs
        .values()
        .flatten()
        .map(|line| line.seen.host.as_str())
        .chain(
            index
                .pods
                .values()
                .flatten()
                .filter(|l| l.seen.source != PodSource::Api)
                .map(|l| l.seen.node.as_str()),
        )
        .collect();
    for host in spoke {
        let samples = index.clocks.get(host).map_or(0, Vec::len);
        roll.call(format!("two or more clock samples of {host}"), samples >= 2);
    }
}

fn clients(index: &Index<'_>, roll: &mut Roll) {
    if !index.facts.expect.lease_history {
        return;
    }
    for client in &index.facts.clients {
        let spoke = index.ops.iter().any(|line| line.seen.client.as_deref() == Some(&client.client));
        roll.call(format!("operations of client {}", client.client), spoke);
    }
    if index.facts.clients.is_empty() {
        roll.call("operations of any client", !index.ops.is_empty());
    }
}

fn slowest_clock(index: &Index<'_>) -> Nanos {
    let trips = index.clocks.values().flatten().map(|sample| sample.received.saturating_sub(sample.sent));
    trips.max().unwrap_or(0)
}
