//! While a fault is in force: its dead-man's switches are renewed and its rules are watched.
//!
//! # Invariants
//! * Renewed three times within the dead-man's time, so that two lost answers in a row heal nothing.
//! * A rule that was moved or taken away is told once, and told again when it is back; it is not put back: whoever
//!   moved it would move it again, and the history would show neither.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::history::FaultPhase;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::life::{Life, Planned, each};
use super::script;

/// How often the rules are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// A fault in force, as its watch needs it.
pub(super) trait Kept: Send + Sync + 'static {
    /// Its plan.
    type Plan: Planned;

    /// Its life.
    fn life(&self) -> &Life<Self::Plan>;

    /// What is wrong with it on each host, if anything; an error: the host could not be seen.
    fn troubles(&self) -> impl Future<Output = BTreeMap<String, Result<Option<String>, String>>> + Send;

    /// Marks a step on all that the fault does at that host.
    fn tell(&self, host: &str, phase: FaultPhase, detail: &str);
}

/// Keeps a fault alive until dropped or stopped.
pub struct KeepAlive {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl KeepAlive {
    pub(super) fn start<K: Kept>(kept: Arc<K>) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(keep(kept, stop.clone()));
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

async fn keep<K: Kept>(kept: Arc<K>, stop: CancellationToken) {
    let third = Duration::from_secs(kept.life().plan.ttl_s()) / 3;
    let mut renew = interval(third);
    let mut look = interval(LOOK_EVERY);
    for timer in [&mut renew, &mut look] {
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut watch = Watch::new(&kept.life().plan);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = renew.tick() => watch.renew(kept.as_ref()).await,
            _ = look.tick() => watch.look(kept.as_ref()).await,
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
    fn new(plan: &dyn Planned) -> Self {
        let now = Instant::now();
        let renewed = plan.hosts().into_iter().map(|h| (h.to_owned(), now)).collect();
        Self { told: BTreeMap::new(), renewed, gone: BTreeSet::new() }
    }

    async fn renew(&mut self, kept: &impl Kept) {
        let plan = &kept.life().plan;
        let mut scripts = each(plan, |e| e.renew());
        scripts.retain(|host, _| !self.gone.contains(host));
        let ttl = Duration::from_secs(plan.ttl_s());
        for script in scripts.values_mut() {
            script.limit = ttl / 3;
        }
        for (host, outcome) in script::on_each(&kept.life().remote, scripts).await {
            let answer = outcome.ok();
            match answer.as_deref().ok().and_then(|text| script::value(text, "renewed")) {
                Some("yes") => {
                    self.renewed.insert(host, Instant::now());
                }
                Some("gone") => {
                    self.tell(kept, &host, "the fault is gone from the host before its time".to_owned());
                    self.gone.insert(host);
                }
                said => {
                    let why = said.map_or_else(|| answer.clone().unwrap_or_else(|e| e), str::to_owned);
                    if self.renewed.get(&host).is_some_and(|at| at.elapsed() > ttl) {
                        let text = format!(
                            "the dead-man's time passed without a renewal ({why}): it must have fired"
                        );
                        self.tell(kept, &host, text);
                    }
                }
            }
        }
    }

    async fn look(&mut self, kept: &impl Kept) {
        for (host, trouble) in kept.troubles().await {
            // A host that cannot be seen proves nothing; the renewals notice if it stays away.
            let Ok(trouble) = trouble else { continue };
            match trouble {
                Some(trouble) if !self.gone.contains(&host) => self.tell(kept, &host, trouble),
                Some(_) => {}
                None => {
                    if self.told.remove(&host).is_some() {
                        kept.tell(&host, FaultPhase::Applied, &format!("in force again on {host}"));
                    }
                }
            }
        }
    }

    fn tell(&mut self, kept: &impl Kept, host: &str, trouble: String) {
        if self.told.get(host) != Some(&trouble) {
            kept.tell(host, FaultPhase::Missing, &format!("{host}: {trouble}"));
            self.told.insert(host.to_owned(), trouble);
        }
    }
}
