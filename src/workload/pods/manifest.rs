//! The workload's objects, from the manifests in `workloads/pods` and what differs from lab to lab.
//!
//! # Invariants
//! * Every pod of ours carries [`LABEL`], and its container the same word as its name: whoever sees a pod through an
//!   API server, and whoever sees a container through a node's runtime, know what it belongs to.
//! * Only workers of the inventory are chosen: a pod elsewhere would beat where nobody looks.
//!
//! Composed as values, not filled in as text, because then no image's name and no node's name can become syntax.

use std::fmt;
use std::str::FromStr;

use rackrift_checkers::facts::PodsFacts;
use serde_json::{Map, Value, json};

use super::PodsConfig;
use crate::workload::namespace::NAMESPACE;

/// The label of our pods; its value is a [`Workload`]'s name.
pub const LABEL: &str = "rackrift/workload";

/// Below this folder of every worker each run has a folder for its heartbeats.
pub const HEARTBEATS: &str = "/var/lib/rackrift/heartbeats";

const OBJECTS: &str = include_str!("../../../workloads/pods/objects.yaml");
const POD: &str = include_str!("../../../workloads/pods/pod.yaml");
const HEARTBEAT: &str = include_str!("../../../workloads/pods/heartbeat.sh");

/// What a pod belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// A Deployment of one pod.
    Web,
    /// A StatefulSet of one pod.
    Db,
    /// A DaemonSet.
    Agent,
    /// A Job of one pod.
    Batch,
    /// A pod that nobody makes again.
    Bare,
}

/// That word is no workload's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a workload; there are web, db, agent, batch and bare")]
pub struct NoWorkload(String);

impl Workload {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Web, Self::Db, Self::Agent, Self::Batch, Self::Bare];

    /// Its name: that of the object, of the container and of the label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Db => "db",
            Self::Agent => "agent",
            Self::Batch => "batch",
            Self::Bare => "bare",
        }
    }

    /// The kind of its owner as a history names it.
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

    /// What must be unique or counted: a StatefulSet's ordinal, a DaemonSet's pod of that node, else the object.
    #[must_use]
    pub fn identity(self, pod: &str, node: &str) -> String {
        match self {
            Self::Db => format!("{NAMESPACE}/{pod}"),
            Self::Agent => format!("{NAMESPACE}/{self}@{node}"),
            Self::Web | Self::Batch | Self::Bare => format!("{NAMESPACE}/{self}"),
        }
    }

    /// Whether its pod runs on a preferred node, or on every node.
    const fn is_placed(self) -> bool {
        !matches!(self, Self::Agent)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = NoWorkload;

    fn from_str(name: &str) -> Result<Self, NoWorkload> {
        Self::ALL.into_iter().find(|w| w.name() == name).ok_or_else(|| NoWorkload(name.to_owned()))
    }
}

/// The manifests that come with the program are broken. (Files of ours, so a defect of ours: a test reads them.)
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workloads/pods/{file}: {reason}")]
pub struct BadManifest {
    file: &'static str,
    reason: String,
}

