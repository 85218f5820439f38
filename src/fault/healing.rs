//! Undoing a fault everywhere, and seeing that it is gone.
//!
//! # Invariants
//! * A host counts as clean only if its own undo script said, at its end, that nothing is left.
//! * Hosts that do not answer are asked again until the dead-man's switch must have fired; then they are named,
//!   never dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use rackrift_checkers::history::FaultPhase;
use tokio::time::sleep;

use super::cut::Shared;
use super::journal::Step;
use super::life::{Life, Planned, answer, each};
use super::probe::{self, Question};
use super::script;
use super::shape::Edge;
use crate::host::remote::Outcome;

/// How long peers may take to answer again after the undo: neighbour entries may have to be resolved anew, and a
/// machine that is very busy answers late. It ends as soon as all have answered.
const HEARD_AGAIN: Duration = Duration::from_secs(30);

/// How a host came clean, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEnd {
    /// Our undo removed the fault.
    Undone,
    /// The fault had gone before: its dead-man's switch fired, or somebody healed it.
    Already,
    /// The host was booted again, which takes rules and files away.
    Rebooted,
    /// Not verified clean, and why.
    Unverified(String),
}

impl fmt::Display for HostEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undone => f.write_str("undone"),
            Self::Already => f.write_str("it had been undone before (dead-man's switch, or a heal)"),
            Self::Rebooted => f.write_str("healed by a reboot"),
            Self::Unverified(why) => write!(f, "not verified clean: {why}"),
        }
    }
}

/// What healing came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealReport {
    /// Each host.
    pub hosts: BTreeMap<String, HostEnd>,
    /// Questions that were answered before the fault and are still silent after it.
    pub silent: Vec<Question>,
}

impl HealReport {
    /// The recovery list: hosts that are not verified clean.
    #[must_use]
    pub fn recovery(&self) -> Vec<(&str, &str)> {
        let unverified = self.hosts.iter().filter_map(|(host, end)| match end {
            HostEnd::Unverified(why) => Some((host.as_str(), why.as_str())),
            _ => None,
        });
        unverified.collect()
    }

    /// Whether all hosts are verified clean.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.recovery().is_empty()
    }
}

impl fmt::Display for HealReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recovery = self.recovery();
        if recovery.is_empty() {
            let names: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
            return write!(f, "nothing is left on {}", names.join(", "));
        }
        let named: Vec<String> = recovery.iter().map(|(host, why)| format!("{host} ({why})")).collect();
        write!(f, "NOT verified clean: {}; run `rackrift heal`", named.join(", "))
    }
}

/// Undoes everywhere; tells of each host how it came clean.
pub(super) async fn undo_all<P: Planned>(life: &Life<P>) -> HealReport {
    let plan = &life.plan;
    // Healing goes on whatever becomes of the journal: it is for those who come after a crash.
    let _ = life.journal.write(plan.id(), Step::Heal);
    let until = Instant::now() + Duration::from_secs(plan.ttl_s()) + plan.patience();
    let mut report = HealReport::default();
    let mut open: BTreeSet<String> = plan.hosts().into_iter().map(str::to_owned).collect();
    let mut pause = Duration::from_millis(500);
    loop {
        let mut scripts = each(plan, |e| e.undo());
        scripts.retain(|host, _| open.contains(host));
        let mut tasks = script::start_each(&life.remote, scripts);
        while let Some((host, outcome)) = script::next(&mut tasks).await {
            let end = host_end(plan.envelope(&host).boot, &outcome);
            if !matches!(end, HostEnd::Unverified(_)) {
                open.remove(&host);
                let _ =
                    life.journal.write(plan.id(), Step::Clean { host: host.clone(), how: end.to_string() });
            }
            report.hosts.insert(host, end);
        }
        if open.is_empty() {
            let _ = life.journal.write(plan.id(), Step::Closed);
            return report;
        }
        if Instant::now() + pause >= until {
            for (host, why) in report.recovery() {
                let (host, why) = (host.to_owned(), why.to_owned());
                let _ = life.journal.write(plan.id(), Step::Recover { host, why });
            }
            return report;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

fn host_end(boot: &str, outcome: &Outcome) -> HostEnd {
    if let Err(why) = answer(outcome, "undone") {
        return HostEnd::Unverified(why);
    }
    let Outcome::Done(finished) = outcome else { return HostEnd::Unverified(outcome.to_string()) };
    if script::value(&finished.stdout, "boot").is_some_and(|now| now != boot) {
        HostEnd::Rebooted
    } else if script::value(&finished.stdout, "found") == Some("yes") {
        HostEnd::Undone
    } else {
        HostEnd::Already
    }
}

/// Undoes everywhere, then probes until what was answered before is answered again.
pub(super) async fn heal(shared: &Shared) -> HealReport {
    let plan = &shared.life.plan;
    shared.mark_all(FaultPhase::Healing, None);
    let mut report = undo_all(&shared.life).await;
    let mut open = plan.edges.clone();
    let until = Instant::now() + HEARD_AGAIN;
    loop {
        let now = probe::ask(&shared.life.remote, plan).await;
        report.silent = shared
            .before
            .iter()
            .filter(|(q, answered)| **answered && touches(plan, q) && now.get(q) != Some(&true))
            .map(|(q, _)| q.clone())
            .collect();
        open.retain(|edge| {
            let silent = report.silent.iter().any(|q| is_of(q, edge));
            let clean = [&edge.from, &edge.to]
                .iter()
                .all(|h| !matches!(report.hosts.get(*h), Some(HostEnd::Unverified(_))));
            if !silent && clean {
                let asked = shared.before.iter().filter(|(q, a)| **a && is_of(q, edge)).count();
                let detail = match asked {
                    0 => "both ends are verified clean; no probe could tell, since none was answered before"
                        .to_owned(),
                    n => format!("{n} probes are answered again"),
                };
                shared.mark(FaultPhase::Healed, Some(edge), Some(detail));
            }
            silent || !clean
        });
        if open.is_empty() || Instant::now() >= until {
            return report;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

fn is_of(question: &Question, edge: &Edge) -> bool {
    (question.from == edge.from && question.to == edge.to)
        || (question.from == edge.to && question.to == edge.from)
}

fn touches(plan: &super::plan::Plan, question: &Question) -> bool {
    !plan.answered(&question.from, &question.to, question.method)
}
