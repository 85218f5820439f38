//! One planned fault within a run: planned on the hosts as they are, put in force, held, healed.
//!
//! # Invariants
//! * Once a fault is prepared, its heal is reached whatever happens between; nothing here is cancelled
//!   between the two but the waiting.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::history::{Entry, FaultMark, FaultPhase};
use tokio::sync::mpsc;

use super::planned::{Act, PlannedFault};
use super::ranges::PodRanges;
use super::recorder::Recorder;
use super::scenario::{FaultSpec, Scope};
use super::stop::Stop;
use super::tell::Tell;
use super::until::{Awaited, Until};
use crate::fault::cut::{Cut, OBSERVE_LIMIT};
use crate::fault::deed::Deed;
use crate::fault::healing::HealReport;
use crate::fault::id::FaultId;
use crate::fault::journal::Journal;
use crate::fault::keep::KeepAlive;
use crate::fault::kind::What;
use crate::fault::kind::plan::{self as deed, DeedPlan};
use crate::fault::life::{Committed, LifeError};
use crate::fault::mark::{Mark, Marks};
use crate::fault::plan::{Plan, RUN_DIR, Request, Sides, Target};
use crate::fault::survey::survey;
use crate::host::remote::Remote;
use crate::inventory::Inventory;

/// After this without renewal a host heals by itself.
pub const TTL: Duration = Duration::from_secs(20);

/// How a cut went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Hosts that are not verified clean, with the reason.
    pub dirty: Vec<(String, String)>,
    /// How each host came clean.
    pub ends: Vec<(String, String)>,
    /// What kept the fault from acting, if it did not.
    pub trouble: Option<String>,
}

impl Held {
    /// Adds how a further cut of the same run went.
    pub fn add(&mut self, other: Self) {
        self.dirty.extend(other.dirty);
        self.ends.extend(other.ends);
        if self.trouble.is_none() {
            self.trouble = other.trouble;
        }
    }
}

/// A fault, planned on the hosts as they are.
#[derive(Debug, Clone)]
pub enum Planned {
    /// A partition.
    Cut(Plan),
    /// Something done to hosts.
    Do(DeedPlan),
}

/// Why a fault is not planned; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPlanned {
    /// It must not be done.
    Refused(String),
    /// The lab lacks what it needs, and nothing else is wrong.
    Missing(String),
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(plan) => plan.fmt(f),
            Self::Do(plan) => plan.fmt(f),
        }
    }
}

/// Plans a fault on the hosts as they are now; `ranges` are those of the pods behind them.
///
/// # Errors
/// Why not; nothing was touched.
pub async fn plan(
    remote: &Arc<dyn Remote>,
    inventory: &Inventory,
    fault: &PlannedFault,
    ranges: &PodRanges,
    id: FaultId,
) -> Result<Planned, NotPlanned> {
    let name = fault.spec.name().to_owned();
    let targets = || inventory.hosts().map(|h| Target::of(h, inventory));
    let protected = inventory.protected.clone();
    match (&fault.spec, &fault.act) {
        (FaultSpec::Do(spec), Act::Do { on, towards }) => {
            let peers = targets().filter(|t| towards.contains(&t.host));
            let request = deed::Request {
                id,
                name,
                what: spec.what.clone(),
                hosts: on.iter().map(|h| (h.clone(), RUN_DIR.to_owned())).collect(),
                peers: peers.map(|t| (t.host.clone(), t.addresses())).collect(),
                protected,
                roles: inventory.hosts().map(|h| (h.name.clone(), h.roles.clone())).collect(),
                allow: spec.allow.clone(),
                ttl: TTL,
            };
            DeedPlan::build(remote, &request).await.map(Planned::Do).map_err(|refused| {
                let told = refused.to_string();
                if refused.only_missing() { NotPlanned::Missing(told) } else { NotPlanned::Refused(told) }
            })
        }
        (FaultSpec::Cut(spec), Act::Cut { edges, .. }) => {
            let named: BTreeSet<&String> = edges.iter().flat_map(|e| [&e.from, &e.to]).collect();
            let hosts: Vec<String> =
                inventory.hosts().map(|h| h.name.clone()).filter(|h| named.contains(h)).collect();
            let survey = survey(remote, &hosts).await;
            let (targets, notes): (Vec<Target>, _) = match spec.scope {
                Scope::Hosts => (targets().collect(), Vec::new()),
                Scope::HostsAndPods => {
                    let with_pods = |t: Target| {
                        let behind = ranges.behind(&t.host);
                        t.with_pods(behind)
                    };
                    (targets().map(with_pods).collect(), ranges.notes(&hosts))
                }
            };
            let request = Request {
                id,
                name,
                edges: edges.clone(),
                targets,
                protected,
                ttl: TTL,
                sides: Sides::Both,
                packets: spec.packets.clone(),
                flap: spec.flap,
            };
            let mut plan = Plan::build(&request, &survey).map_err(|e| NotPlanned::Refused(e.to_string()))?;
            plan.warnings.extend(notes);
            Ok(Planned::Cut(plan))
        }
        (FaultSpec::Cut(_), Act::Do { .. }) | (FaultSpec::Do(_), Act::Cut { .. }) => {
            unreachable!("a fault is resolved into what it is written as")
        }
    }
}

