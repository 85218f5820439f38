//! The life of a fault of hosts: as every fault's ([`super::life`]), and seen in force by signs measured on each host.
//!
//! In the history a host that a fault is done to is an edge from the host to itself.
//!
//! # Invariants
//! * What [`super::life`] promises.
//! * A host counts as faulted only if all its signs say so, and as healed only if its undo found nothing left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rackrift_checkers::history::FaultPhase;
use tokio::time::sleep;

use super::healing::{self, HealReport, HostEnd};
use super::journal::{Journal, Step};
use super::keep::{KeepAlive, Kept};
use super::kind::plan::DeedPlan;
use super::life::{Committed, Life, LifeError, Planned as _, each};
use super::mark::{Mark, Marks};
use super::script;
use super::shape::Edge;
use crate::host::remote::Remote;

/// How long to look for the outcome of a lost commit.
const LOOK_FOR_LOST: Duration = Duration::from_secs(10);

/// A fault of hosts that is prepared on all of them.
#[derive(Clone)]
pub struct Deed {
    shared: Arc<Shared>,
}

struct Shared {
    life: Life<DeedPlan>,
    marks: Marks,
    /// Hosts of which the history knows that they were seen faulted.
    observed: Mutex<BTreeSet<String>>,
}

/// What a host shows of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signs {
    /// What was seen as it should be.
    pub yes: Vec<String>,
    /// What was not.
    pub no: Vec<String>,
}

/// What was seen of a fault, at one time: each host's signs, or why it could not be seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Each host.
    pub hosts: BTreeMap<String, Result<Signs, String>>,
}

impl Signs {
    fn parse(output: &str) -> Result<Self, String> {
        if script::value(output, "end") != Some("look") {
            return Err("the answer is not whole".to_owned());
        }
        let mut signs = Self::default();
        for (_, value) in script::pairs(output).filter(|(key, _)| *key == "sign") {
            match value.split_once(' ') {
                Some(("yes", words)) => signs.yes.push(words.to_owned()),
                Some((_, words)) => signs.no.push(words.to_owned()),
                None => signs.no.push(value.to_owned()),
            }
        }
        if signs.yes.is_empty() && signs.no.is_empty() {
            signs.no.push("nothing is to be seen of it".to_owned());
        }
        Ok(signs)
    }

    /// Whether all that should be seen is.
    #[must_use]
    pub fn all(&self) -> bool {
        self.no.is_empty()
    }
}

impl Seen {
    /// Whether the fault acts on every host.
    #[must_use]
    pub fn bites(&self) -> bool {
        self.hosts.values().all(|h| h.as_ref().is_ok_and(Signs::all))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self
            .hosts
            .iter()
            .map(|(host, signs)| match signs {
                Err(why) => format!("{host} could not be seen ({why})"),
                Ok(signs) if signs.all() => format!("{host}: {}", signs.yes.join(", ")),
                Ok(signs) => format!("{host}: {}", signs.no.join(", ")),
            })
            .collect();
        f.write_str(&told.join("; "))
    }
}

impl Deed {
    /// Journal, undo scripts and dead-man's switches, staged parts. Nothing acts yet.
    ///
    /// # Errors
    /// The journal cannot be written, or a host cannot be prepared; then everything was undone again.
    pub async fn prepare(
        remote: Arc<dyn Remote>,
        plan: DeedPlan,
        journal: Journal,
        marks: Marks,
    ) -> Result<Self, LifeError> {
        let life = Life { remote, plan, journal };
        life.prepare().await?;
        Ok(Self { shared: Arc::new(Shared { life, marks, observed: Mutex::default() }) })
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &DeedPlan {
        &self.shared.life.plan
    }

    /// How long it may take until it is seen.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.shared.life.plan.patience()
    }

    /// Makes the fault act, on all hosts at once.
    ///
    /// # Errors
    /// The journal cannot be written, or a host certainly did not commit; then everything was undone again.
    pub async fn commit(&self) -> Result<Committed, LifeError> {
        let shared = &self.shared;
        shared.life.journal.write(&shared.life.plan.id, Step::Commit)?;
        shared.mark_all(FaultPhase::Asked);
        let committed = shared
            .life
            .commit(
                |host, at| shared.mark(at, host, FaultPhase::Applied, None),
                async |lost| shared.look_for_lost(lost).await,
            )
            .await?;
        for (host, why) in &committed.unknown {
            let why = format!("the answer to the commit was lost: {why}");
            shared.mark(Instant::now(), host, FaultPhase::Unknown, Some(why));
        }
        Ok(committed)
    }

