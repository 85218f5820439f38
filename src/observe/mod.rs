//! Observers: what every side shows while a run goes on. They read, and never disturb on purpose.
//!
//! Through each API server separately ([`api`]), each etcd member ([`etcd`]), each worker's container runtime
//! ([`runtime`]); the logs of elected components are read at the end ([`journal`]).
//!
//! # Invariants
//! * What an observer could not see is a gap, never an invented value; [`Report`] says how often it could not.
//! * Host times are placed on the controller's clock by the run's clock samples, with their uncertainty.

pub mod api;
pub mod etcd;
pub mod journal;
pub mod logs;
pub mod runtime;
pub mod sight;
#[cfg(test)]
mod theatre;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::{Clocks, Drift};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub use self::sight::Seen;
use self::sight::Sight;
use crate::host::remote::Remote;
use crate::inventory::Inventory;
use crate::kube::ApiServer;
use crate::kube::flags::InForce;
use crate::run::recorder::Recorder;

/// How far a host's clock may run away from the controller's: far more than a quartz does (20 to 50 ppm), and
/// what the kernel's own discipline allows (500 ppm).
pub const DRIFT: Drift = Drift::ppm(500);

/// The running observers.
pub struct Observers {
    stop: CancellationToken,
    tasks: Vec<(String, JoinHandle<Seen>)>,
    /// Observers that could not be started.
    absent: Vec<(String, Seen)>,
    runtimes: Vec<runtime::Watcher>,
    journals: journal::Journals,
    remote: Arc<dyn Remote>,
    recorder: Recorder,
}

/// What all observers saw and missed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// By observer, such as `api:m1`.
    pub seen: Vec<(String, Seen)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: u64 = self.seen.iter().map(|(_, s)| s.lines).sum();
        write!(f, "{} observers wrote {lines} lines", self.seen.len())?;
        for (name, seen) in self.seen.iter().filter(|(_, s)| s.missed > 0) {
            write!(f, "; {name}: {seen}")?;
        }
        Ok(())
    }
}

/// Starts all observers of a run.
#[must_use]
pub fn start(
    remote: &Arc<dyn Remote>,
    inventory: &Inventory,
    servers: &[ApiServer],
    in_force: &InForce,
    recorder: &Recorder,
) -> Observers {
    let stop = CancellationToken::new();
    let leases: BTreeSet<String> = in_force.leases.iter().map(|l| l.lease.clone()).collect();
    let (mut tasks, mut absent) = (Vec::new(), Vec::new());
    for server in servers {
        let watcher = api::Poller::new(server, leases.clone(), recorder, &stop);
        tasks.extend(watcher.start());
    }
    if let Some(etcdctl) = &inventory.kubernetes.etcdctl {
        for host in inventory.hosts().filter(|h| h.has_role("etcd")) {
            let name = format!("etcd:{}", host.name);
            let watcher = etcd::Watcher::new(remote, &host.name, etcdctl, leases.clone(), recorder, &stop);
            tasks.push((name, tokio::spawn(watcher.watch())));
        }
    } else {
        let how = "the inventory does not say how etcdctl is called (kubernetes.etcdctl)";
        absent.push(("etcd".to_owned(), Seen::nothing(how)));
    }
    let workers = inventory.hosts().filter(|h| h.has_role("worker"));
    let runtimes = workers.map(|h| runtime::Watcher::start(remote, &h.name, recorder, &stop)).collect();
    let components: Vec<String> = in_force.leases.iter().map(|l| l.component.clone()).collect();
    let journals = journal::Journals::new(inventory, &components);
    Observers {
        stop,
        tasks,
        absent,
        runtimes,
        journals,
        remote: Arc::clone(remote),
        recorder: recorder.clone(),
    }
}

impl Observers {
    /// Ends all observers, at most within `limit`.
    pub async fn stop(&mut self, limit: Duration) -> Report {
        self.stop.cancel();
        let end = Instant::now() + limit;
        let mut report = Report { seen: std::mem::take(&mut self.absent) };
        for (name, mut task) in self.tasks.drain(..) {
            let seen = match timeout_at(end, &mut task).await {
                Ok(Ok(seen)) => seen,
                Ok(Err(e)) => Seen::nothing(e.to_string()),
                Err(_) => {
                    task.abort();
                    Seen::nothing("it did not end in time; what it wrote is in the history")
                }
            };
            report.seen.push((name, seen));
        }
        report
    }

    /// Writes what hosts saw by their own clocks: containers and logs. `clocks` are the run's samples.
    pub async fn collect(self, clocks: &Clocks, limit: Duration) -> Report {
        let mut report = Report::default();
        let end = Instant::now() + limit;
        for watcher in self.runtimes {
            let name = format!("runtime:{}", watcher.host());
            report.seen.push((name, watcher.finish(clocks, &self.recorder, end).await));
        }
        report.seen.extend(self.journals.collect(&self.remote, clocks, &self.recorder, end).await);
        report
    }
}

/// A boot id without dashes: the journal writes it so, the kernel does not.
#[must_use]
pub fn plain_boot(id: &str) -> String {
    id.chars().filter(|c| *c != '-').collect()
}
