//! The life of a partition: as every fault's ([`super::life`]), and seen in force and healed edge by edge.
//!
//! # Invariants
//! * What [`super::life`] promises.
//! * An edge counts as cut or healed only when probes and counters say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rackrift_checkers::history::FaultPhase;
use tokio::time::sleep;

use super::healing::{self, HealReport};
use super::id::{FaultId, Way};
use super::journal::{Journal, Step};
use super::keep::{KeepAlive, Kept};
pub use super::life::{Committed, LifeError as CutError};
use super::life::{Life, Planned, each};
use super::mark::{Mark, Marks};
use super::observe::{Look, Observation};
use super::partition::Action;
use super::plan::{HostPlan, Plan};
use super::probe::{self, Answers};
use super::script::{self, Envelope};
use super::shape::{Edge, Edges};
use crate::host::remote::Remote;

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
    pub(super) life: Life<Plan>,
    pub(super) marks: Marks,
    /// What was answered before the fault.
    pub(super) before: Answers,
    /// Edges of which the history knows that they were seen cut.
    observed: Mutex<Edges>,
}

impl std::fmt::Debug for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cut").field(&self.shared.life.plan.id).finish()
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
        let life = Life { remote, plan, journal };
        life.prepare().await?;
        let before = probe::ask(&life.remote, &life.plan).await;
        Ok(Self { shared: Arc::new(Shared { life, marks, before, observed: Mutex::default() }) })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.shared.life.plan
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
        let plan = &shared.life.plan;
        shared.life.journal.write(&plan.id, Step::Commit)?;
        shared.mark_all(FaultPhase::Asked, None);
        let mut applied = Edges::new();
        let committed = shared
            .life
            .commit(
                |host, at| shared.applied(host, at, &mut applied),
                async |lost| shared.look_for_lost(lost).await,
            )
            .await?;
        for edge in plan.edges.difference(&applied) {
            shared.mark(
                FaultPhase::Unknown,
                Some(edge),
                Some("the answer to the commit was lost".to_owned()),
            );
        }
        Ok(committed)
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
        let now = probe::ask(&shared.life.remote, &shared.life.plan).await;
        let seen = Observation::of(&shared.life.plan, &shared.before, &now, &shared.looks().await);
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
        let mark = Mark { at, fault: self.life.plan.name.clone(), phase, edge: edge.cloned(), detail };
        // A conductor that no longer listens has ended its history; the fault goes on being healed.
        let _ = self.marks.send(mark);
    }

    pub(super) fn mark_all(&self, phase: FaultPhase, detail: Option<&str>) {
        let at = Instant::now();
        for edge in &self.life.plan.edges {
            self.mark_at(at, phase, Some(edge), detail.map(str::to_owned));
        }
    }

    /// Marks the edges that this host's rules cut and that nobody else's had cut before.
    fn applied(&self, host: &str, at: Instant, applied: &mut Edges) {
        for edge in dropped_by(&self.life.plan.hosts[host]) {
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
        self.looks_of(&self.life.plan.hosts.keys().cloned().collect()).await
    }

    async fn looks_of(&self, hosts: &BTreeSet<String>) -> BTreeMap<String, Result<Look, String>> {
        let plan = &self.life.plan;
        let mut scripts = each(plan, |e| e.look());
        scripts.retain(|host, _| hosts.contains(host));
        for script in scripts.values_mut() {
            script.limit = Duration::from_secs(8);
        }
        let outcomes = script::on_each(&self.life.remote, scripts).await;
        outcomes
            .into_iter()
            .map(|(host, outcome)| {
                let look = outcome.ok().and_then(|text| Look::parse(&plan.id, &plan.hosts[&host], &text));
                (host, look)
            })
            .collect()
    }
}

impl Planned for Plan {
    fn id(&self) -> &FaultId {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn ttl_s(&self) -> u64 {
        self.ttl_s
    }

    fn hosts(&self) -> Vec<&str> {
        self.hosts.keys().map(String::as_str).collect()
    }

    fn envelope(&self, host: &str) -> Envelope<'_> {
        Self::envelope(self, &self.hosts[host])
    }
}

impl Kept for Shared {
    type Plan = Plan;

    fn life(&self) -> &Life<Plan> {
        &self.life
    }

    async fn troubles(&self) -> BTreeMap<String, Result<Option<String>, String>> {
        self.looks().await.into_iter().map(|(host, look)| (host, look.map(|l| l.trouble()))).collect()
    }

    fn tell(&self, host: &str, phase: FaultPhase, detail: &str) {
        for edge in self.life.plan.edges.iter().filter(|e| e.from == host || e.to == host) {
            self.mark(phase, Some(edge), Some(detail.to_owned()));
        }
    }
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