/// A fault that is prepared.
enum Prepared {
    Cut(Cut),
    Do(Deed),
}

impl Prepared {
    async fn prepare(
        remote: Arc<dyn Remote>,
        plan: Planned,
        journal: Journal,
        marks: Marks,
    ) -> Result<Self, LifeError> {
        match plan {
            Planned::Cut(plan) => Cut::prepare(remote, plan, journal, marks).await.map(Self::Cut),
            Planned::Do(plan) => Deed::prepare(remote, plan, journal, marks).await.map(Self::Do),
        }
    }

    async fn commit(&self) -> Result<Committed, LifeError> {
        match self {
            Self::Cut(cut) => cut.commit().await,
            Self::Do(deed) => deed.commit().await,
        }
    }

    /// Ok: what was seen of it in force; else what was not.
    async fn observe(&self) -> Result<String, String> {
        match self {
            Self::Cut(cut) => {
                let seen = cut.observe(OBSERVE_LIMIT).await;
                if seen.bites() {
                    let edges = cut.plan().edges.len();
                    return Ok(format!("cut: {edges} directed edges, seen from both sides"));
                }
                let uncut = seen.edges.iter().filter(|(_, e)| !e.cut());
                let uncut: Vec<String> = uncut.map(|(edge, e)| format!("{edge} ({})", e.words())).collect();
                Err(format!("the cut does not bite: {}", uncut.join(", ")))
            }
            Self::Do(deed) => {
                let seen = deed.observe(deed.patience()).await;
                if seen.bites() {
                    Ok(format!("in force: {seen}"))
                } else {
                    Err(format!("the fault is not seen in force: {seen}"))
                }
            }
        }
    }

    /// Keeps it alive, unless the machine itself goes away in it.
    fn keep_alive(&self) -> Option<KeepAlive> {
        match self {
            Self::Cut(cut) => Some(cut.keep_alive()),
            Self::Do(deed) => (!matches!(deed.plan().what, What::Machine(_))).then(|| deed.keep_alive()),
        }
    }

    async fn look(&self) {
        match self {
            Self::Cut(cut) => drop(cut.look().await),
            Self::Do(deed) => drop(deed.look().await),
        }
    }

    async fn heal(&self) -> HealReport {
        match self {
            Self::Cut(cut) => cut.heal().await,
            Self::Do(deed) => deed.heal().await,
        }
    }
}

/// When a fault ends.
#[derive(Debug)]
pub struct End<'a> {
    /// After so long, at the latest.
    pub longest: Duration,
    /// When this is reached.
    pub state: Option<(Until, Awaited<'a>)>,
}

