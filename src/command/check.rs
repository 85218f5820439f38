//! `rackrift check` and `rackrift report`: a saved run judged, or reported, again.

use std::io::{self, Write};

use super::Failure;
use super::saved::{judge_saved, read_saved, summary, write_reports};
use crate::cli;
use crate::exit::Exit;

/// Judges a saved run again, writes `verdict.json` and prints the verdict.
///
/// # Errors
/// If it cannot be read.
pub fn check(args: &cli::Check, out: &mut dyn Write) -> Result<Exit, Failure> {
    let judged = judge_saved(&args.path)?;
    print(out, &summary(&judged))?;
    if let Some(note) = &judged.recorded.note {
        print(out, &format!("{note}\n"))?;
    }
    Ok(judged.exit())
}

/// Writes the reports of a saved run again, and says where they are.
///
/// # Errors
/// If it cannot be read, was never judged, or cannot be written.
pub fn report(args: &cli::Report, out: &mut dyn Write) -> Result<Exit, Failure> {
    let judged = read_saved(&args.dir)?;
    write_reports(&judged)?;
    print(out, &format!("{}\n", judged.dir.file("report.html").display()))?;
    Ok(Exit::Passed)
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    let written: io::Result<()> = out.write_all(text.as_bytes());
    written.map_err(|e| Failure::harness(format!("failed to write to standard output: {e}")))
}
