//! What is applied: one owner of each kind, from `workloads/pods/`.

use std::str::FromStr;

use serde_json::json;

use super::PodsConfig;
use crate::workload::namespace::NAMESPACE;

/// The label that says which workload a pod belongs to.
pub const LABEL: &str = "rackrift-workload";

/// Where heartbeat files lie on a node.
pub const BEATS: &str = "/var/lib/rackrift-beats";

/// Where the node's boot id lies for the heartbeats; gone after a reboot, as it must be.
pub const NODE: &str = "/run/rackrift-node";

/// terminationGracePeriodSeconds: the heartbeat ends at once when told to.
pub const GRACE_S: u32 = 5;

const MANIFESTS: &str = include_str!("../../../workloads/pods/manifests.yaml");
const HEARTBEAT: &str = include_str!("../../../workloads/pods/heartbeat.sh");

/// A workload; its word is also the name of its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workload {
    /// A Deployment of one pod.
    Web,
    /// A StatefulSet of one pod.
    Db,
    /// A DaemonSet.
    Agent,
    /// A Job that never ends.
    Batch,
    /// A pod without owner.
    Bare,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Web, Self::Db, Self::Agent, Self::Batch, Self::Bare];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Db => "db",
            Self::Agent => "agent",
            Self::Batch => "batch",
            Self::Bare => "bare",
        }
    }

    /// The kind of its owner.
    #[must_use]
    pub const fn owner_kind(self) -> &'static str {
        match self {
            Self::Web => "Deployment",
            Self::Db => "StatefulSet",
            Self::Agent => "DaemonSet",
            Self::Batch => "Job",
            Self::Bare => "Pod",
        }
    }

    /// The name of its only pod, where that is known beforehand.
    #[must_use]
    pub const fn first_pod(self) -> &'static str {
        match self {
            Self::Db => "db-0",
            other => other.word(),
        }
    }

    /// What must not, or should not, run twice: a StatefulSet's ordinal, a DaemonSet's pod of a node, else the owner.
    #[must_use]
    pub fn identity(self, pod: &str, node: &str) -> String {
        match self {
            Self::Db => format!("{NAMESPACE}/{pod}"),
            Self::Agent => format!("{NAMESPACE}/{}@{node}", self.word()),
            other => format!("{NAMESPACE}/{}", other.word()),
        }
    }
}

/// Not one of our workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign;

impl FromStr for Workload {
    type Err = Foreign;

    fn from_str(word: &str) -> Result<Self, Foreign> {
        Self::ALL.into_iter().find(|w| w.word() == word).ok_or(Foreign)
    }
}

/// The manifests for a lab.
#[must_use]
pub fn render(config: &PodsConfig) -> String {
    let mut text = MANIFESTS.replace("@NAMESPACE@", NAMESPACE).replace("@LABEL@", LABEL);
    for workload in Workload::ALL {
        let pod = pod(workload, config).to_string();
        text = text.replace(&format!("@POD {}@", workload.word()), &pod);
    }
    text
}

/// A pod's specification; JSON is YAML.
fn pod(workload: Workload, config: &PodsConfig) -> serde_json::Value {
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut pod = json!({
        "terminationGracePeriodSeconds": GRACE_S,
        "automountServiceAccountToken": false,
        "containers": [{
            "name": workload.word(),
            "image": config.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", HEARTBEAT],
            "env": [
                {"name": "WORKLOAD", "value": workload.word()},
                field("POD_NAME", "metadata.name"),
                field("POD_UID", "metadata.uid"),
            ],
            "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
            "volumeMounts": [
                {"name": "beats", "mountPath": "/beats"},
                {"name": "node", "mountPath": "/node", "readOnly": true},
            ],
        }],
        "volumes": [
            {"name": "beats", "hostPath": {"path": BEATS, "type": "DirectoryOrCreate"}},
            {"name": "node", "hostPath": {"path": NODE, "type": "DirectoryOrCreate"}},
        ],
    });
    if matches!(workload, Workload::Batch) {
        pod["restartPolicy"] = json!("OnFailure");
    }
    if !matches!(workload, Workload::Agent) && !config.preferred.is_empty() {
        let near = json!({
            "weight": 100,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": config.preferred}]},
        });
        pod["affinity"] =
            json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}});
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(preferred: &[&str]) -> PodsConfig {
        PodsConfig {
            image: "busybox:stable".to_owned(),
            preferred: preferred.iter().map(|n| (*n).to_owned()).collect(),
            workers: vec![("w1".to_owned(), "w1".to_owned()), ("w2".to_owned(), "w2".to_owned())],
        }
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        let text = render(&config(&["w1"]));
        assert!(!text.lines().any(|l| !l.starts_with('#') && l.contains('@')), "{text}");
        assert_eq!(text.matches("\"hostPath\"").count(), 2 * Workload::ALL.len());
        assert_eq!(text.matches("\"nodeAffinity\"").count(), 4);
        assert_eq!(render(&config(&[])).matches("\"nodeAffinity\"").count(), 0);
    }

    #[test]
    fn facts_name_each_identity_once() {
        let facts = config(&["w1"]).facts();
        let names: Vec<String> = facts.iter().map(|f| format!("{} {}", f.owner_kind, f.identity)).collect();
        insta::assert_snapshot!(names.join("\n"));
    }

    #[test]
    fn words_and_back() {
        for workload in Workload::ALL {
            assert_eq!(workload.word().parse(), Ok(workload));
        }
        assert_eq!("pause".parse::<Workload>(), Err(Foreign));
    }
}
