//! What is alike in the life of every fault, whatever its kind: prepare everywhere, commit everywhere, undo.
//!
//! # Invariants
//! * The journal is on disk before the step that it announces.
//! * If one host cannot be prepared, or certainly failed to commit, all hosts are healed before the error returns.
//! * An answer that was lost is looked for on the host; the command is not sent again. Undo alone is, because
//!   undoing twice is undoing.
//! * Dropping a fault heals nothing here; the dead-man's switches do, within their time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::healing::{self, HealReport};
use super::id::FaultId;
use super::journal::{Journal, Step};
use super::script::{self, Envelope};
use crate::host::remote::{Outcome, Remote, Script};

/// How long a script on a host may take: the lock of iptables alone may take 10 s.
const SCRIPT_LIMIT: Duration = Duration::from_secs(30);

/// A fault that is planned, as its life needs it.
pub(super) trait Planned: Send + Sync {
    /// The fault's id.
    fn id(&self) -> &FaultId;
    /// Its name within the run.
    fn name(&self) -> &str;
    /// Dead-man's time, s.
    fn ttl_s(&self) -> u64;
    /// The hosts that have a part in it.
    fn hosts(&self) -> Vec<&str>;
    /// What a host gets; `host` is one of [`Planned::hosts`].
    fn envelope(&self, host: &str) -> Envelope<'_>;
    /// How long the undo may take on a host beyond the dead-man's time: a machine may have to boot.
    fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }
}

/// Why a fault is not in force. Nothing of it is, unless the report names hosts.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// The journal cannot be written.
    #[error("the journal of faults cannot be written: {0}; nothing was done")]
    Journal(#[from] io::Error),
    /// A host could not be prepared, or did not commit.
    #[error("fault {fault} could not be {what}: {}; {report}", reasons(why))]
    Hosts {
        /// The fault's name.
        fault: String,
        /// `prepared` or `committed`.
        what: &'static str,
        /// Host → reason.
        why: BTreeMap<String, String>,
        /// What the undo on all hosts came to.
        report: HealReport,
    },
}

fn reasons(why: &BTreeMap<String, String>) -> String {
    why.iter().map(|(host, reason)| format!("{host}: {reason}")).collect::<Vec<_>>().join("; ")
}

/// How a commit went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Hosts of which nobody knows whether the fault acts there, with the reason.
    pub unknown: BTreeMap<String, String>,
}

/// A planned fault on its way: whom it is done to, and where that is written down.
pub(super) struct Life<P> {
    pub(super) remote: Arc<dyn Remote>,
    pub(super) plan: P,
    pub(super) journal: Journal,
}

impl<P: Planned> Life<P> {
    /// Journal, undo scripts and dead-man's switches, staged parts. Nothing acts yet.
    pub(super) async fn prepare(&self) -> Result<(), LifeError> {
        let plan = &self.plan;
        let undo = plan.hosts().into_iter().map(|h| (h.to_owned(), plan.envelope(h).undo())).collect();
        let step = Step::Prepare { name: plan.name().to_owned(), ttl_s: plan.ttl_s(), undo };
        self.journal.write(plan.id(), step)?;
        let outcomes = script::on_each(&self.remote, each(plan, |e| e.prepare())).await;
        let why: BTreeMap<String, String> = outcomes
            .into_iter()
            .filter_map(|(host, outcome)| Some((host, answer(&outcome, "staged").err()?)))
            .collect();
        if why.is_empty() { Ok(()) } else { Err(self.give_up("prepared", why).await) }
    }

    /// Makes the fault act, on all hosts at once. `applied` hears of each host that said so, and when; `acts` tells
    /// on which of the hosts whose answer was lost the fault turns out to act.
    pub(super) async fn commit(
        &self,
        mut applied: impl FnMut(&str, Instant) + Send,
        acts: impl AsyncFn(BTreeSet<String>) -> BTreeSet<String>,
    ) -> Result<Committed, LifeError> {
        let plan = &self.plan;
        let scripts = each(plan, |e| e.commit());
        let mut tasks = script::start_each(&self.remote, scripts);
        let mut failed = BTreeMap::new();
        let mut lost = BTreeMap::new();
        while let Some((host, outcome)) = script::next(&mut tasks).await {
            let at = Instant::now();
            let said = answer(&outcome, "committed");
            let told = said.as_ref().map_or_else(Clone::clone, |()| "committed".to_owned());
            match said {
                Ok(()) => applied(&host, at),
                Err(why) if certain(&outcome) => {
                    failed.insert(host.clone(), why);
                }
                Err(why) => {
                    lost.insert(host.clone(), why);
                }
            }
            // The fault acts by now; a full disk must not keep it from being healed, so the error is not ours.
            let _ = self.journal.write(plan.id(), Step::Committed { host, answer: told });
        }
        if !lost.is_empty() {
            for host in acts(lost.keys().cloned().collect()).await {
                applied(&host, Instant::now());
                lost.remove(&host);
            }
        }
        if failed.is_empty() {
            Ok(Committed { unknown: lost })
        } else {
            Err(self.give_up("committed", failed).await)
        }
    }

    async fn give_up(&self, what: &'static str, why: BTreeMap<String, String>) -> LifeError {
        let report = healing::undo_all(self).await;
        LifeError::Hosts { fault: self.plan.name().to_owned(), what, why, report }
    }
}

/// A script for each host of the plan.
pub(super) fn each(plan: &dyn Planned, body: impl Fn(&Envelope<'_>) -> String) -> BTreeMap<String, Script> {
    let of = |host: &str| Script::new(body(&plan.envelope(host))).limit(SCRIPT_LIMIT);
    plan.hosts().into_iter().map(|host| (host.to_owned(), of(host))).collect()
}

/// Whether it is certain that the script did not do its work: it said so itself, or never started.
fn certain(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Done(f) => f.status >= 0,
        Outcome::Refused { .. } => true,
        Outcome::Signalled { .. } | Outcome::TimedOut { .. } | Outcome::Lost { .. } => false,
    }
}

/// Ok if the script said `key=yes` at its end; else why not, in its own words if it had any.
pub(super) fn answer(outcome: &Outcome, key: &str) -> Result<(), String> {
    let Outcome::Done(finished) = outcome else { return Err(outcome.to_string()) };
    if finished.status == 0 && script::value(&finished.stdout, key) == Some("yes") {
        return Ok(());
    }
    let said = ["refused", "failed", "left"].iter().find_map(|k| script::value(&finished.stdout, k));
    let stderr = finished.stderr.trim_end().lines().last().unwrap_or("");
    Err(match (said, stderr) {
        (Some(said), "") => said.trim().to_owned(),
        (Some(said), stderr) => format!("{} ({stderr})", said.trim()),
        (None, _) => outcome.to_string(),
    })
}
