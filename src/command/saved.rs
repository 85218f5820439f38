//! `check` and `report` on a saved run, and what `run` does at its end: judge, then write the reports.

use std::io::IsTerminal;
use std::path::Path;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::judge::judge;
use rackrift_checkers::verdict::RunVerdict;

use super::Failure;
use crate::exit::Exit;
use crate::store::{Recorded, RunDir};

/// What a judged run is made of.
#[derive(Debug)]
pub struct Judged {
    /// Its folder.
    pub dir: RunDir,
    /// Its facts.
    pub facts: Facts,
    /// Its history.
    pub recorded: Recorded,
    /// Its verdict.
    pub verdict: RunVerdict,
}

impl Judged {
    /// The exit code: the verdict's, or 5 if a host is not verified clean.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let exit = Exit::from(self.verdict.verdict);
        if self.facts.hosts.iter().any(|h| h.clean.is_some()) { exit.merge(Exit::Dirty) } else { exit }
    }
}

/// Judges a saved run and writes `verdict.json`.
///
/// # Errors
/// If the run cannot be read (wrong input) or the verdict not written.
pub fn judge_saved(path: &Path) -> Result<Judged, Failure> {
    let dir = RunDir::open(path).map_err(Failure::usage)?;
    let facts = dir.facts().map_err(Failure::usage)?;
    let recorded = dir.history().map_err(Failure::usage)?;
    let verdict = judge(&facts, &recorded.entries);
    dir.write_verdict(&verdict).map_err(Failure::harness)?;
    Ok(Judged { dir, facts, recorded, verdict })
}

/// Reads a run that was judged before, without judging it again.
///
/// # Errors
/// If it cannot be read, or was never judged.
pub fn read_saved(path: &Path) -> Result<Judged, Failure> {
    let dir = RunDir::open(path).map_err(Failure::usage)?;
    let facts = dir.facts().map_err(Failure::usage)?;
    let recorded = dir.history().map_err(Failure::usage)?;
    let verdict = dir.verdict().map_err(Failure::usage)?;
    Ok(Judged { dir, facts, recorded, verdict })
}

/// Writes `report.html`, `report.md` and `junit.xml`.
///
/// # Errors
/// If one cannot be rendered or written; the verdict is on disk already.
pub fn write_reports(run: &Judged) -> Result<(), Failure> {
    let Judged { dir, facts, recorded, verdict } = run;
    let html = rackrift_reports::html(facts, verdict, &recorded.entries);
    let markdown = rackrift_reports::markdown(facts, verdict, &recorded.entries);
    let junit = rackrift_reports::junit(facts, verdict);
    for (name, text) in [("report.html", html), ("report.md", markdown), ("junit.xml", junit)] {
        dir.write(name, text.as_bytes()).map_err(Failure::harness)?;
    }
    Ok(())
}

/// What is printed of a judged run: the answers, then every check, as wide as the terminal.
#[must_use]
pub fn summary(run: &Judged) -> String {
    let terminal = std::io::stdout().is_terminal();
    let width = terminal_width().unwrap_or(100).clamp(60, 160);
    let colour = terminal && std::env::var_os("NO_COLOR").is_none();
    rackrift_reports::terminal(&run.facts, &run.verdict, &run.recorded.entries, width, colour)
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|w| *w > 0)
}
