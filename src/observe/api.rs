//! What one API server shows: leases of elected components, nodes, our pods. Polled, written when it changes.
//!
//! Polling, not watching, because a watch on an API server that is cut off from etcd stays open and silent, and
//! silence would look like "nothing changed"; a GET fails.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rackrift_checkers::history::{At, Entry, Nanos, NodeSeen, PodSeen, PodSource, PodState};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Seen, Sight};
use crate::kube::client::Client;
use crate::kube::errors::classify;
use crate::kube::objects::{List, Node, Pod};
use crate::kube::proxy::decoded;
use crate::kube::{Answer, ApiServer, Effect, Request, lease};
use crate::run::recorder::Recorder;
use crate::workload::namespace::NAMESPACE;
use crate::workload::pods::manifest::{LABEL, Workload};

/// Leases change every two seconds; who holds one should be known much finer.
const LEASES: Duration = Duration::from_millis(250);

/// Nodes and pods.
const OBJECTS: Duration = Duration::from_millis(500);

/// One question.
const ASK: Duration = Duration::from_secs(2);

/// Watches one API server.
pub struct Poller {
    server: ApiServer,
    via: String,
    leases: BTreeSet<String>,
    recorder: Recorder,
    stop: CancellationToken,
}

impl Poller {
    /// For that API server; of leases only those named `namespace/name`.
    #[must_use]
    pub fn new(
        server: &ApiServer,
        leases: BTreeSet<String>,
        recorder: &Recorder,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            server: server.clone(),
            via: format!("api:{}", server.host),
            leases,
            recorder: recorder.clone(),
            stop: stop.clone(),
        }
    }

    /// Starts its tasks, each with its name.
    #[must_use]
    pub fn start(self) -> Vec<(String, JoinHandle<Seen>)> {
        let named = |what: &str| format!("{what} of {}", self.via);
        let (leases, objects) = (named("leases"), named("nodes and pods"));
        let (server, via) = (self.server.clone(), self.via.clone());
        let (recorder, stop) = (self.recorder.clone(), self.stop.clone());
        let of_objects = Objects { via, recorder, nodes: BTreeMap::new(), pods: BTreeMap::new() };
        vec![
            (leases, tokio::spawn(self.poll_leases())),
            (objects, tokio::spawn(of_objects.poll(server, stop))),
        ]
    }

    async fn poll_leases(self) -> Seen {
        let mut sight = Sight::new(format!("leases of {}", self.via), &self.recorder);
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut client = self.server.client();
        let namespaces: BTreeSet<&str> =
            self.leases.iter().filter_map(|l| l.split_once('/')).map(|(n, _)| n).collect();
        let mut clock = interval(LEASES);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return sight.end(),
                _ = clock.tick() => {}
            }
            for namespace in &namespaces {
                let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
                let answer = client.send(&Request::get(path), ASK).await;
                let time = self.recorder.now();
                let leases = match &answer {
                    Answer::Came { status: 200, body } => {
                        lease::list_from_json(body).map_err(|e| e.to_string())
                    }
                    other => Err(classify(Effect::Read, other).text()),
                };
                match leases {
                    Err(reason) => sight.miss(reason),
                    Ok(leases) => {
                        sight.sees();
                        for lease in leases.iter().filter(|l| self.leases.contains(&l.key())) {
                            if last.insert(lease.key(), lease.version) != Some(lease.version) {
                                self.recorder.record(Entry::Lease(lease.seen(&self.via, time)));
                                sight.wrote(1);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Nodes and pods as last shown.
struct Objects {
    via: String,
    recorder: Recorder,
    nodes: BTreeMap<String, (String, Vec<String>)>,
    pods: BTreeMap<String, PodSeen>,
}

impl Objects {
    async fn poll(mut self, server: ApiServer, stop: CancellationToken) -> Seen {
        let mut sight = Sight::new(format!("nodes and pods of {}", self.via), &self.recorder);
        let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        let mut client = server.client();
        let mut clock = interval(OBJECTS);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return sight.end(),
                _ = clock.tick() => {}
            }
            let nodes = get::<Node>(&mut client, "/api/v1/nodes").await.map(|all| self.nodes(all));
            let pods = get::<Pod>(&mut client, &pods).await.map(|all| self.pods(all));
            sight.wrote(nodes.as_ref().unwrap_or(&0) + pods.as_ref().unwrap_or(&0));
            match nodes.and(pods) {
                Ok(_) => sight.sees(),
                Err(reason) => sight.miss(reason),
            }
        }
    }

    /// Writes what changed of the nodes; how many lines.
    fn nodes(&mut self, nodes: Vec<Node>) -> u64 {
        let mut lines = 0;
        let time = self.recorder.now();
        for node in nodes {
            let now = (node.ready().to_owned(), node.taints());
            if self.nodes.get(&node.metadata.name) == Some(&now) {
                continue;
            }
            self.recorder.record(Entry::Node(NodeSeen {
                time,
                via: self.via.clone(),
                node: node.metadata.name.clone(),
                version: node.metadata.resource_version.parse().unwrap_or_default(),
                ready: now.0.clone(),
                taints: now.1.clone(),
            }));
            lines += 1;
            self.nodes.insert(node.metadata.name, now);
        }
        lines
    }

    /// Writes what changed of our pods; how many lines.
    fn pods(&mut self, pods: Vec<Pod>) -> u64 {
        let mut lines = 0;
        let time = self.recorder.now();
        let mut there = BTreeSet::new();
        for pod in pods {
            let Some(line) = shown(&pod, &self.via, time) else { continue };
            there.insert(line.uid.clone());
            if self.pods.get(&line.uid).is_none_or(|old| old.state != line.state) {
                self.recorder.record(Entry::Pod(line.clone()));
                lines += 1;
            }
            self.pods.insert(line.uid.clone(), line);
        }
        // What is no longer shown is gone, as far as this API server knows.
        let gone: Vec<String> = self.pods.keys().filter(|uid| !there.contains(*uid)).cloned().collect();
        for uid in gone {
            if let Some(old) = self.pods.remove(&uid).filter(|old| old.state != PodState::Stopped) {
                let at = At::exactly(time);
                let line = PodSeen { from: at, to: at, state: PodState::Stopped, ..old };
                self.recorder.record(Entry::Pod(line));
                lines += 1;
            }
        }
        lines
    }
}

async fn get<T: serde::de::DeserializeOwned>(client: &mut Client, path: &str) -> Result<Vec<T>, String> {
    let answer = client.send(&Request::get(path), ASK).await;
    decoded::<List<T>>(&answer).map(List::items)
}

/// A pod of ours as a line; none for others, and for such that do not run yet.
fn shown(pod: &Pod, via: &str, time: Nanos) -> Option<PodSeen> {
    let workload: Workload = pod.metadata.labels.get(LABEL)?.parse().ok()?;
    let state = match (pod.metadata.deletion_timestamp.is_some(), pod.phase()) {
        (_, "Succeeded" | "Failed") => PodState::Stopped,
        (true, _) => PodState::Terminating,
        (false, "Running") => PodState::Running,
        (false, _) => return None,
    };
    let at = At::exactly(time);
    Some(PodSeen {
        from: at,
        to: at,
        source: PodSource::Api,
        node: pod.node().to_owned(),
        via: Some(via.to_owned()),
        owner_kind: workload.owner_kind().to_owned(),
        identity: workload.identity(&pod.metadata.name, pod.node()),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        container: pod.container().map(str::to_owned),
        state,
        beats: 0,
        gap: 0,
        host_from: None,
        host_to: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::theatre::{entries, recorder};

    fn text(uid: &str, extra: &str) -> String {
        format!(
            r#"{{"metadata": {{"name": "web-1", "uid": "{uid}", "labels": {{"{LABEL}": "web"}} {extra}}}"#
        )
    }

    fn pod(extra: &str) -> Option<PodState> {
        let pod: Pod = serde_json::from_str(&text("u", extra)).unwrap();
        shown(&pod, "api:m1", 7).map(|s| s.state)
    }

    #[test]
    fn states_of_a_pod() {
        assert_eq!(pod(r#"}, "status": {"phase": "Running"}"#), Some(PodState::Running));
        assert_eq!(
            pod(r#", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}"#),
            Some(PodState::Terminating)
        );
        assert_eq!(pod(r#"}, "status": {"phase": "Failed"}"#), Some(PodState::Stopped));
        assert_eq!(pod(r#"}, "status": {"phase": "Pending"}"#), None);
    }

    #[test]
    fn foreign_pods_are_passed_over() {
        let pod: Pod =
            serde_json::from_str(r#"{"metadata": {"name": "x"}, "status": {"phase": "Running"}}"#).unwrap();
        assert!(shown(&pod, "api:m1", 7).is_none());
    }

    #[test]
    fn only_what_changes_is_written_and_what_is_no_longer_shown_is_gone() {
        let (recorder, path, _dir) = recorder();
        let via = "api:m1".to_owned();
        let mut objects = Objects { via, recorder, nodes: BTreeMap::new(), pods: BTreeMap::new() };
        let pod = |uid: &str, extra: &str| -> Pod { serde_json::from_str(&text(uid, extra)).unwrap() };
        let runs = r#"}, "status": {"phase": "Running"}"#;
        let marked = r#", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}"#;
        let ended = r#"}, "status": {"phase": "Succeeded"}"#;
        assert_eq!(objects.pods(vec![pod("a", runs), pod("b", runs)]), 2);
        assert_eq!(objects.pods(vec![pod("a", runs), pod("b", runs)]), 0);
        assert_eq!(objects.pods(vec![pod("a", marked), pod("b", ended)]), 2);
        // "a" was marked and is gone; "b" had ended already.
        assert_eq!(objects.pods(vec![]), 1);
        let node = |ready: &str, taint: &str| -> Node {
            serde_json::from_str(&format!(
                r#"{{"metadata": {{"name": "w1", "resourceVersion": "9"}}, "spec": {{"taints": [{taint}]}},
                    "status": {{"conditions": [{{"type": "Ready", "status": "{ready}"}}]}}}}"#
            ))
            .unwrap()
        };
        let taint = r#"{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}"#;
        assert_eq!(objects.nodes(vec![node("True", "")]), 1);
        assert_eq!(objects.nodes(vec![node("True", "")]), 0);
        assert_eq!(objects.nodes(vec![node("Unknown", "")]), 1);
        assert_eq!(objects.nodes(vec![node("Unknown", taint)]), 1);
        let told: Vec<String> = entries(&path)
            .into_iter()
            .map(|e| match e {
                Entry::Pod(p) => format!("{} {:?}", p.uid, p.state),
                Entry::Node(n) => format!("{} {} {:?}", n.node, n.ready, n.taints),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            told,
            [
                "a Running",
                "b Running",
                "a Terminating",
                "b Stopped",
                "a Stopped",
                "w1 True []",
                "w1 Unknown []",
                "w1 Unknown [\"node.kubernetes.io/unreachable:NoExecute\"]",
            ]
        );
    }
}
