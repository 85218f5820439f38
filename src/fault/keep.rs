//! While a fault is in force: its dead-man's switches are renewed and its rules are watched.
//!
//! # Invariants
//! * Renewed three times within the dead-man's time, so that two lost answers in a row heal nothing.
//! * A rule that was moved or taken away is told once, and told again when it is back; it is not put back: whoever
//!   moved it would move it again, and the history would show neither.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::history::FaultPhase;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::cut::{Shared, each};
use super::script;

/// How often the rules are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Keeps a fault alive until dropped or stopped.
pub struct KeepAlive {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl KeepAlive {
    pub(super) fn start(shared: Arc<Shared>) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(keep(shared, stop.clone()));
        Self { stop, task }
    }

    /// Stops, and waits until the last renewal is over, so that none comes after the undo.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // The task cannot panic; had it, there would be nothing to wait for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let third = Duration::from_secs(shared.plan.ttl_s) / 3;
    let mut renew = interval(third);
    let mut look = interval(LOOK_EVERY);
    for timer in [&mut renew, &mut look] {
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut watch = Watch::new(&shared);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = renew.tick() => watch.renew(&shared).await,
            _ = look.tick() => watch.look(&shared).await,
        }
    }
}

struct Watch {
    /// Trouble that was told, by host.
    told: BTreeMap<String, String>,
    /// When each host last confirmed a renewal.
    renewed: BTreeMap<String, Instant>,
    /// Hosts whose fault has gone.
    gone: BTreeSet<String>,
}

impl Watch {
    fn new(shared: &Shared) -> Self {
        let now = Instant::now();
        let renewed = shared.plan.hosts.keys().map(|h| (h.clone(), now)).collect();
        Self { told: BTreeMap::new(), renewed, gone: BTreeSet::new() }
    }

    async fn renew(&mut self, shared: &Shared) {
        let plan = &shared.plan;
        let mut scripts = each(plan, |h| plan.envelope(h).renew());
        scripts.retain(|host, _| !self.gone.contains(host));
        let ttl = Duration::from_secs(plan.ttl_s);
        for script in scripts.values_mut() {
            script.limit = ttl / 3;
        }
        for (host, outcome) in script::on_each(&shared.remote, scripts).await {
            let answer = outcome.ok();
            match answer.as_deref().ok().and_then(|text| script::value(text, "renewed")) {
                Some("yes") => {
                    self.renewed.insert(host, Instant::now());
                }
                Some("gone") => {
                    self.tell(shared, &host, "the fault is gone from the host before its time".to_owned());
                    self.gone.insert(host);
                }
                said => {
                    let why = said.map_or_else(|| answer.clone().unwrap_or_else(|e| e), str::to_owned);
                    if self.renewed.get(&host).is_some_and(|at| at.elapsed() > ttl) {
                        let text = format!(
                            "the dead-man's time passed without a renewal ({why}): it must have fired"
                        );
                        self.tell(shared, &host, text);
                    }
                }
            }
        }
    }

    async fn look(&mut self, shared: &Shared) {
        for (host, look) in shared.looks().await {
            // A host that cannot be seen proves nothing; the renewals notice if it stays away.
            let Ok(look) = look else { continue };
            match look.trouble() {
                Some(trouble) if !self.gone.contains(&host) => self.tell(shared, &host, trouble),
                Some(_) => {}
                None => {
                    if self.told.remove(&host).is_some() {
                        self.mark(
                            shared,
                            &host,
                            FaultPhase::Applied,
                            &format!("the rules stand again on {host}"),
                        );
                    }
                }
            }
        }
    }

    fn tell(&mut self, shared: &Shared, host: &str, trouble: String) {
        if self.told.get(host) != Some(&trouble) {
            self.mark(shared, host, FaultPhase::Missing, &format!("{host}: {trouble}"));
            self.told.insert(host.to_owned(), trouble);
        }
    }

    /// A mark for each edge at that host.
    fn mark(&self, shared: &Shared, host: &str, phase: FaultPhase, detail: &str) {
        for edge in shared.plan.edges.iter().filter(|e| e.from == host || e.to == host) {
            shared.mark(phase, Some(edge), Some(detail.to_owned()));
        }
    }
}
