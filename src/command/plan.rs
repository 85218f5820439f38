//! `rackrift plan`: every command and its undo, and touches nothing.

use std::io::Write;

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::id::FaultId;
use crate::run::assemble;
use crate::run::faults;
use crate::run::library;
use crate::run::scenario::FaultSpec;

/// Prints what a scenario or suite would do on the lab's hosts as they are now. Hosts are only looked at.
///
/// # Errors
/// If the scenario does not fit the lab, or a fault would be refused.
pub async fn plan(what: &str, lab: &Lab) -> Result<Exit, Failure> {
    let chosen = library::choose(what).map_err(Failure::usage)?;
    let mut text = String::new();
    for (scenario, _) in &chosen.scenarios {
        let resolved = assemble::resolve(scenario, &lab.inventory).map_err(Failure::usage)?;
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
        for (number, (cut, FaultSpec::Cut(spec))) in (1..).zip(resolved.cuts.iter().zip(&scenario.faults)) {
            let id = FaultId::new("plan", number).map_err(Failure::harness)?;
            let plan = faults::plan(&lab.remote, &lab.inventory, cut, id).await.map_err(Failure::harness)?;
            text += &format!("\nheld for {} s: {plan}", spec.hold.duration().as_secs());
        }
        text += "\n";
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::harness)?;
    Ok(Exit::Passed)
}
