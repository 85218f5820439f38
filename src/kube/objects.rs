//! Nodes and pods as an API server shows them: the few fields that are observed.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The label that says in which zone, which is to say rack, a node stands.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// A list of objects.
#[derive(Debug, Clone, Deserialize)]
pub struct List<T> {
    /// Of the list itself.
    #[serde(default)]
    pub metadata: ListMetadata,
    // Go writes an empty list as null.
    items: Option<Vec<T>>,
}

impl<T> List<T> {
    /// The objects.
    #[must_use]
    pub fn items(self) -> Vec<T> {
        self.items.unwrap_or_default()
    }
}

/// Metadata of a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMetadata {
    /// The revision at which the list was read.
    pub resource_version: String,
}

/// Metadata of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Set once it is to be deleted, RFC 3339.
    pub deletion_timestamp: Option<String>,
}

/// A node.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    /// Metadata.
    pub metadata: Metadata,
    /// Taints.
    #[serde(default)]
    spec: NodeSpec,
    /// Conditions and versions.
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    taints: Vec<Taint>,
    #[serde(rename = "podCIDRs")]
    pod_ranges: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Taint {
    key: String,
    #[serde(default)]
    effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    conditions: Vec<Condition>,
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// What a node says of its software.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// The kubelet's version.
    pub kubelet_version: String,
    /// The runtime and its version, such as `containerd://1.6.20`.
    pub container_runtime_version: String,
    /// The kernel's version.
    pub kernel_version: String,
    /// The operating system's name.
    pub os_image: String,
}

impl Node {
    /// The Ready condition: `True`, `False`, `Unknown`; empty before the first heartbeat.
    #[must_use]
    pub fn ready(&self) -> &str {
        self.status.conditions.iter().find(|c| c.kind == "Ready").map_or("", |c| &c.status)
    }

    /// Taints as `key:effect`, sorted.
    #[must_use]
    pub fn taints(&self) -> Vec<String> {
        let mut taints: Vec<String> =
            self.spec.taints.iter().map(|t| format!("{}:{}", t.key, t.effect)).collect();
        taints.sort();
        taints
    }

    /// Address ranges that the controller manager gave to its pods, as `10.244.1.0/24`; networks that hand out
    /// addresses by themselves leave it empty.
    #[must_use]
    pub fn pod_ranges(&self) -> &[String] {
        &self.spec.pod_ranges
    }

    /// Its zone by label, if it has one.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.metadata.labels.get(ZONE).map(String::as_str)
    }

    /// What it says of its software.
    #[must_use]
    pub const fn info(&self) -> &NodeInfo {
        &self.status.node_info
    }
}

/// A pod.
#[derive(Debug, Clone, Deserialize)]
pub struct Pod {
    /// Metadata.
    pub metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default, rename = "containerID")]
    container_id: String,
}

impl Pod {
    /// Where it is bound; empty before.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`.
    #[must_use]
    pub fn phase(&self) -> &str {
        &self.status.phase
    }

    /// The id of its first container, without the runtime's name, if it has one.
    #[must_use]
    pub fn container(&self) -> Option<&str> {
        let id = self.status.container_statuses.first()?.container_id.as_str();
        let bare = id.split_once("://").map_or(id, |(_, bare)| bare);
        (!bare.is_empty()).then_some(bare)
    }
}

/// What `/version` answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Such as `v1.34.4`.
    pub git_version: String,
}

impl Version {
    /// Major and minor, such as (1, 34).
    #[must_use]
    pub fn minor(&self) -> Option<(u32, u32)> {
        let mut parts = self.git_version.strip_prefix('v')?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_node_cut_off() {
        let shown = r#"{"metadata":{"name":"w1","resourceVersion":"900","labels":{"topology.kubernetes.io/zone":"a"}},
            "spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"},{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-11-30T23:13:27Z"}]},
            "status":{"conditions":[{"type":"MemoryPressure","status":"Unknown"},{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}],"nodeInfo":{"kubeletVersion":"v1.34.4","kernelVersion":"6.1"}}}"#;
        let node: Node = serde_json::from_str(shown).unwrap();
        assert_eq!((node.ready(), node.zone()), ("Unknown", Some("a")));
        assert_eq!(
            node.taints(),
            ["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"]
        );
        assert_eq!(node.info().kubelet_version, "v1.34.4");
    }

    #[test]
    fn a_pod_before_and_after_its_container_started() {
        let bound = r#"{"metadata":{"name":"web-1","uid":"u"},"spec":{"nodeName":"w1"},"status":{"phase":"Pending"}}"#;
        let pod: Pod = serde_json::from_str(bound).unwrap();
        assert_eq!((pod.node(), pod.phase(), pod.container()), ("w1", "Pending", None));
        let runs = r#"{"metadata":{"name":"web-1","uid":"u","deletionTimestamp":"2026-11-30T23:13:27Z"},"spec":{"nodeName":"w1"},"status":{"phase":"Running","containerStatuses":[{"containerID":"containerd://4f2a"}]}}"#;
        let pod: Pod = serde_json::from_str(runs).unwrap();
        assert_eq!((pod.container(), pod.metadata.deletion_timestamp.is_some()), (Some("4f2a"), true));
    }

    #[test]
    fn versions() {
        let v = |s: &str| Version { git_version: s.into() }.minor();
        assert_eq!(
            (v("v1.34.4"), v("v1.32.0+k3s1"), v("1.34"), v("")),
            (Some((1, 34)), Some((1, 32)), None, None)
        );
    }

    proptest! {
        #[test]
        fn no_json_panics(text: String) {
            let _ = serde_json::from_str::<List<Node>>(&text);
            let _ = serde_json::from_str::<List<Pod>>(&text);
        }
    }
}
