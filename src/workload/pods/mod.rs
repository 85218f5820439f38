//! The pods workload: a Deployment, a StatefulSet, a DaemonSet, a Job and a bare Pod, each of whose containers appends
//! a heartbeat to a file of its node each 200 ms.
//!
//! # Invariants
//! * A heartbeat needs no network and no API server: it says that the container ran at that moment of the node's own
//!   clock, whoever can be heard.
//! * Heartbeats of one run are in a folder of their own: what an older run left is never taken for this run's.
//! * Nothing of it is left: the objects go with the namespace ([`crate::workload::namespace`]), the files with
//!   [`PodsRun::collect`] and [`sweep`].
//!
//! Tolerations are left to the API server's defaults, not written into the manifests, because the bounds that the
//! checks use follow from those flags.

pub mod beats;
pub mod manifest;
mod ready;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::facts::PodsFacts;
use rackrift_checkers::history::Entry;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::beats::Summary;
use self::manifest::{BadManifest, HEARTBEATS};
use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;
use crate::kube::{ApiServer, Kubectl, KubectlError};
use crate::run::recorder::Recorder;

/// How much a worker may tell of its heartbeats, bytes: some 50,000 spans.
const CAP: usize = 4 << 20;

/// Where and with what the pods run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsConfig {
    /// The image of all containers: `/bin/sh` and a `sleep` with fractions must be in it.
    pub image: String,
    /// Workers, each host with its node's name.
    pub workers: Vec<(String, String)>,
    /// Nodes on which all single pods start; their replacements may run on any worker.
    pub preferred: Vec<String>,
    /// Longest wait until all run.
    pub limit: Duration,
}

/// Why the pods do not run.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// The inventory has no worker.
    #[error(
        "no host of the inventory has the role `worker`, so no pod can run; give it to those that are nodes"
    )]
    NoWorkers,
    /// There is no API server to apply to.
    #[error(
        "no API server is known, so the pods cannot be applied; name them in the inventory under kubernetes.apiServers"
    )]
    NoServers,
    /// Heartbeats of older runs are still there.
    #[error("{}; see that every worker can be reached and its disk written", .0.join("; "))]
    Left(Vec<String>),
    /// The embedded manifests.
    #[error(transparent)]
    Manifest(#[from] BadManifest),
    /// kubectl failed.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// An image is not there.
    #[error(
        "pod {pod}: node {node} has no image {image} and cannot get it ({reason}); import it on every worker, or name \
         another in the inventory under kubernetes.image"
    )]
    Image {
        /// The pod.
        pod: String,
        /// Its node.
        node: String,
        /// The image.
        image: String,
        /// The kubelet's word.
        reason: String,
    },
    /// They did not get ready in time.
    #[error("the pods do not all run after {} s (API server {server}): {missing}", after.as_secs())]
    NotReady {
        /// How long was waited.
        after: Duration,
        /// Who was asked.
        server: String,
        /// What was missing last.
        missing: String,
    },
    /// A pod started where it should not.
    #[error(
        "pod {pod} started on {node}, although {wanted} is preferred; look at that node's taints and at kubectl describe \
         node {wanted}"
    )]
    Misplaced {
        /// The pod.
        pod: String,
        /// Where it is.
        node: String,
        /// Where it should be.
        wanted: String,
    },
}

impl PodsConfig {
    /// For an inventory: single pods start on the workers of those racks in which the hosts `beside` stand (in the
    /// first rack that has a worker, if none does), within a minute.
    #[must_use]
    pub fn new(inventory: &Inventory, beside: &[String]) -> Self {
        let workers: Vec<_> = inventory.hosts().filter(|h| h.has_role("worker")).collect();
        let chosen = |rack: &str| inventory.hosts().any(|h| h.rack == rack && beside.contains(&h.name));
        let mut preferred: Vec<_> = workers.iter().filter(|w| chosen(&w.rack)).collect();
        if preferred.is_empty() {
            preferred = workers.iter().filter(|w| w.rack == workers[0].rack).collect();
        }
        Self {
            image: inventory.kubernetes.image.clone(),
            preferred: preferred.into_iter().map(|w| w.node_name().to_owned()).collect(),
            workers: workers.iter().map(|w| (w.name.clone(), w.node_name().to_owned())).collect(),
            limit: Duration::from_secs(60),
        }
    }

    /// The workers' names as nodes.
    fn nodes(&self) -> impl Iterator<Item = &str> {
        self.workers.iter().map(|(_, node)| node.as_str())
    }
}

/// The running pods.
#[derive(Debug)]
pub struct PodsRun {
    token: String,
    workers: Vec<(String, String)>,
    facts: Vec<PodsFacts>,
}

