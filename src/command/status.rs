//! `rackrift status`.

use std::io::Write;

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::status;
use crate::run::lock::LabLock;

/// Says of each host which faults it has, and when it would undo them by itself.
///
/// # Errors
/// If the answer can't be printed.
pub async fn status(lab: &Lab) -> Result<Exit, Failure> {
    let status = status::status(&lab.remote, &lab.inventory).await;
    let mut out = std::io::stdout().lock();
    if let Some(holder) = LabLock::holder(&lab.inventory.lab) {
        writeln!(out, "a run is going on: process {holder}").map_err(Failure::harness)?;
    }
    writeln!(out, "{status}").map_err(Failure::harness)?;
    Ok(if status.clean() {
        Exit::Passed
    } else if status.whole() {
        Exit::Dirty
    } else {
        Exit::Harness
    })
}
