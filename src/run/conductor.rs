//! One run, from the lab as it is to a history on disk.
//!
//! lock → look for leftovers → flags in force → workloads up → leaders arranged → observers → baseline → faults →
//! heal → settle → final reads → collect → verify clean.
//!
//! # Invariants
//! * What fits nothing (a selector, a missing lease) is refused before anything on the cluster is touched.
//! * Whatever happens after a fault was prepared, its heal is reached, the rules of every host are compared with
//!   those of before, and the cluster is left without our namespace.
//! * `run.json` is written before the first fault and again at the end: a killed run can still be judged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::facts::{ClientFacts, Facts, HostFacts};

use super::arrange::{self, ArrangeError};
use super::assemble::{self, Misfit, Opening, Resolved};
use super::faults::Held;
use super::lock::{LabLock, LockError};
use super::recorder::{Recorder, RecorderError};
use super::scenario::Scenario;
use super::settle::{Wanted, settle};
use super::stop::Stop;
use super::tell::Tell;
use crate::fault::heal;
use crate::fault::snapshot::{Snapshot, snapshot};
use crate::host::clock;
use crate::host::remote::Remote;
use crate::inventory::Inventory;
use crate::kube::flags::{self, FlagsError};
use crate::kube::kubectl::{Kubectl, KubectlError};
use crate::kube::proxy::{ApiServer, Proxies, ProxyError};
use crate::observe;
use crate::store::{RunDir, StoreError};
use crate::workload::lease::{self, LeaseConfig};
use crate::workload::namespace::{self, NamespaceError};
use crate::workload::pods::{self, PodsConfig, PodsError, PodsRun};

/// Longest wait for our namespace to be gone.
const GONE: Duration = Duration::from_secs(60);

/// Longest wait for what is read and collected at the end.
const COLLECT: Duration = Duration::from_secs(60);

/// What is to be run, and where it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The experiment.
    pub scenario: &'a Scenario,
    /// Its text as written.
    pub scenario_text: &'a str,
    /// The lab.
    pub inventory: &'a Inventory,
    /// The inventory's file.
    pub inventory_file: &'a Path,
    /// Folder of all runs.
    pub runs: &'a Path,
    /// Seed of everything random.
    pub seed: u64,
    /// Leave the faults out; all else is done.
    pub without_faults: bool,
}