/// Removes the heartbeats of older runs, applies the objects through the first of `servers` and waits until all pods
/// run where they should. The namespace must be there, and empty.
///
/// # Errors
/// See [`PodsError`]; what was applied then goes with the namespace.
pub async fn start(
    config: PodsConfig,
    kubectl: &Kubectl,
    servers: &[ApiServer],
    remote: &Arc<dyn Remote>,
) -> Result<PodsRun, PodsError> {
    let server = servers.first().ok_or(PodsError::NoServers)?;
    if config.workers.is_empty() {
        return Err(PodsError::NoWorkers);
    }
    let token = format!("{:016x}", rand::random::<u64>());
    let facts = manifest::facts(&config)?;
    let objects = manifest::objects(&config, &token)?.to_string();
    let end = Instant::now() + config.limit;
    let hosts = config.workers.iter().map(|(host, _)| host.clone()).collect();
    let left = sweep(remote, hosts, config.limit).await;
    if !left.is_empty() {
        return Err(PodsError::Left(left));
    }
    ready::account(server, &config, end).await?;
    let apply = ["apply", "--server-side", "--field-manager=rackrift", "-f", "-"];
    kubectl.on(&server.url).run(&apply, Some(&objects), config.limit).await?;
    ready::all(server, &config, &facts, end).await?;
    Ok(PodsRun { token, workers: config.workers, facts })
}

/// What was collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodsReport {
    /// Containers that beat.
    pub containers: usize,
    /// Their heartbeats.
    pub beats: u64,
    /// Pauses of over a second between two heartbeats of one container.
    pub pauses: usize,
    /// Heartbeats that were not written, as their numbers tell, and lines that are none.
    pub lost: u64,
    /// What could not be collected, and why.
    pub trouble: Vec<String>,
}

impl fmt::Display for PodsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} heartbeats of {} containers", self.beats, self.containers)?;
        if self.pauses > 0 {
            write!(f, ", {} pauses of over a second", self.pauses)?;
        }
        if self.lost > 0 {
            write!(f, ", {} lost or torn", self.lost)?;
        }
        for trouble in &self.trouble {
            write!(f, "; {trouble}")?;
        }
        Ok(())
    }
}

impl PodsRun {
    /// What the judge must know.
    #[must_use]
    pub fn facts(&self) -> Vec<PodsFacts> {
        self.facts.clone()
    }

    /// Reads the heartbeats of every worker at once, writes them to the history, and removes the files of those that
    /// told all. `clocks` are the run's clock samples. What cannot be read within `limit` is told in the report and
    /// stays on its host.
    pub async fn collect(
        self,
        remote: &Arc<dyn Remote>,
        clocks: &Clocks,
        recorder: &Recorder,
        limit: Duration,
    ) -> PodsReport {
        let script = beats::script(&self.token);
        let mut tasks = JoinSet::new();
        for (host, node) in self.workers {
            let (remote, script) = (Arc::clone(remote), Script::new(script.as_str()).limit(limit).cap(CAP));
            tasks.spawn(async move {
                let told = told(remote.as_ref(), &host, &script).await;
                (host, node, told)
            });
        }
        let mut all = tasks.join_all().await;
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let mut report = PodsReport::default();
        let mut read = Vec::new();
        for (host, node, told) in all {
            match told {
                Ok(told) => {
                    report.add(&host, &node, &told, clocks, recorder);
                    read.push(host);
                }
                Err(reason) => report.trouble.push(format!("heartbeats of {host}: {reason}")),
            }
        }
        report.trouble.extend(sweep(remote, read, limit).await);
        for trouble in &report.trouble {
            recorder.note(trouble.as_str());
        }
        report
    }
}

impl PodsReport {
    fn add(&mut self, host: &str, node: &str, told: &Summary, clocks: &Clocks, recorder: &Recorder) {
        for container in &told.containers {
            self.containers += 1;
            self.beats += container.spans.iter().map(|s| s.beats).sum::<u64>();
            self.pauses += container.spans.len().saturating_sub(1);
            self.lost += container.lost + container.torn;
            match beats::lines(container, host, node, clocks) {
                Ok(lines) => lines.into_iter().for_each(|line| recorder.record(Entry::Pod(line))),
                Err(reason) => self.trouble.push(format!("heartbeats of pod {}: {reason}", container.name)),
            }
        }
    }
}

async fn told(remote: &dyn Remote, host: &str, script: &Script) -> Result<Summary, String> {
    remote.run(host, script).await.ok()?.parse().map_err(|e: beats::BadSummary| e.to_string())
}

/// Removes all heartbeat files, of whatever run, from those hosts. Returns what could not be removed, and why.
///
/// A pod that is told to end may make its folder anew after [`PodsRun::collect`]: whoever removed the namespace calls
/// this again.
pub async fn sweep(remote: &Arc<dyn Remote>, hosts: Vec<String>, limit: Duration) -> Vec<String> {
    let mut tasks = JoinSet::new();
    for host in hosts {
        let remote = Arc::clone(remote);
        // The folder above goes too, if nothing else is in it.
        let body =
            format!("rm -rf {HEARTBEATS} || exit 1\nrmdir \"$(dirname {HEARTBEATS})\" 2>/dev/null || :\n");
        tasks.spawn(async move {
            let outcome = remote.run(&host, &Script::new(body).limit(limit)).await;
            outcome.ok().err().map(|e| format!("{HEARTBEATS} of {host} was not removed: {e}"))
        });
    }
    let mut trouble: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    trouble.sort();
    trouble
}
