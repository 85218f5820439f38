//! The lease workload: clients on every API server that contend for Lease objects by compare-and-set.
//!
//! # Invariants
//! * Each client talks to one API server over a connection of its own, one operation at a time, and never retries.
//! * An operation is in the history before its request is sent; how it ended is read from the table of
//!   [`crate::kube::errors`]. After an `info` the client goes on under a new process id.
//! * Every write carries an id that no other write of the run has, so that a read tells whose write it saw.
//! * Operations start by a schedule, not when the last one ended: a server that stalls is not spared the operations
//!   that were due meanwhile (up to [`client::BACKLOG`]; what is skipped beyond is counted).

pub mod choice;
pub mod client;
#[cfg(test)]
mod fake;
pub mod latency;
#[cfg(test)]
mod tests;
pub mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use self::client::{Client, Shared, Tally};
pub use self::latency::{LatencyLine, Quantiles};
use super::namespace::NAMESPACE;
use crate::kube::ApiServer;
use crate::run::recorder::Recorder;

/// Numbers of the lease workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseConfig {
    /// How many Lease objects are contended for.
    pub keys: u32,
    /// How many clients each API server gets.
    pub clients: u32,
    /// Mean time between two operations of one client.
    pub period: Duration,
    /// How long an operation may take before its outcome counts as unknown.
    pub deadline: Duration,
    /// `leaseDurationSeconds` that the clients write.
    pub duration_s: u32,
    /// Seed of all choices.
    pub seed: u64,
}

impl Default for LeaseConfig {
    /// 4 leases, 3 clients an API server at 10 operations a second each, 5 s a try.
    fn default() -> Self {
        Self {
            keys: 4,
            clients: 3,
            period: Duration::from_millis(100),
            deadline: Duration::from_secs(5),
            duration_s: 5,
            seed: 0,
        }
    }
}

/// What the workload did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeaseReport {
    /// Operations that ended.
    pub operations: u64,
    /// Of them, such that happened.
    pub ok: u64,
    /// Of them, such that certainly did not happen.
    pub fail: u64,
    /// Of them, such that may have happened.
    pub info: u64,
    /// Operations that were due while their client waited too long for an earlier one, and were left out.
    pub skipped: u64,
    /// Clients that did not end in time when told to; their last operation has no completion.
    pub stuck: u64,
    /// Latencies by API server, operation and outcome.
    pub latency: Vec<LatencyLine>,
}

/// The running clients.
#[derive(Debug)]
pub struct LeaseRun {
    stop: CancellationToken,
    clients: Vec<JoinHandle<Tally>>,
    shared: Arc<Shared>,
}

/// The name of an API server's client, from 0: that of its lines in the history.
#[must_use]
pub fn client_name(server: &ApiServer, number: u32) -> String {
    format!("{}-{}", server.host, number + 1)
}

/// `namespace/name` of each lease of the workload.
pub fn keys(config: &LeaseConfig) -> impl Iterator<Item = String> + '_ {
    (0..config.keys).map(|i| format!("{NAMESPACE}/{}", wire::name(i as usize)))
}

/// Starts the clients: `clients` on each of `servers`. The namespace must be there, and hold no lease.
#[must_use]
pub fn start(config: &LeaseConfig, servers: &[ApiServer], recorder: &Recorder) -> LeaseRun {
    let total = u64::from(config.clients) * servers.len() as u64;
    let stop = CancellationToken::new();
    let shared = Arc::new(Shared {
        config: config.clone(),
        recorder: recorder.clone(),
        stop: stop.clone(),
        next_process: AtomicU64::new(total),
        next_write: AtomicU64::new(0),
        latency: latency::Latencies::default(),
    });
    let mut clients = Vec::new();
    for server in servers {
        for n in 0..config.clients {
            let process = clients.len() as u64;
            let client = Client::new(Arc::clone(&shared), server, n, process);
            clients.push(tokio::spawn(client.run()));
        }
    }
    LeaseRun { stop, clients, shared }
}

impl LeaseRun {
    /// Stops the schedule, lets open operations end, has one client of each API server read every lease once more,
    /// and sums up. Takes at most `limit`; then the rest is dropped.
    pub async fn stop(self, limit: Duration) -> LeaseReport {
        self.stop.cancel();
        let end = Instant::now() + limit;
        let mut report = LeaseReport::default();
        for mut client in self.clients {
            match timeout_at(end, &mut client).await {
                Ok(Ok(tally)) => report.add(&tally),
                // A client that panicked or hangs keeps its counts; its history lines are on disk.
                Ok(Err(_)) => report.stuck += 1,
                Err(_) => {
                    client.abort();
                    report.stuck += 1;
                }
            }
        }
        report.latency = self.shared.latency.lines();
        report
    }
}

impl LeaseReport {
    fn add(&mut self, tally: &Tally) {
        self.ok += tally.ok;
        self.fail += tally.fail;
        self.info += tally.info;
        self.operations += tally.ok + tally.fail + tally.info;
        self.skipped += tally.skipped;
    }
}

impl std::fmt::Display for LeaseReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operations, ok, fail, info, skipped, stuck, .. } = self;
        write!(f, "{operations} operations on leases: {ok} ok, {fail} fail, {info} info")?;
        if *skipped > 0 {
            write!(f, "; {skipped} were due while their client still waited, and were left out")?;
        }
        if *stuck > 0 {
            write!(f, "; clients that did not end in time: {stuck}")?;
        }
        Ok(())
    }
}