/// Why a run could not be made. What was recorded until then is in its folder.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario does not fit the inventory.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// Another run has the lab.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The run's folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The history.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// kubectl.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// A proxy to an API server.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The flags in force.
    #[error(transparent)]
    Flags(#[from] FlagsError),
    /// Our namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The pods workload.
    #[error(transparent)]
    Pods(#[from] PodsError),
    /// Leaders.
    #[error(transparent)]
    Arrange(#[from] ArrangeError),
    /// Hosts that can't be reached or read before anything began.
    #[error("{}", .0.join("\n"))]
    Hosts(Vec<String>),
    /// A fault was refused before it touched a host.
    #[error("the fault {fault} is refused: {reason}")]
    Refused {
        /// Its name.
        fault: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A file of the run.
    #[error("failed to copy {path} into the run's folder: {error}")]
    Copy {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// Conducts a run; its folder holds facts and history afterwards.
///
/// # Errors
/// See [`RunError`].
pub async fn conduct(
    order: &Order<'_>,
    remote: &Arc<dyn Remote>,
    tell: &dyn Tell,
    stop: &Stop,
) -> Result<RunDir, RunError> {
    let resolved = assemble::resolve(order.scenario, order.inventory, order.seed)?;
    let _lock = LabLock::take(&order.inventory.lab)?;
    let before = rules(order.inventory, remote, tell).await?;
    let kubectl = Kubectl::new(order.inventory)?;
    let started = chrono::Utc::now();
    let dir = RunDir::create(order.runs, &order.scenario.scenario, order.seed, started)?;
    dir.write("scenario.yaml", order.scenario_text.as_bytes())?;
    let path = order.inventory_file.to_owned();
    let text = std::fs::read(&path).map_err(|error| RunError::Copy { path, error })?;
    dir.write("inventory.yaml", &text)?;
    for (host, rules) in &before {
        dir.host(host)?;
        dir.write(&format!("hosts/{host}/rules-before.txt"), rules.raw.as_bytes())?;
    }
    let recorder = Recorder::create(&dir.file("history.jsonl"), &dir.id())?;
    let proxies = Proxies::start(&kubectl, &order.inventory.kubernetes.api_servers, &recorder).await?;
    let run = Stage {
        order,
        resolved: &resolved,
        remote,
        tell,
        stop,
        dir: &dir,
        recorder: &recorder,
        kubectl: &kubectl,
        servers: proxies.servers(),
        tag: tag(started, order.seed),
    };
    let played = run.play(&before).await;
    tell.now("removing the workloads", Some(GONE));
    let removed = namespace::remove(&kubectl, GONE).await;
    if order.scenario.workloads.pods {
        // Only now: a pod that is told to end may still write to its node.
        for trouble in pods::sweep(remote, workers(order.inventory), COLLECT).await {
            tell.say(&trouble);
        }
    }
    proxies.stop().await;
    let facts = played?;
    if let Err(e) = removed {
        tell.say(&e.to_string());
        recorder.note(e.to_string());
    }
    recorder.close()?;
    dir.write_facts(&facts)?;
    Ok(dir)
}

/// Removes what dead runs left, then takes the rules of every host.
async fn rules(
    inventory: &Inventory,
    remote: &Arc<dyn Remote>,
    tell: &dyn Tell,
) -> Result<BTreeMap<String, Snapshot>, RunError> {
    tell.now("looking at every host", None);
    let report = heal::heal(remote, inventory).await;
    if report.removed_something() {
        tell.say(&format!("left by an earlier run: {report}"));
    }
    // What cannot be reached, or keeps what an earlier run left, is no host to begin with.
    let not_clean: Vec<String> = report.not_clean().map(|(host, why)| format!("{host}: {why}")).collect();
    if !not_clean.is_empty() {
        return Err(RunError::Hosts(not_clean));
    }
    let hosts: Vec<String> = inventory.hosts().map(|h| h.name.clone()).collect();
    let mut rules = BTreeMap::new();
    let mut wrong = Vec::new();
    for (host, taken) in snapshot(remote, &hosts).await {
        match taken {
            Ok(taken) => {
                rules.insert(host, taken);
            }
            Err(e) => wrong.push(format!("{host}: {e}")),
        }
    }
    if wrong.is_empty() { Ok(rules) } else { Err(RunError::Hosts(wrong)) }
}

/// A tag for the names of this run's faults: eight letters, from the time and the seed, so that what a dead run
/// left is never taken for ours.
fn tag(started: chrono::DateTime<chrono::Utc>, seed: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut left = started.timestamp_millis().unsigned_abs() ^ (seed << 20);
    (0..8)
        .map(|_| {
            let letter = usize::try_from(left % 36).unwrap_or_default();
            left /= 36;
            char::from(LETTERS[letter])
        })
        .collect()
}

/// All that a run works with.
pub(super) struct Stage<'a> {
    pub(super) order: &'a Order<'a>,
    pub(super) resolved: &'a Resolved,
    pub(super) remote: &'a Arc<dyn Remote>,
    pub(super) tell: &'a dyn Tell,
    pub(super) stop: &'a Stop,
    pub(super) dir: &'a RunDir,
    pub(super) recorder: &'a Recorder,
    pub(super) kubectl: &'a Kubectl,
    pub(super) servers: &'a [ApiServer],
    pub(super) tag: String,
}

impl Stage<'_> {
    /// From flags to collected evidence; the namespace and the proxies are the caller's to end.
    async fn play(&self, before: &BTreeMap<String, Snapshot>) -> Result<Facts, RunError> {
        let Order { scenario, inventory, .. } = *self.order;
        self.tell.now("reading the flags in force", None);
        let in_force = flags::read(self.remote.as_ref(), inventory, self.servers).await?;
        self.tell.now("bringing the workloads up", Some(GONE));
        namespace::create(self.kubectl, GONE).await?;
        arrange::leaders(
            self.remote.as_ref(),
            inventory,
            self.servers,
            &in_force.leases,
            leaders(scenario),
            &self.resolved.leaders_on,
            self.tell,
        )
        .await?;
        let pods = self.pods().await?;
        let leases = scenario.workloads.leases.as_ref().map(|l| LeaseConfig {
            keys: l.keys,
            clients: l.clients,
            period: Duration::from_secs(1) / l.rate.max(1),
            seed: self.order.seed,
            ..LeaseConfig::default()
        });
        let opening = Opening {
            run: self.dir.id(),
            seed: self.order.seed,
            started: self.recorder.started().to_owned(),
            pods: pods.as_ref().map(PodsRun::facts).unwrap_or_default(),
            clients: leases.as_ref().map(|l| clients(l, self.servers, inventory)).unwrap_or_default(),
        };
        let mut facts = assemble::facts(scenario, self.resolved, inventory, &in_force, opening);
        self.dir.write_facts(&facts)?;

        let clocks = clock::start(self.remote, inventory, self.recorder);
        let mut observers = observe::start(self.remote, inventory, self.servers, &in_force, self.recorder);
        let load = leases.as_ref().map(|config| lease::start(config, self.servers, self.recorder));
        let held = self.faults(&mut facts).await;
        if held.is_ok() {
            let limit = scenario.settle.duration();
            let wanted = Wanted { leases: &facts.leases, pods: &facts.pods };
            let missing = settle(self.servers, &wanted, limit, self.recorder, self.stop, self.tell).await;
            if let Some(missing) = missing {
                self.tell.say(&format!("not settled after {} s: {missing}", limit.as_secs()));
            }
            if let Some(linger) = scenario.linger {
                self.tell.now("watching on", Some(linger.duration()));
                self.stop.wait(linger.duration(), &self.recorder.failed()).await;
            }
        }
        self.tell.now("final reads", Some(COLLECT));
        if let Some(load) = load {
            self.tell.say(&load.stop(COLLECT).await.to_string());
        }
        self.tell.now("collecting what the hosts saw", Some(COLLECT));
        self.tell.say(&observers.stop(COLLECT).await.to_string());
        // After the last thing seen, so that each lies between two samples of its host's clock.
        let clocks = Clocks::from_samples(&clocks.stop(COLLECT).await, observe::DRIFT);
        self.tell.say(&observers.collect(&clocks, COLLECT).await.to_string());
        if let Some(pods) = pods {
            self.tell.say(&pods.collect(self.remote, &clocks, self.recorder, COLLECT).await.to_string());
        }
        self.keep_logs().await;
        let held = held.unwrap_or_else(|e| Held { trouble: Some(e.to_string()), ..Held::default() });
        facts.hosts = self.verify(before, &held).await;
        facts.cut_short = self.cut_short(&held);
        // What comes after, the removal of the workloads, is not part of the experiment.
        facts.length = self.recorder.now();
        Ok(facts)
    }

    async fn pods(&self) -> Result<Option<PodsRun>, RunError> {
        if !self.order.scenario.workloads.pods {
            return Ok(None);
        }
        let inventory = self.order.inventory;
        let config = PodsConfig::new(inventory, &self.resolved.leaders_on);
        Ok(Some(pods::start(config, self.kubectl, self.servers, self.remote).await?))
    }

    /// Keeps what the hosts logged; no verdict rests on it.
    async fn keep_logs(&self) {
        let hosts = self.order.inventory.hosts().map(|h| h.name.clone());
        let length = Duration::from_nanos(self.recorder.now());
        for (host, log) in observe::logs::read(self.remote, hosts, length).await {
            let kept = match log {
                Ok(log) => self.dir.write(&format!("hosts/{host}/journal.txt"), log.as_bytes()),
                Err(e) => {
                    self.tell.say(&format!("{host}: its log cannot be kept: {e}"));
                    continue;
                }
            };
            if let Err(e) = kept {
                self.tell.say(&e.to_string());
            }
        }
    }

    /// Compares the rules of every host with those of before. Nothing that fails here may hide a host that is not
    /// clean, so nothing here fails.
    async fn verify(&self, before: &BTreeMap<String, Snapshot>, held: &Held) -> Vec<HostFacts> {
        self.tell.now("verifying that every host is as it was", None);
        let hosts: Vec<String> = self.order.inventory.hosts().map(|h| h.name.clone()).collect();
        let mut facts = Vec::new();
        for (host, after) in snapshot(self.remote, &hosts).await {
            let of =
                |list: &[(String, String)]| list.iter().find(|(h, _)| *h == host).map(|(_, w)| w.clone());
            let mut clean = of(&held.dirty);
            let rules_after = match after {
                Ok(after) => {
                    let saved =
                        self.dir.write(&format!("hosts/{host}/rules-after.txt"), after.raw.as_bytes());
                    if let Err(e) = saved {
                        self.tell.say(&e.to_string());
                    }
                    if after.raw.contains(crate::fault::id::CHAIN_PREFIX) {
                        clean.get_or_insert_with(|| "a chain of a fault is still in its rules".to_owned());
                    }
                    after.digest
                }
                Err(e) => {
                    clean.get_or_insert(format!("its rules cannot be read: {e}"));
                    String::new()
                }
            };
            let rules_before = before.get(&host).map(|b| b.digest.clone()).unwrap_or_default();
            let dead_man = of(&held.ends).unwrap_or_else(|| "not needed".to_owned());
            facts.push(HostFacts { host, rules_before, rules_after, clean, dead_man });
        }
        facts
    }

    fn cut_short(&self, held: &Held) -> Option<String> {
        if self.recorder.failed().is_cancelled() {
            return Some("the history could not be written".to_owned());
        }
        if self.stop.asked() {
            return Some("interrupted".to_owned());
        }
        held.trouble.clone()
    }
}

fn leaders(scenario: &Scenario) -> &[String] {
    scenario.arrange.leaders.as_ref().map_or(&[], |l| &l.components)
}

fn workers(inventory: &Inventory) -> Vec<String> {
    inventory.hosts().filter(|h| h.has_role("worker")).map(|h| h.name.clone()).collect()
}

/// Which client of the lease workload speaks to which host's API server.
fn clients(config: &LeaseConfig, servers: &[ApiServer], inventory: &Inventory) -> Vec<ClientFacts> {
    let mut clients = Vec::new();
    for server in servers {
        let rack = inventory.host(&server.host).map_or_else(String::new, |h| h.rack.clone());
        for n in 0..config.clients {
            clients.push(ClientFacts {
                client: lease::client_name(server, n),
                host: server.host.clone(),
                rack: rack.clone(),
            });
        }
    }
    clients
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::id::FaultId;

    #[test]
    fn tags_are_eight_letters_and_differ_from_one_second_to_the_next() {
        let one = chrono::DateTime::from_timestamp(1_764_547_200, 0).unwrap();
        let two = chrono::DateTime::from_timestamp(1_764_547_201, 0).unwrap();
        assert_ne!(tag(one, 7), tag(two, 7));
        assert_ne!(tag(one, 7), tag(one, 8));
        FaultId::new(&tag(one, u64::MAX), 999).unwrap();
    }
}
