//! Waiting for the cluster to converge after the last heal. It judges nothing: the convergence check reads the
//! history; this only decides how long there is something to record.

use std::collections::BTreeMap;
use std::time::Duration;

use rackrift_checkers::facts::{LeaseFacts, PodsFacts};
use tokio::time::Instant;

use super::arrange::read_lease;
use super::recorder::Recorder;
use super::stop::Stop;
use super::tell::Tell;
use crate::kube::objects::{List, Node, Pod};
use crate::kube::proxy::ApiServer;
use crate::workload::namespace::NAMESPACE;
use crate::workload::pods::manifest::{LABEL, Workload};

/// One question to an API server.
const ASK: Duration = Duration::from_secs(3);

/// The cluster must look converged for so long, so that the observers see it too.
const STEADY: Duration = Duration::from_secs(3);

/// What is waited for, beside nodes.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Leases that must be held and renewed.
    pub leases: &'a [LeaseFacts],
    /// Pods that must run.
    pub pods: &'a [PodsFacts],
}

/// Waits until every lease was renewed since now, and every API server shows all nodes Ready and all pods as wanted, at
/// most `limit`. Returns what is still missing, if anything.
pub async fn settle(
    servers: &[ApiServer],
    wanted: &Wanted<'_>,
    limit: Duration,
    recorder: &Recorder,
    stop: &Stop,
    tell: &dyn Tell,
) -> Option<String> {
    let until = Instant::now() + limit;
    let mut since = None;
    let mut first = BTreeMap::new();
    loop {
        let missing = match not_renewed(servers, wanted.leases, &mut first).await {
            None => missing(servers, wanted.pods).await,
            not => not,
        };
        match (&missing, since) {
            (None, None) => since = Some(Instant::now()),
            (None, Some(from)) if Instant::now() - from >= STEADY => return None,
            (None, Some(_)) => {}
            (Some(what), _) => {
                since = None;
                tell.now(&format!("settling: {what}"), None);
            }
        }
        if Instant::now() >= until || stop.asked() || recorder.failed().is_cancelled() {
            return missing;
        }
        stop.wait(Duration::from_millis(500), &recorder.failed()).await;
    }
}

/// The first lease that nobody holds, or that is still at the version that was seen `first`.
async fn not_renewed<'a>(
    servers: &[ApiServer],
    leases: &'a [LeaseFacts],
    first: &mut BTreeMap<&'a str, u64>,
) -> Option<String> {
    for facts in leases {
        let lease = match read_lease(servers, &facts.lease).await {
            Ok(lease) => lease,
            Err(e) => return Some(format!("the lease of {} is not shown: {e}", facts.component)),
        };
        let seen = *first.entry(&facts.lease).or_insert(lease.version);
        if lease.holder.is_empty() || lease.version == seen {
            return Some(format!("the lease of {} is not renewed yet", facts.component));
        }
    }
    None
}

/// The first thing that is not as wanted, by any API server.
async fn missing(servers: &[ApiServer], pods: &[PodsFacts]) -> Option<String> {
    for server in servers {
        let nodes: List<Node> = match server.get("/api/v1/nodes", ASK).await {
            Ok(nodes) => nodes,
            Err(e) => return Some(e),
        };
        for node in nodes.items() {
            if node.ready() != "True" {
                return Some(format!("node {} is {} for {}", node.metadata.name, node.ready(), server.host));
            }
            if let Some(taint) =
                node.taints().into_iter().find(|t| t.contains("unreachable") || t.contains("not-ready"))
            {
                return Some(format!(
                    "node {} has the taint {taint} for {}",
                    node.metadata.name, server.host
                ));
            }
        }
        if pods.is_empty() {
            continue;
        }
        let seen: List<Pod> = match server.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), ASK).await {
            Ok(seen) => seen,
            Err(e) => return Some(e),
        };
        let seen = seen.items();
        if let Some(pod) = seen.iter().find(|p| p.metadata.deletion_timestamp.is_some()) {
            return Some(format!("pod {} is terminating for {}", pod.metadata.name, server.host));
        }
        if let Some(pod) = seen.iter().find(|p| p.phase() == "Pending") {
            return Some(format!("pod {} is pending for {}", pod.metadata.name, server.host));
        }
        if let Some(short) = pods.iter().find_map(|wanted| short_of(wanted, &seen)) {
            return Some(format!("{short} for {}", server.host));
        }
    }
    None
}

/// Says so if fewer pods of an identity run than are wanted. A bare pod is never made again, so none is waited for.
fn short_of(wanted: &PodsFacts, seen: &[Pod]) -> Option<String> {
    if wanted.owner_kind == "Pod" {
        return None;
    }
    let of_it = |pod: &&Pod| {
        let workload = pod.metadata.labels.get(LABEL).and_then(|name| name.parse::<Workload>().ok());
        workload.is_some_and(|w| w.identity(&pod.metadata.name, pod.node()) == wanted.identity)
    };
    let running = seen.iter().filter(of_it).filter(|pod| pod.phase() == "Running").count();
    (running < wanted.wanted as usize)
        .then(|| format!("{running} of {} pods of {} run", wanted.wanted, wanted.identity))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(workload: &str, name: &str, phase: &str) -> Pod {
        let metadata = json!({"name": name, "labels": {LABEL: workload}});
        let pod = json!({"metadata": metadata, "spec": {"nodeName": "w1"}, "status": {"phase": phase}});
        serde_json::from_value(pod).unwrap()
    }

    fn facts(kind: &str, identity: &str) -> PodsFacts {
        PodsFacts { identity: identity.into(), owner_kind: kind.into(), wanted: 1, grace_s: 5 }
    }

    #[test]
    fn each_identity_needs_its_own_pods() {
        let seen =
            [pod("bare", "bare", "Running"), pod("batch", "batch-1", "Failed"), pod("db", "db-0", "Running")];
        assert_eq!(short_of(&facts("StatefulSet", "rackrift/db-0"), &seen), None);
        assert_eq!(
            short_of(&facts("Job", "rackrift/batch"), &seen).as_deref(),
            Some("0 of 1 pods of rackrift/batch run")
        );
        assert_eq!(short_of(&facts("Pod", "rackrift/bare"), &[]), None);
    }
}