impl End<'_> {
    /// Waits for it, and says in the history that it came if a state was waited for.
    async fn wait(self, fault: &str, recorder: &Recorder, stop: &Stop, tell: &dyn Tell) {
        let Some((until, state)) = self.state else {
            return stop.wait(self.longest, &recorder.failed()).await;
        };
        let said = match state.wait(self.longest, recorder, stop).await {
            Some(took) => {
                recorder.record(Entry::Fault(FaultMark {
                    time: recorder.now(),
                    fault: fault.to_owned(),
                    phase: FaultPhase::Reached,
                    edge: None,
                    detail: Some(until.to_string()),
                }));
                format!("{until}: after {:.1} s", took.as_secs_f64())
            }
            None => format!("not within {} s: {until}", self.longest.as_secs_f64()),
        };
        tell.say(&said);
    }
}

/// Puts a fault in force, holds it, heals it.
///
/// # Errors
/// Why the fault never acted; what it left, if anything, is in the message.
pub async fn hold(
    remote: &Arc<dyn Remote>,
    plan: Planned,
    end: End<'_>,
    journal: Journal,
    recorder: &Recorder,
    stop: &Stop,
    tell: &dyn Tell,
) -> Result<Held, String> {
    let (hosts, name, meanwhile): (Vec<String>, _, _) = match &plan {
        Planned::Cut(p) => (p.hosts.keys().cloned().collect(), p.name.clone(), format!("{} holds", p.name)),
        Planned::Do(p) => (p.hosts.keys().cloned().collect(), p.name.clone(), p.what.summary()),
    };
    let (marks, scribe) = scribe(recorder);
    tell.now(&format!("preparing {name} on {}", hosts_in_words(&hosts)), None);
    stop.set_faulted(hosts);
    // A block of its own: the fault, and with it the senders of its marks, is gone at its end.
    let held = async {
        let fault =
            Prepared::prepare(Arc::clone(remote), plan, journal, marks).await.map_err(|e| e.to_string())?;
        let committed = fault.commit().await.map_err(|e| e.to_string())?;
        let keep = fault.keep_alive();
        let mut held = Held::default();
        match fault.observe().await {
            Ok(seen) => tell.say(&seen),
            Err(trouble) => {
                tell.say(&trouble);
                held.trouble = Some(trouble);
            }
        }
        for (host, why) in &committed.unknown {
            tell.say(&format!("{host}: nobody knows whether {name} acts there ({why})"));
        }
        let what = end.state.as_ref().map_or_else(String::new, |(until, _)| format!(" until {until}"));
        tell.now(&format!("{meanwhile}{what}"), Some(end.longest));
        end.wait(&name, recorder, stop, tell).await;
        fault.look().await;
        tell.now("healing", None);
        if let Some(keep) = keep {
            keep.stop().await;
        }
        let report = fault.heal().await;
        tell.say(&format!("healed: {report}"));
        held.dirty = report.recovery().into_iter().map(|(h, w)| (h.to_owned(), w.to_owned())).collect();
        held.ends = report.hosts.iter().map(|(h, e)| (h.clone(), e.to_string())).collect();
        Ok(held)
    }
    .await;
    stop.set_faulted(Vec::new());
    // Its senders are gone with the fault: it has written all it will get.
    let _ = tokio::time::timeout(Duration::from_secs(5), scribe).await;
    held
}

fn hosts_in_words(hosts: &[String]) -> String {
    match hosts {
        [one] => one.clone(),
        many => format!("{} hosts", many.len()),
    }
}

/// Writes marks into the history as they come.
fn scribe(recorder: &Recorder) -> (mpsc::UnboundedSender<Mark>, tokio::task::JoinHandle<()>) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Mark>();
    let recorder = recorder.clone();
    let task = tokio::spawn(async move {
        while let Some(mark) = receiver.recv().await {
            recorder.record(Entry::Fault(FaultMark {
                time: recorder.at(mark.at),
                fault: mark.fault,
                phase: mark.phase,
                edge: mark.edge.map(|e| (e.from, e.to)),
                detail: mark.detail,
            }));
        }
    });
    (sender, task)
}
