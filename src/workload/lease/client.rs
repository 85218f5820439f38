//! One client of the lease workload.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::Utc;
use rackrift_checkers::history::{OpType, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::namespace::NAMESPACE;
use super::choice::{Action, Known, choose};
use super::latency::Latencies;
use super::{LeaseConfig, wire};
use crate::kube::lease::{self, Lease};
use crate::kube::{self, Answer, ApiServer, Effect, errors};
use crate::run::recorder::{Recorder, Step};

/// How far behind its schedule a client may be; operations due longer ago are left out and counted. Without a
/// bound, a heal would be followed by a storm of everything that was due during the fault.
pub const BACKLOG: Duration = Duration::from_secs(1);

/// What all clients share.
#[derive(Debug)]
pub struct Shared {
    pub(super) config: LeaseConfig,
    pub(super) recorder: Recorder,
    pub(super) stop: CancellationToken,
    pub(super) next_process: AtomicU64,
    pub(super) next_write: AtomicU64,
    pub(super) latency: Latencies,
}

/// What one client did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub(super) ok: u64,
    pub(super) fail: u64,
    pub(super) info: u64,
    pub(super) skipped: u64,
}

/// A client: its connection, what it knows, and where it stands in its schedule.
pub(super) struct Client {
    shared: Arc<Shared>,
    server: String,
    name: String,
    number: u32,
    process: u64,
    connection: kube::Client,
    known: Vec<Known>,
    last: Option<usize>,
    rng: StdRng,
    tally: Tally,
}

/// An operation about to be sent.
struct Operation {
    key: usize,
    f: &'static str,
    wanted: Option<Lease>,
    request: kube::Request,
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, server: &ApiServer, number: u32, process: u64) -> Self {
        // Each client has a stream of its own, so that one more client does not change what the others choose.
        let rng =
            StdRng::seed_from_u64(shared.config.seed ^ (process + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            server: server.host.clone(),
            name: super::client_name(server, number),
            number,
            process,
            connection: server.client(),
            known: vec![Known::Nothing; shared.config.keys as usize],
            last: None,
            rng,
            tally: Tally::default(),
            shared,
        }
    }

    /// Works through the schedule until told to stop, then reads every lease once more if it is the first client of
    /// its API server.
    pub(super) async fn run(mut self) -> Tally {
        let stop = self.shared.stop.clone();
        let mut due = Instant::now() + self.gap() / 2;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(due) => {}
            }
            let (key, action) = choose(&mut self.rng, &self.name, &self.known, self.last);
            let operation = self.operation(key, action);
            if !self.perform(operation, due).await {
                return self.tally;
            }
            due += self.gap();
            while due + BACKLOG < Instant::now() {
                due += self.gap();
                self.tally.skipped += 1;
            }
        }
        if self.number == 0 {
            for key in 0..self.known.len() {
                let operation = self.operation(key, Action::Read);
                if !self.perform(operation, Instant::now()).await {
                    break;
                }
            }
        }
        self.tally
    }

    /// Time to the next operation: between half and one and a half periods.
    fn gap(&mut self) -> Duration {
        self.shared.config.period.mul_f64(self.rng.random_range(0.5..1.5))
    }

    fn operation(&mut self, key: usize, action: Action) -> Operation {
        let name = wire::name(key);
        let old = match &self.known[key] {
            Known::Version(lease) => (**lease).clone(),
            Known::Nothing | Known::Absent => Lease { name: name.clone(), ..Lease::default() },
        };
        let holder = if action == Action::Release { "" } else { &self.name };
        let write = || {
            let id = format!("w{}", self.shared.next_write.fetch_add(1, Ordering::Relaxed));
            wire::next(&old, holder, id, self.shared.config.duration_s, Utc::now())
        };
        let (f, wanted, request) = match action {
            Action::Read => ("read", None, wire::read(&name)),
            Action::Create => {
                let lease = write();
                ("create", Some(lease.clone()), wire::create(&lease))
            }
            Action::Take | Action::Release => {
                let lease = write();
                ("cas", Some(lease.clone()), wire::replace(&lease))
            }
        };
        Operation { key, f, wanted, request }
    }

    /// Records, sends, classifies, records. False if the history can no longer be written.
    async fn perform(&mut self, operation: Operation, due: Instant) -> bool {
        let step = |client: &Self, value, error| Step {
            process: client.process,
            f: operation.f,
            key: format!("{NAMESPACE}/{}", wire::name(operation.key)),
            client: client.name.clone(),
            value,
            error,
        };
        let invoked = operation.wanted.as_ref().map_or(Value::Nil, wire::wanted);
        if self.shared.recorder.invoke(step(self, invoked.clone(), None)).is_err() {
            return false;
        }
        let sent = Instant::now();
        let answer = self.connection.send(&operation.request, self.shared.config.deadline).await;
        let ended = Instant::now();
        let (kind, seen, error) = outcome(&operation, &answer);
        let value = match (&seen, &operation.wanted) {
            (Known::Version(lease), Some(wanted)) if wanted.version != 0 => {
                wire::replaced(wanted.version, lease)
            }
            (Known::Version(lease), _) => wire::shown(lease),
            _ if operation.f == "read" => Value::Nil,
            _ => invoked,
        };
        self.shared.recorder.complete(kind, step(self, value, error));
        let outcome = self.count(kind);
        self.shared.latency.add(&self.server, operation.f, outcome, ended - sent, ended - due);
        // A read that failed leaves what was known; after a write that failed or may have happened, only a new
        // read tells what the version is.
        if kind == OpType::Ok || operation.f != "read" {
            self.known[operation.key] = seen;
        }
        self.last = Some(operation.key);
        true
    }

    /// Counts the outcome; a process whose operation ended as `info` never speaks again.
    fn count(&mut self, kind: OpType) -> &'static str {
        match kind {
            OpType::Ok => {
                self.tally.ok += 1;
                "ok"
            }
            OpType::Fail => {
                self.tally.fail += 1;
                "fail"
            }
            OpType::Info | OpType::Invoke => {
                self.tally.info += 1;
                self.process = self.shared.next_process.fetch_add(1, Ordering::Relaxed);
                "info"
            }
        }
    }
}

/// How the operation ended, what its client knows then, and the error line.
fn outcome(operation: &Operation, answer: &Answer) -> (OpType, Known, Option<String>) {
    let effect = if operation.f == "read" { Effect::Read } else { Effect::Change };
    let class = errors::classify(effect, answer);
    if class.op_type() != OpType::Ok {
        return (class.op_type(), Known::Nothing, Some(class.text()));
    }
    if class.word == "absent" {
        return (OpType::Ok, Known::Absent, None);
    }
    let Answer::Came { body, .. } = answer else {
        return (OpType::Info, Known::Nothing, Some("unknown: ok without an answer".into()));
    };
    match lease::from_json(body) {
        Ok(lease) => (OpType::Ok, Known::Version(Box::new(lease)), None),
        // A success that cannot be read: a write has happened, but its version is unknown.
        Err(e) if effect == Effect::Read => (OpType::Fail, Known::Nothing, Some(format!("unread: {e}"))),
        Err(e) => (OpType::Info, Known::Nothing, Some(format!("unknown: {e}"))),
    }
}