    /// Looks until every host shows the fault, or the limit has passed.
    pub async fn observe(&self, limit: Duration) -> Seen {
        let until = Instant::now() + limit;
        loop {
            let seen = self.look().await;
            if seen.bites() || Instant::now() >= until {
                return seen;
            }
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// Looks once, and marks what is newly seen.
    pub async fn look(&self) -> Seen {
        let shared = &self.shared;
        let hosts = shared.signs(None).await;
        let mut known = shared.observed.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, signs) in &hosts {
            if let Ok(signs) = signs
                && signs.all()
                && known.insert(host.clone())
            {
                shared.mark(Instant::now(), host, FaultPhase::Observed, Some(signs.yes.join(", ")));
            }
        }
        drop(known);
        Seen { hosts }
    }

    /// Renews the dead-man's switches and watches the signs until the handle is dropped.
    #[must_use]
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::start(Arc::clone(&self.shared))
    }

    /// Undoes the fault on all hosts. Stop [`Deed::keep_alive`] before.
    pub async fn heal(&self) -> HealReport {
        let shared = &self.shared;
        shared.mark_all(FaultPhase::Healing);
        let report = healing::undo_all(&shared.life).await;
        for (host, end) in &report.hosts {
            if !matches!(end, HostEnd::Unverified(_)) {
                shared.mark(Instant::now(), host, FaultPhase::Healed, Some(end.to_string()));
            }
        }
        report
    }
}

impl Shared {
    fn mark(&self, at: Instant, host: &str, phase: FaultPhase, detail: Option<String>) {
        let fault = self.life.plan.name.clone();
        // A conductor that no longer listens has ended its history; the fault goes on being healed.
        let _ = self.marks.send(Mark { at, fault, phase, edge: Some(Edge::new(host, host)), detail });
    }

    fn mark_all(&self, phase: FaultPhase) {
        let at = Instant::now();
        for host in self.life.plan.hosts.keys() {
            self.mark(at, host, phase, None);
        }
    }

    /// The signs of all hosts, or of some.
    async fn signs(&self, of: Option<&BTreeSet<String>>) -> BTreeMap<String, Result<Signs, String>> {
        let mut scripts = each(&self.life.plan, |e| e.look());
        scripts.retain(|host, _| of.is_none_or(|of| of.contains(host)));
        for script in scripts.values_mut() {
            script.limit = Duration::from_secs(8);
        }
        let outcomes = script::on_each(&self.life.remote, scripts).await;
        outcomes
            .into_iter()
            .map(|(host, outcome)| (host, outcome.ok().and_then(|text| Signs::parse(&text))))
            .collect()
    }

    async fn look_for_lost(&self, mut lost: BTreeSet<String>) -> BTreeSet<String> {
        let until = Instant::now() + LOOK_FOR_LOST;
        let mut found = BTreeSet::new();
        while !lost.is_empty() && Instant::now() < until {
            for (host, signs) in self.signs(Some(&lost)).await {
                if signs.is_ok_and(|s| s.all()) {
                    lost.remove(&host);
                    found.insert(host);
                }
            }
            sleep(Duration::from_millis(500)).await;
        }
        found
    }
}

impl Kept for Shared {
    type Plan = DeedPlan;

    fn life(&self) -> &Life<DeedPlan> {
        &self.life
    }

    async fn troubles(&self) -> BTreeMap<String, Result<Option<String>, String>> {
        let trouble = |signs: Signs| (!signs.all()).then(|| signs.no.join(", "));
        self.signs(None).await.into_iter().map(|(host, signs)| (host, signs.map(trouble))).collect()
    }

    fn tell(&self, host: &str, phase: FaultPhase, detail: &str) {
        self.mark(Instant::now(), host, phase, Some(detail.to_owned()));
    }
}
