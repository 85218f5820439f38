//! Waiting until the pods run, and saying what keeps them from it.

use std::collections::BTreeMap;
use std::time::Duration;

use rackrift_checkers::facts::PodsFacts;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::manifest::{LABEL, Workload};
use super::{PodsConfig, PodsError};
use crate::kube::ApiServer;
use crate::kube::objects::{List, Metadata};
use crate::workload::namespace::NAMESPACE;

/// One question to the API server.
const ASK: Duration = Duration::from_secs(3);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(250);

/// How many missing pods an error names: the first tells why, the last rarely anything else.
const NAMED: usize = 3;

/// A pod with what keeps it from running: more than observers look at.
#[derive(Debug, Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<Container>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    ready: bool,
    image: String,
    state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Held>,
    terminated: Option<Held>,
}

/// Why a container waits or has ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Held {
    reason: String,
    message: String,
}

/// A service account, of which only the name counts.
#[derive(Debug, Deserialize)]
struct Account {
    metadata: Metadata,
}

/// Waits until the namespace has the service account without which no pod is admitted: kube-controller-manager makes
/// it a moment after the namespace, and a bare pod that comes sooner is refused for good.
pub(super) async fn account(server: &ApiServer, config: &PodsConfig, end: Instant) -> Result<(), PodsError> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    loop {
        let missing = match server.get::<List<Account>>(&path, ASK).await {
            Ok(list) => {
                if list.items().iter().any(|account| account.metadata.name == "default") {
                    return Ok(());
                }
                "kube-controller-manager has not made the namespace's service account; is one leading?"
                    .to_owned()
            }
            Err(reason) => reason,
        };
        again(server, config, end, missing).await?;
    }
}

/// Waits until each identity has its pod ready, on a preferred node where that counts.
pub(super) async fn all(
    server: &ApiServer,
    config: &PodsConfig,
    facts: &[PodsFacts],
    end: Instant,
) -> Result<(), PodsError> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    loop {
        let missing = match server.get::<List<Pod>>(&path, ASK).await {
            Ok(list) => {
                let pods = list.items();
                match state(&pods, config, facts)? {
                    None => return Ok(()),
                    Some(missing) => missing,
                }
            }
            Err(reason) => reason,
        };
        again(server, config, end, missing).await?;
    }
}

async fn again(
    server: &ApiServer,
    config: &PodsConfig,
    end: Instant,
    missing: String,
) -> Result<(), PodsError> {
    if Instant::now() < end {
        sleep(PAUSE).await;
        return Ok(());
    }
    let server = format!("{} of {}", server.url, server.host);
    Err(PodsError::NotReady { after: config.limit, server, missing })
}

/// What is still missing; an error if waiting is of no use.
fn state(pods: &[Pod], config: &PodsConfig, facts: &[PodsFacts]) -> Result<Option<String>, PodsError> {
    let mut ready: BTreeMap<String, u32> = BTreeMap::new();
    let mut missing = Vec::new();
    for pod in pods {
        let Some(workload) = pod.workload() else { continue };
        if let Some(error) = pod.without_image() {
            return Err(error);
        }
        let node = pod.spec.node_name.as_str();
        let preferred = &config.preferred;
        if workload != Workload::Agent && !node.is_empty() && !preferred.iter().any(|n| n == node) {
            let (pod, wanted) = (pod.metadata.name.clone(), preferred.join(" or "));
            return Err(PodsError::Misplaced { pod, node: node.to_owned(), wanted });
        }
        match pod.held() {
            None => *ready.entry(workload.identity(&pod.metadata.name, node)).or_default() += 1,
            Some(why) => missing.push(format!("{}: {why}", pod.place())),
        }
    }
    for wanted in facts {
        let there = ready.get(&wanted.identity).copied().unwrap_or_default();
        if there < wanted.wanted {
            missing
                .push(format!("{} {}: {there} of {} run", wanted.owner_kind, wanted.identity, wanted.wanted));
        }
    }
    let more = missing.len().saturating_sub(NAMED);
    missing.truncate(NAMED);
    if more > 0 {
        missing.push(format!("and {more} more"));
    }
    Ok((!missing.is_empty()).then(|| missing.join("; ")))
}

impl Pod {
    fn workload(&self) -> Option<Workload> {
        self.metadata.labels.get(LABEL)?.parse().ok()
    }

    /// `web-1 on w1`.
    fn place(&self) -> String {
        match self.spec.node_name.as_str() {
            "" => format!("{} on no node", self.metadata.name),
            node => format!("{} on {node}", self.metadata.name),
        }
    }

