//! The life of a fault: prepare everywhere, commit everywhere, observe, stay alive, heal.
//!
//! # Invariants
//! * The journal is on disk before the step that it announces.
//! * If one host cannot be prepared, or certainly failed to commit, all hosts are healed before the error returns.
//! * An answer that was lost is looked for on the host; the command is not sent again. Undo alone is, because
//!   undoing twice is undoing.
//! * Dropping a [`Cut`] heals nothing here; the dead-man's switches do, within their time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rackrift_checkers::history::FaultPhase;
use tokio::time::sleep;

use super::healing::{self, HealReport};
use super::id::Way;
use super::journal::{Journal, Step};
use super::keep::KeepAlive;
use super::mark::{Mark, Marks};
use super::observe::{Look, Observation};
use super::partition::Action;
use super::plan::{HostPlan, Plan};
use super::probe::{self, Answers};
use super::script;
use super::shape::{Edge, Edges};
use crate::host::remote::{Outcome, Remote, Script};

/// How long a script on a host may take: the lock of iptables alone may take 10 s.
const SCRIPT_LIMIT: Duration = Duration::from_secs(30);
/// How long to look for the outcome of a lost commit.
const LOOK_FOR_LOST: Duration = Duration::from_secs(10);
/// How long a fault may take to be seen.
pub const OBSERVE_LIMIT: Duration = Duration::from_secs(12);

/// A fault that is prepared on all its hosts.
#[derive(Clone)]
pub struct Cut {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) remote: Arc<dyn Remote>,
    pub(super) plan: Plan,
    pub(super) journal: Journal,
    pub(super) marks: Marks,
    /// What was answered before the fault.
    pub(super) before: Answers,
    /// Edges of which the history knows that they were seen cut.
    observed: Mutex<Edges>,
}

/// Why a fault is not in force. Nothing of it is, unless `left` names hosts.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
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

impl std::fmt::Debug for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cut").field(&self.shared.plan.id).finish()
    }
}

