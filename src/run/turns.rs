//! The faults of a run, each in its turn.
//!
//! # Invariants
//! * What a fault is (who is drawn, who leads) is decided and written into `run.json` before it touches a host.

use std::collections::BTreeMap;

use rackrift_checkers::facts::{Facts, LeaseFacts};

use super::arrange::{holder_host, read_lease};
use super::conductor::{Order, RunError, Stage};
use super::faults::{self, End, Held, NotPlanned};
use super::planned::PlannedFault;
use super::ranges::PodRanges;
use super::until::Awaited;
use crate::fault::id::FaultId;
use crate::fault::journal::Journal;

impl Stage<'_> {
    /// Baseline, then each fault in its turn.
    pub(super) async fn faults(&self, facts: &mut Facts) -> Result<Held, RunError> {
        let Order { scenario, .. } = *self.order;
        let failed = self.recorder.failed();
        self.tell.now("baseline: watching an undisturbed lab", Some(scenario.baseline.duration()));
        self.stop.wait(scenario.baseline.duration(), &failed).await;
        // Before the first fault: in the midst of them the cluster may not answer.
        let ranges = PodRanges::read(self.order.inventory, &self.resolved.faults).await;
        let mut all = Held::default();
        for (number, fault) in self.resolved.faults.iter().enumerate() {
            if !fault.wait.is_zero() {
                self.tell.now(&format!("before {}", fault.spec.name()), Some(fault.wait));
                self.stop.wait(fault.wait, &failed).await;
            }
            if self.stop.asked() || failed.is_cancelled() {
                break;
            }
            if self.order.without_faults {
                let hold = fault.spec.hold().duration();
                self.tell.now(&format!("{} is left out, as asked", fault.spec.name()), Some(hold));
                self.stop.wait(hold, &failed).await;
                continue;
            }
            match self.turn(number, fault, &ranges, facts).await? {
                Ok(held) => all.add(held),
                Err(trouble) => {
                    self.tell.say(&trouble);
                    all.trouble.get_or_insert(trouble);
                }
            }
        }
        Ok(all)
    }

    /// One fault from plan to heal. The inner error: why it never acted.
    async fn turn(
        &self,
        number: usize,
        fault: &PlannedFault,
        ranges: &PodRanges,
        facts: &mut Facts,
    ) -> Result<Result<Held, String>, RunError> {
        let Order { inventory, .. } = *self.order;
        let refused = |reason: String| RunError::Refused { fault: fault.spec.name().to_owned(), reason };
        let led = self.led(fault, &facts.leases).await.map_err(refused)?;
        let fault = &match led {
            None => fault.clone(),
            Some(on) => fault.with_leaders(inventory, &|c| on.get(c).cloned()).map_err(refused)?,
        };
        facts.faults[number] = fault.facts(inventory);
        self.dir.write_facts(facts)?;
        let file_number = u16::try_from(number + 1).unwrap_or(u16::MAX);
        let id = FaultId::new(&self.tag, file_number).map_err(|e| refused(e.to_string()))?;
        let plan = match faults::plan(self.remote, inventory, fault, ranges, id).await {
            Ok(plan) => plan,
            Err(NotPlanned::Refused(why)) => return Err(refused(why)),
            Err(NotPlanned::Missing(why)) => {
                self.tell.say(&format!("{} is skipped: {why}", fault.spec.name()));
                facts.faults[number].skipped = Some(why);
                self.dir.write_facts(facts)?;
                return Ok(Ok(Held::default()));
            }
        };
        self.dir.write(&format!("plan-{file_number}.txt"), plan.to_string().as_bytes())?;
        let journal = Journal::open(&self.dir.file("journal.jsonl")).map_err(|e| refused(e.to_string()))?;
        let state = match fault.spec.until() {
            None => None,
            Some(until) => {
                let begun =
                    Awaited::begin(until, fault.until_nodes.clone(), &facts.leases, self.servers).await;
                Some((until.clone(), begun.map_err(refused)?))
            }
        };
        let end = End { longest: fault.spec.hold().duration(), state };
        Ok(faults::hold(self.remote, plan, end, journal, self.recorder, self.stop, self.tell).await)
    }

    /// On which host each leader is that the fault names; none if it names none.
    async fn led(
        &self,
        fault: &PlannedFault,
        leases: &[LeaseFacts],
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        if fault.leaders.is_empty() {
            return Ok(None);
        }
        let mut on = BTreeMap::new();
        for component in &fault.leaders {
            // A component without a lease is told by the selector itself, which then finds no leader.
            if let Some(facts) = leases.iter().find(|l| l.component == *component) {
                let lease = read_lease(self.servers, &facts.lease).await?;
                let name = holder_host(&lease.holder);
                let host = self.order.inventory.hosts().find(|h| h.name == name || h.node_name() == name);
                if let Some(host) = host {
                    self.tell.say(&format!("{component} is led from {}", host.name));
                    on.insert(component.clone(), host.name.clone());
                }
            }
        }
        Ok(Some(on))
    }
}