    /// Why it is not ready; none if it is.
    fn held(&self) -> Option<String> {
        if self.metadata.deletion_timestamp.is_some() {
            return Some("terminating".to_owned());
        }
        let container = self.status.container_statuses.first();
        if self.status.phase == "Running" && container.is_some_and(|c| c.ready) {
            return None;
        }
        let unscheduled =
            self.status.conditions.iter().find(|c| c.kind == "PodScheduled" && c.status == "False");
        let held = container.and_then(|c| c.state.waiting.as_ref().or(c.state.terminated.as_ref()));
        Some(match (held, unscheduled) {
            (Some(held), _) => format!("{} {}", held.reason, held.message).trim().to_owned(),
            (None, Some(condition)) => condition.message.clone(),
            (None, None) => self.status.phase.clone(),
        })
    }

    /// The image is not there and will not come. (A first failed pull may yet be followed by a good one.)
    fn without_image(&self) -> Option<PodsError> {
        let container = self.status.container_statuses.first()?;
        let waiting = container.state.waiting.as_ref()?;
        let hopeless = ["ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"];
        hopeless.contains(&waiting.reason.as_str()).then(|| PodsError::Image {
            pod: self.metadata.name.clone(),
            node: self.spec.node_name.clone(),
            image: container.image.clone(),
            reason: format!("{}: {}", waiting.reason, waiting.message),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config() -> PodsConfig {
        PodsConfig {
            image: "busybox:1".into(),
            workers: vec![("w1".into(), "w1".into()), ("w2".into(), "w2".into())],
            preferred: vec!["w1".into()],
            limit: Duration::from_secs(60),
        }
    }

    fn pod(workload: &str, name: &str, node: &str, status: serde_json::Value) -> Pod {
        let labels = json!({ LABEL: workload });
        let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node}, "status": status});
        serde_json::from_value(pod).unwrap()
    }

    fn runs(workload: &str, name: &str, node: &str) -> Pod {
        let status =
            json!({"phase": "Running", "containerStatuses": [{"ready": true, "state": {"running": {}}}]});
        pod(workload, name, node, status)
    }

    fn all() -> Vec<Pod> {
        vec![
            runs("web", "web-5f-x", "w1"),
            runs("db", "db-0", "w1"),
            runs("agent", "agent-1", "w1"),
            runs("agent", "agent-2", "w2"),
            runs("batch", "batch-k", "w1"),
            runs("bare", "bare", "w1"),
        ]
    }

    #[test]
    fn all_run_only_if_every_identity_has_its_pod() {
        let facts = super::super::manifest::facts(&config()).unwrap();
        assert_eq!(state(&all(), &config(), &facts).unwrap(), None);
        for without in 0..6 {
            let mut pods = all();
            pods.remove(without);
            assert!(state(&pods, &config(), &facts).unwrap().is_some(), "without pod {without}");
        }
        // Twice on one node is not once on each.
        let mut pods = all();
        pods[3] = runs("agent", "agent-2", "w1");
        let missing = state(&pods, &config(), &facts).unwrap();
        assert_eq!(missing.as_deref(), Some("DaemonSet rackrift/agent@w2: 0 of 1 run"));
    }

    #[test]
    fn what_keeps_pods_from_running() {
        let facts = super::super::manifest::facts(&config()).unwrap();
        let waiting = |reason: &str, message: &str| {
            let waiting = json!({"waiting": {"reason": reason, "message": message}});
            json!({"phase": "Pending", "containerStatuses": [{"ready": false, "image": "busybox:1", "state": waiting}]})
        };
        let told = |with: Pod| {
            let mut pods = all();
            pods[0] = with;
            match state(&pods, &config(), &facts) {
                Ok(missing) => missing.unwrap_or_default(),
                Err(e) => e.to_string(),
            }
        };
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 node(s) had untolerated taint(s)."});
        let stories = [
            told(pod("web", "web-1", "w1", waiting("ErrImagePull", "failed to resolve lab.local"))),
            told(pod(
                "web",
                "web-1",
                "w1",
                waiting("ImagePullBackOff", "Back-off pulling image \"busybox:1\""),
            )),
            told(pod("web", "web-1", "w1", waiting("ContainerCreating", ""))),
            told(pod("web", "web-1", "", json!({"phase": "Pending", "conditions": [condition]}))),
            told(runs("web", "web-1", "w2")),
        ];
        insta::assert_snapshot!(stories.join("\n\n"));
    }

    #[test]
    fn a_time_limit_names_the_server_and_what_was_missing() {
        let error = PodsError::NotReady {
            after: Duration::from_secs(60),
            server: "https://198.18.0.11:6443 of m1".into(),
            missing: "web-1 on w1: ContainerCreating".into(),
        };
        insta::assert_snapshot!(error);
    }
}