impl Cut {
    /// Journal, undo scripts and dead-man's switches, staged rules, and a first round of probes. Nothing acts yet.
    ///
    /// # Errors
    /// The journal cannot be written, or a host cannot be prepared; then everything was undone again.
    pub async fn prepare(
        remote: Arc<dyn Remote>,
        plan: Plan,
        journal: Journal,
        marks: Marks,
    ) -> Result<Self, CutError> {
        let undo = plan.hosts.iter().map(|(n, h)| (n.clone(), plan.envelope(h).undo())).collect();
        journal.write(&plan.id, Step::Prepare { name: plan.name.clone(), ttl_s: plan.ttl_s, undo })?;
        let scripts = each(&plan, |h| plan.envelope(h).prepare());
        let outcomes = script::on_each(&remote, scripts).await;
        let why: BTreeMap<String, String> = outcomes
            .into_iter()
            .filter_map(|(host, outcome)| Some((host, answer(&outcome, "staged").err()?)))
            .collect();
        let mut shared =
            Shared { remote, plan, journal, marks, before: Answers::new(), observed: Mutex::default() };
        if !why.is_empty() {
            let report = healing::undo_all(&shared).await;
            return Err(CutError::Hosts { fault: shared.plan.name, what: "prepared", why, report });
        }
        shared.before = probe::ask(&shared.remote, &shared.plan).await;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// What was answered before the fault.
    #[must_use]
    pub fn before(&self) -> &Answers {
        &self.shared.before
    }

    /// Makes the fault act, on all hosts at once.
    ///
    /// # Errors
    /// The journal cannot be written, or a host certainly did not commit; then everything was undone again.
    pub async fn commit(&self) -> Result<Committed, CutError> {
        let shared = &self.shared;
        let plan = &shared.plan;
        shared.journal.write(&plan.id, Step::Commit)?;
        let scripts = each(plan, |h| plan.envelope(h).commit());
        shared.mark_all(FaultPhase::Asked, None);
        let mut tasks = script::start_each(&shared.remote, scripts);
        let mut applied = Edges::new();
        let mut failed = BTreeMap::new();
        let mut lost = BTreeMap::new();
        while let Some((host, outcome)) = script::next(&mut tasks).await {
            let at = Instant::now();
            let said = answer(&outcome, "committed");
            let told = said.as_ref().map_or_else(Clone::clone, |()| "committed".to_owned());
            match said {
                Ok(()) => shared.applied(&host, at, &mut applied),
                Err(why) if certain(&outcome) => {
                    failed.insert(host.clone(), why);
                }
                Err(why) => {
                    lost.insert(host.clone(), why);
                }
            }
            // The fault acts by now; a full disk must not keep it from being healed, so the error is not ours.
            let _ = shared.journal.write(&plan.id, Step::Committed { host, answer: told });
        }
        for host in shared.look_for_lost(lost.keys().cloned().collect()).await {
            shared.applied(&host, Instant::now(), &mut applied);
            lost.remove(&host);
        }
        if !failed.is_empty() {
            let report = healing::undo_all(shared).await;
            let fault = plan.name.clone();
            return Err(CutError::Hosts { fault, what: "committed", why: failed, report });
        }
        for edge in plan.edges.difference(&applied) {
            shared.mark(
                FaultPhase::Unknown,
                Some(edge),
                Some("the answer to the commit was lost".to_owned()),
            );
        }
        Ok(Committed { unknown: lost })
    }

    /// Looks and probes until every edge is seen cut, or the limit has passed.
    pub async fn observe(&self, limit: Duration) -> Observation {
        let until = Instant::now() + limit;
        loop {
            let seen = self.look().await;
            if seen.bites() || Instant::now() >= until {
                return seen;
            }
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// Looks and probes once, and marks what is newly seen cut.
    pub async fn look(&self) -> Observation {
        let shared = &self.shared;
        let now = probe::ask(&shared.remote, &shared.plan).await;
        let seen = Observation::of(&shared.plan, &shared.before, &now, &shared.looks().await);
        let mut known = shared.observed.lock().unwrap_or_else(PoisonError::into_inner);
        for (edge, e) in seen.edges.iter().filter(|(_, e)| e.cut()) {
            if known.insert(edge.clone()) {
                shared.mark(FaultPhase::Observed, Some(edge), Some(e.words()));
            }
        }
        drop(known);
        seen
    }

    /// Renews the dead-man's switches and watches the rules until the handle is dropped.
    #[must_use]
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::start(Arc::clone(&self.shared))
    }

    /// Undoes the fault on all hosts and probes until it is gone. Stop [`Cut::keep_alive`] before, or it will tell
    /// of rules that are missing.
    pub async fn heal(&self) -> HealReport {
        healing::heal(&self.shared).await
    }
}

impl Shared {
    pub(super) fn mark(&self, phase: FaultPhase, edge: Option<&Edge>, detail: Option<String>) {
        self.mark_at(Instant::now(), phase, edge, detail);
    }

    fn mark_at(&self, at: Instant, phase: FaultPhase, edge: Option<&Edge>, detail: Option<String>) {
        let mark = Mark { at, fault: self.plan.name.clone(), phase, edge: edge.cloned(), detail };
        // A conductor that no longer listens has ended its history; the fault goes on being healed.
        let _ = self.marks.send(mark);
    }

    pub(super) fn mark_all(&self, phase: FaultPhase, detail: Option<&str>) {
        let at = Instant::now();
        for edge in &self.plan.edges {
            self.mark_at(at, phase, Some(edge), detail.map(str::to_owned));
        }
    }

    /// Marks the edges that this host's rules cut and that nobody else's had cut before.
    fn applied(&self, host: &str, at: Instant, applied: &mut Edges) {
        for edge in dropped_by(&self.plan.hosts[host]) {
            if applied.insert(edge.clone()) {
                self.mark_at(at, FaultPhase::Applied, Some(&edge), Some(format!("by {host}")));
            }
        }
    }

    /// Those of the hosts on which the fault turns out to be in force.
    async fn look_for_lost(&self, mut lost: BTreeSet<String>) -> BTreeSet<String> {
        let until = Instant::now() + LOOK_FOR_LOST;
        let mut found = BTreeSet::new();
        while !lost.is_empty() && Instant::now() < until {
            for (host, look) in self.looks_of(&lost).await {
                if look.is_ok_and(|l| l.committed && l.in_force()) {
                    lost.remove(&host);
                    found.insert(host);
                }
            }
            sleep(Duration::from_millis(500)).await;
        }
        found
    }

    pub(super) async fn looks(&self) -> BTreeMap<String, Result<Look, String>> {
        self.looks_of(&self.plan.hosts.keys().cloned().collect()).await
    }

    async fn looks_of(&self, hosts: &BTreeSet<String>) -> BTreeMap<String, Result<Look, String>> {
        let plan = &self.plan;
        let mut scripts = each(plan, |h| plan.envelope(h).look());
        scripts.retain(|host, _| hosts.contains(host));
        for script in scripts.values_mut() {
            script.limit = Duration::from_secs(8);
        }
        let outcomes = script::on_each(&self.remote, scripts).await;
        outcomes
            .into_iter()
            .map(|(host, outcome)| {
                let look = outcome.ok().and_then(|text| Look::parse(&plan.id, &plan.hosts[&host], &text));
                (host, look)
            })
            .collect()
    }
}

/// A script for each host of the plan.
pub(super) fn each(plan: &Plan, body: impl Fn(&HostPlan) -> String) -> BTreeMap<String, Script> {
    plan.hosts.iter().map(|(name, h)| (name.clone(), Script::new(body(h)).limit(SCRIPT_LIMIT))).collect()
}

fn dropped_by(host: &HostPlan) -> Edges {
    let name = &host.target.host;
    let rules = host.hooks.iter().flat_map(|h| h.rules.iter().map(move |r| (h.way, r)));
    rules
        .filter(|(_, r)| r.action == Action::Drop)
        .map(|(way, r)| match way {
            Way::In => Edge::new(&r.peer, name),
            Way::Out => Edge::new(name, &r.peer),
        })
        .collect()
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
