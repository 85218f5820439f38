//! One planned cut within a run: planned on the hosts as they are, put in force, held, healed.
//!
//! # Invariants
//! * Once [`Cut::prepare`] returned, [`Cut::heal`] is reached whatever happens between; nothing here is cancelled
//!   between the two but the waiting.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::history::{Entry, FaultMark, FaultPhase};
use tokio::sync::mpsc;

use super::assemble::PlannedCut;
use super::recorder::Recorder;
use super::stop::Stop;
use super::tell::Tell;
use super::until::{Awaited, Until};
use crate::fault::cut::{Cut, OBSERVE_LIMIT};
use crate::fault::id::FaultId;
use crate::fault::journal::Journal;
use crate::fault::mark::Mark;
use crate::fault::plan::{Plan, Request, Sides, Target};
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

/// Plans a cut on the hosts as they are now.
///
/// # Errors
/// Why it is refused; nothing was touched.
pub async fn plan(
    remote: &Arc<dyn Remote>,
    inventory: &Inventory,
    cut: &PlannedCut,
    id: FaultId,
) -> Result<Plan, String> {
    let named: BTreeSet<&String> = cut.sets.0.iter().chain(&cut.sets.1).collect();
    let hosts: Vec<String> =
        inventory.hosts().map(|h| h.name.clone()).filter(|h| named.contains(h)).collect();
    let survey = survey(remote, &hosts).await;
    let request = Request {
        id,
        name: cut.spec.name.clone(),
        edges: cut.edges.clone(),
        targets: inventory.hosts().map(|h| Target::of(h, inventory)).collect(),
        protected: inventory.protected.clone(),
        ttl: TTL,
        sides: Sides::Both,
    };
    Plan::build(&request, &survey).map_err(|e| e.to_string())
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

/// Puts a cut in force, holds it, heals it.
///
/// # Errors
/// Why the fault never acted; what it left, if anything, is in the message.
pub async fn hold(
    remote: &Arc<dyn Remote>,
    plan: Plan,
    end: End<'_>,
    journal: Journal,
    recorder: &Recorder,
    stop: &Stop,
    tell: &dyn Tell,
) -> Result<Held, String> {
    let hosts: Vec<String> = plan.hosts.keys().cloned().collect();
    let edges = plan.edges.len();
    let name = plan.name.clone();
    let (marks, scribe) = scribe(recorder);
    tell.now(&format!("preparing the cut on {} hosts", hosts.len()), None);
    stop.set_faulted(hosts);
    // A block of its own: the cut, and with it the senders of its marks, is gone at its end.
    let held = async {
        let cut = Cut::prepare(Arc::clone(remote), plan, journal, marks).await.map_err(|e| e.to_string())?;
        let committed = cut.commit().await.map_err(|e| e.to_string())?;
        let keep = cut.keep_alive();
        let mut held = Held::default();
        let seen = cut.observe(OBSERVE_LIMIT).await;
        if seen.bites() {
            tell.say(&format!("cut: {edges} directed edges, seen from both sides"));
        } else {
            let open: Vec<String> = seen.open.keys().map(ToString::to_string).collect();
            let trouble = format!("the cut does not bite: {}", open.join(", "));
            tell.say(&trouble);
            held.trouble = Some(trouble);
        }
        for (host, why) in &committed.unknown {
            tell.say(&format!("{host}: nobody knows whether the cut acts there ({why})"));
        }
        let what = end.state.as_ref().map_or_else(String::new, |(until, _)| format!(" until {until}"));
        tell.now(&format!("the racks are apart{what}"), Some(end.longest));
        end.wait(&name, recorder, stop, tell).await;
        cut.look().await;
        tell.now("healing", None);
        keep.stop().await;
        let report = cut.heal().await;
        tell.say(&format!("healed: {report}"));
        held.dirty = report.recovery().into_iter().map(|(h, w)| (h.to_owned(), w.to_owned())).collect();
        held.ends = report.hosts.iter().map(|(h, e)| (h.clone(), e.to_string())).collect();
        Ok(held)
    }
    .await;
    stop.set_faulted(Vec::new());
    // Its senders are gone with the cut: it has written all it will get.
    let _ = tokio::time::timeout(Duration::from_secs(5), scribe).await;
    held
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
