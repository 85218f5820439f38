//! `rackrift heal`.

use std::io::Write;

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::heal;
use crate::run::lock::LabLock;

/// Finds and removes every fault that is left on the lab's hosts, and says of each host whether it is clean.
///
/// # Errors
/// If the answer can't be printed.
pub async fn heal(lab: &Lab) -> Result<Exit, Failure> {
    // An engineer who heals wants it healed: a run that is going on loses its fault and will say so.
    if let Some(holder) = LabLock::holder(&lab.inventory.lab) {
        writeln!(std::io::stderr(), "note: a run is going on (process {holder}); its fault is taken away")
            .map_err(Failure::harness)?;
    }
    let report = heal::heal(&lab.remote, &lab.inventory).await;
    writeln!(std::io::stdout(), "{report}").map_err(Failure::harness)?;
    Ok(if report.clean() { Exit::Passed } else { Exit::Dirty })
}