/// All objects as one List, in JSON, for the run whose heartbeats go to the folder named `token`.
///
/// # Errors
/// If the manifests are not what this code expects.
pub fn objects(config: &PodsConfig, token: &str) -> Result<Value, BadManifest> {
    let mut items: Vec<Value> = serde_saphyr::from_multiple(OBJECTS)
        .map_err(|e| BadManifest { file: "objects.yaml", reason: e.to_string() })?;
    for item in &mut items {
        let kind = item["kind"].as_str().unwrap_or_default().to_owned();
        item["metadata"]["namespace"] = json!(NAMESPACE);
        if kind == "Service" {
            continue;
        }
        let workload = item["metadata"]["name"].as_str().unwrap_or_default().parse::<Workload>();
        let workload = workload.map_err(|e| BadManifest { file: "objects.yaml", reason: e.to_string() })?;
        let of_pod = if kind == "Pod" { &mut *item } else { &mut item["spec"]["template"] };
        of_pod["metadata"]["labels"][LABEL] = json!(workload.name());
        let mut spec = pod_spec(config, workload, token)?;
        if let Some(own) = of_pod["spec"].as_object() {
            spec.extend(own.clone());
        }
        of_pod["spec"] = Value::Object(spec);
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
}

fn shared_spec() -> Result<Map<String, Value>, BadManifest> {
    serde_saphyr::from_str(POD).map_err(|e| BadManifest { file: "pod.yaml", reason: e.to_string() })
}

fn pod_spec(config: &PodsConfig, workload: Workload, token: &str) -> Result<Map<String, Value>, BadManifest> {
    let broken = |reason: &str| BadManifest { file: "pod.yaml", reason: reason.to_owned() };
    let mut spec = shared_spec()?;
    let container = spec
        .get_mut("containers")
        .and_then(|c| c.get_mut(0))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| broken("there is no container"))?;
    container.insert("name".to_owned(), json!(workload.name()));
    container.insert("image".to_owned(), json!(config.image));
    container.insert("command".to_owned(), json!(["/bin/sh", "-c", HEARTBEAT]));
    let env = container.get_mut("env").and_then(Value::as_array_mut);
    env.ok_or_else(|| broken("its container has no env"))?
        .push(json!({"name": "WORKLOAD", "value": workload.name()}));
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    let beats = volumes.and_then(|v| v.iter_mut().find(|v| v["name"] == "beats"));
    let beats = beats.ok_or_else(|| broken("there is no volume `beats`"))?;
    beats["hostPath"]["path"] = json!(folder(token));
    let mut affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": config.nodes().map(node_term).collect::<Vec<_>>(),
    }});
    if workload.is_placed() && !config.preferred.is_empty() {
        let preferred: Vec<Value> = config
            .preferred
            .iter()
            .map(|node| json!({"weight": 100, "preference": node_term(node)}))
            .collect();
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = json!(preferred);
    }
    spec.insert("affinity".to_owned(), json!({"nodeAffinity": affinity}));
    Ok(spec)
}

/// By the node's name, not by the label `kubernetes.io/hostname`, because the label may say something else.
fn node_term(node: &str) -> Value {
    json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]})
}

/// The folder on every worker in which the heartbeats of the run with that token are.
#[must_use]
pub fn folder(token: &str) -> String {
    format!("{HEARTBEATS}/{token}")
}

/// What the judge must know of the workload.
///
/// # Errors
/// As [`objects`].
pub fn facts(config: &PodsConfig) -> Result<Vec<PodsFacts>, BadManifest> {
    let grace = shared_spec()?.get("terminationGracePeriodSeconds").and_then(Value::as_u64);
    let grace_s = grace
        .and_then(|g| u32::try_from(g).ok())
        .ok_or(BadManifest { file: "pod.yaml", reason: "it names no grace period".to_owned() })?;
    let of = |workload: Workload, identity: String| PodsFacts {
        identity,
        owner_kind: workload.owner_kind().to_owned(),
        wanted: 1,
        grace_s,
    };
    let mut all = Vec::new();
    for workload in Workload::ALL {
        match workload {
            Workload::Agent => {
                all.extend(config.nodes().map(|node| of(workload, workload.identity("", node))));
            }
            Workload::Db => all.push(of(workload, workload.identity("db-0", ""))),
            _ => all.push(of(workload, workload.identity("", ""))),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> PodsConfig {
        PodsConfig {
            image: "lab.local/busybox:1".into(),
            workers: vec![("w1".into(), "w1".into()), ("w2".into(), "node-2".into())],
            preferred: vec!["w1".into()],
            limit: std::time::Duration::from_secs(60),
        }
    }

    #[test]
    fn the_objects_as_they_are_applied() {
        let objects = objects(&config(), "t0k3n").unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&objects).unwrap());
    }

    #[test]
    fn the_facts_name_every_identity_once() {
        let all: Vec<String> = facts(&config())
            .unwrap()
            .iter()
            .map(|f| format!("{} {} wanted {} grace {}", f.owner_kind, f.identity, f.wanted, f.grace_s))
            .collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn a_hostile_image_name_stays_a_string() {
        let image = "x\", \"hostNetwork\": true, \"y\": \"{{".to_owned();
        let objects = objects(&PodsConfig { image: image.clone(), ..config() }, "t").unwrap();
        let spec = &objects["items"][1]["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["image"], json!(image));
        assert_eq!(spec["hostNetwork"], Value::Null);
    }

    #[test]
    fn names_of_workloads_and_only_they_are_read() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        assert!("POD".parse::<Workload>().unwrap_err().to_string().contains("web, db"));
    }
}
