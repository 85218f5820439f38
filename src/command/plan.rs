//! `rackrift plan`: every command and its undo, and touches nothing.

use std::io::Write;

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::id::FaultId;
use crate::run::assemble;
use crate::run::faults::{self, NotPlanned};
use crate::run::library;
use crate::run::ranges::PodRanges;

/// Prints what a scenario or suite would do on the lab's hosts as they are now. Hosts are only looked at.
///
/// # Errors
/// If the scenario does not fit the lab, or a fault would be refused.
pub async fn plan(what: &str, seed: u64, lab: &Lab) -> Result<Exit, Failure> {
    let chosen = library::choose(what).map_err(Failure::usage)?;
    let mut text = String::new();
    for (scenario, _) in &chosen.scenarios {
        let resolved = assemble::resolve(scenario, &lab.inventory, seed).map_err(Failure::usage)?;
        let ranges = PodRanges::read(&lab.inventory, &resolved.faults).await;
        let longest = scenario.longest().as_secs();
        text += &format!(
            "scenario {}: at most {} min {} s\nproves: {}\ncannot prove: {}\n",
            scenario.scenario,
            longest / 60,
            longest % 60,
            scenario.proves,
            scenario.cannot_prove
        );
        if let Some(leaders) = &scenario.arrange.leaders {
            let (who, on) = (leaders.components.join(", "), resolved.leaders_on.join(", "));
            text += &format!("before: the leases of {who} are brought to {on}\n");
        }
        for (number, fault) in (1..).zip(&resolved.faults) {
            let id = FaultId::new("plan", number).map_err(Failure::harness)?;
            let plan = match faults::plan(&lab.remote, &lab.inventory, fault, &ranges, id).await {
                Ok(plan) => plan,
                Err(NotPlanned::Refused(why)) => return Err(Failure::harness(why)),
                Err(NotPlanned::Missing(why)) => {
                    text += &format!("\n{} would be skipped: {why}\n", fault.spec.name());
                    continue;
                }
            };
            text += "\n";
            if !fault.wait.is_zero() {
                text += &format!("{} s after the heal before\n", fault.wait.as_secs_f64());
            }
            if !fault.leaders.is_empty() {
                let who = fault.leaders.join(", ");
                text += &format!("who leads {who} is asked when it begins; as an example:\n");
            }
            if let Some(until) = fault.spec.until() {
                text += &format!("until {until}, ");
            }
            let at_most = if fault.spec.until().is_some() { "at most " } else { "" };
            text += &format!("held for {at_most}{} s: {plan}", fault.spec.hold().duration().as_secs());
        }
        text += "\n";
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::harness)?;
    Ok(Exit::Passed)
}
