//! The pods workload: one owner of each kind, each container with a heartbeat file on its node.
//!
//! # Invariants
//! * What a node's files say counts for "it ran": an API server knows nothing of a node that it cannot hear.
//! * Applied by kubectl, as a user would; our pods live in our namespace only.

pub mod beats;
pub mod manifest;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::facts::PodsFacts;
use rackrift_checkers::history::Entry;
use tokio::time::{Instant, sleep};

use self::manifest::{BEATS, GRACE_S, NODE, Workload};
use super::namespace::NAMESPACE;
use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;
use crate::kube::ApiServer;
use crate::kube::kubectl::{Kubectl, KubectlError};
use crate::kube::objects::{List, Pod};
use crate::run::recorder::Recorder;

/// How long all pods may take to run.
const READY: Duration = Duration::from_secs(90);

/// One call of kubectl, one question.
const CALL: Duration = Duration::from_secs(20);

/// What the workload is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsConfig {
    /// The containers' image.
    pub image: String,
    /// Nodes that pods prefer.
    pub preferred: Vec<String>,
    /// All workers: host and node.
    pub workers: Vec<(String, String)>,
}

/// Why the pods do not run.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// kubectl failed.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// A worker's folders could not be made ready.
    #[error("{host}: the folders of the heartbeats cannot be made ready: {reason}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// They did not come up.
    #[error("not all pods run {} s after they were applied: {missing}; {advice}", READY.as_secs())]
    Late {
        /// Which, and how they are.
        missing: String,
        /// What to do.
        advice: String,
    },
}

/// The running pods.
#[derive(Debug)]
pub struct PodsRun {
    config: PodsConfig,
}

/// What was collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodsReport {
    /// Heartbeat files.
    pub files: u64,
    /// Heartbeats in them.
    pub beats: u64,
    /// Workers whose files are missing, or part of them, with the reason.
    pub missed: Vec<(String, String)>,
}

impl fmt::Display for PodsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} heartbeats of {} containers", self.beats, self.files)?;
        for (host, reason) in &self.missed {
            write!(f, "; {host}: {reason}")?;
        }
        Ok(())
    }
}

impl PodsConfig {
    /// For the workers of an inventory; pods prefer those among the hosts `near`.
    #[must_use]
    pub fn new(inventory: &Inventory, near: &[String]) -> Self {
        let workers: Vec<(String, String)> = inventory
            .hosts()
            .filter(|h| h.has_role("worker"))
            .map(|h| (h.name.clone(), h.node_name().to_owned()))
            .collect();
        // The scenario names masters; their rack's workers are meant.
        let racks: Vec<&str> =
            near.iter().filter_map(|n| inventory.host(n)).map(|h| h.rack.as_str()).collect();
        let is_near = |host: &str| inventory.host(host).is_some_and(|h| racks.contains(&h.rack.as_str()));
        let preferred = workers.iter().filter(|(h, _)| is_near(h)).map(|(_, n)| n.clone()).collect();
        Self { image: inventory.kubernetes.image.clone(), preferred, workers }
    }

    /// What is promised of each workload.
    #[must_use]
    pub fn facts(&self) -> Vec<PodsFacts> {
        let mut facts = Vec::new();
        for workload in Workload::ALL {
            let one = |pod: &str, node: &str| PodsFacts {
                identity: workload.identity(pod, node),
                owner_kind: workload.owner_kind().to_owned(),
                wanted: 1,
                grace_s: GRACE_S,
            };
            match workload {
                Workload::Agent => facts.extend(self.workers.iter().map(|(_, node)| one("", node))),
                other => facts.push(one(other.first_pod(), "")),
            }
        }
        facts
    }
}

/// Applies the pods and waits until all run. The namespace must be there.
///
/// # Errors
/// See [`PodsError`].
pub async fn start(
    config: PodsConfig,
    kubectl: &Kubectl,
    servers: &[ApiServer],
    remote: &Arc<dyn Remote>,
) -> Result<PodsRun, PodsError> {
    for (host, _) in &config.workers {
        let script = Script::new(format!(
            "rm -rf {BEATS} {NODE} && mkdir -p {NODE} && cat /proc/sys/kernel/random/boot_id >{NODE}/boot-id"
        ));
        remote
            .run(host, &script)
            .await
            .ok()
            .map_err(|reason| PodsError::Host { host: host.clone(), reason })?;
    }
    let text = manifest::render(&config);
    kubectl.run(&["apply", "--server-side", "-f", "-"], Some(&text), CALL).await?;
    let wanted = config.facts().len();
    let end = Instant::now() + READY;
    loop {
        let missing = missing(servers, wanted).await;
        match missing {
            None => return Ok(PodsRun { config }),
            Some(missing) if Instant::now() >= end => {
                let advice = "kubectl describe pods -n ".to_owned()
                    + NAMESPACE
                    + " tells why; the image must be on the workers, or to be pulled";
                return Err(PodsError::Late { missing, advice });
            }
            Some(_) => sleep(Duration::from_millis(300)).await,
        }
    }
}

async fn missing(servers: &[ApiServer], wanted: usize) -> Option<String> {
    let server = servers.first()?;
    let pods: List<Pod> = match server.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), CALL).await {
        Ok(pods) => pods,
        Err(e) => return Some(e),
    };
    let pods = pods.items();
    let open: Vec<String> =
        pods.iter().filter(|p| !p.ready()).map(|p| format!("{} is {}", p.metadata.name, p.state())).collect();
    if !open.is_empty() {
        return Some(open.join(", "));
    }
    (pods.len() < wanted).then(|| format!("{} of {wanted} pods were made", pods.len()))
}

impl PodsRun {
    /// What is promised of each workload.
    #[must_use]
    pub fn facts(&self) -> Vec<PodsFacts> {
        self.config.facts()
    }

    /// Reads every worker's heartbeat files into the history, and removes them.
    pub async fn collect(
        self,
        remote: &Arc<dyn Remote>,
        clocks: &Clocks,
        recorder: &Recorder,
        limit: Duration,
    ) -> PodsReport {
        let mut report = PodsReport::default();
        let script = Script::new(beats::collecting()).limit(limit).cap(64 << 20);
        for (host, node) in &self.config.workers {
            let text = match remote.run(host, &script).await.ok() {
                Ok(text) => text,
                Err(reason) => {
                    report.missed.push((host.clone(), reason));
                    continue;
                }
            };
            match beats::read(&text) {
                Err(reason) => report.missed.push((host.clone(), reason)),
                Ok(files) => {
                    for file in files {
                        report.files += 1;
                        report.beats += file.beats();
                        match file.lines(host, node, clocks) {
                            Ok(lines) => lines.into_iter().for_each(|l| recorder.record(Entry::Pod(l))),
                            Err(reason) => report.missed.push((host.clone(), reason)),
                        }
                    }
                }
            }
            // What stays is removed before the next run's pods come.
            let _ = remote.run(host, &Script::new(format!("rm -rf {BEATS} {NODE}"))).await;
        }
        report
    }
}
