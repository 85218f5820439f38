//! From the command line to a verb.
//!
//! # Invariants
//! * The lab's network namespace is entered by the only thread there is, before a runtime starts others: every
//!   socket of the process is then inside.

use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::runtime::Runtime;

use super::{Failure, Lab, Voice};
use super::{check, demo, generate, heal, lab, list, plan, preflight, run, status};
use crate::cli::{Cli, OnLab, Verb};
use crate::exit::Exit;
use crate::host::enter;
use crate::inventory;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are no errors to clap's caller; a closed pipe is none to ours.
            let exit = if e.use_stderr() { Exit::Usage } else { Exit::Passed };
            let _ = e.print();
            return ExitCode::from(exit.code());
        }
    };
    let exit = verb(cli.verb).unwrap_or_else(|failure| {
        // If nobody can hear it, the exit code still tells.
        let _ = writeln!(io::stderr(), "rackrift: {failure}");
        failure.exit
    });
    ExitCode::from(exit.code())
}

fn verb(verb: Verb) -> Result<Exit, Failure> {
    let out = &mut io::stdout();
    match verb {
        Verb::Demo(args) => demo::demo(&args),
        Verb::Lab(verb) => lab::run(&verb, out),
        Verb::Preflight(on) => on_lab(&on, async |lab| preflight::preflight(&lab).await),
        Verb::Plan(args) => on_lab(&args.lab, async |lab| plan::plan(&args.what, args.seed, &lab).await),
        Verb::Run(args) => on_lab(&args.lab, async |lab| run::run(&args, &lab, Arc::new(Voice::new())).await),
        Verb::Heal(on) => on_lab(&on, async |lab| heal::heal(&lab).await),
        Verb::Status(on) => on_lab(&on, async |lab| status::status(&lab).await),
        Verb::Check(args) => check::check(&args, out),
        Verb::Report(args) => check::report(&args, out),
        Verb::List(args) => list::list(args.what, out).map(|()| Exit::Passed).map_err(Failure::harness),
        Verb::Generate(args) => generate::generate(&args, out).map(|()| Exit::Passed),
    }
}

/// Enters the lab's namespace and does there what is to be done.
pub(super) fn on_lab<F>(on: &OnLab, what: impl FnOnce(Lab) -> F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let file = inventory_file(on)?;
    inside(&file, what)
}

/// The same for an inventory's file.
pub(super) fn inside<F>(file: &Path, what: impl FnOnce(Lab) -> F) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Exit, Failure>>,
{
    let inventory = inventory::load(file).map_err(Failure::usage)?;
    let outside = inventory.namespace.as_deref().map(enter::enter).transpose().map_err(Failure::harness)?;
    let done = runtime()?.block_on(async { what(Lab::open(file)?).await });
    // A demo goes on outside, to take its lab down.
    outside.map_or(Ok(()), enter::Outside::back).map_err(Failure::harness)?;
    done
}

/// A runtime of its own for each stage: its threads are in the namespace in which they were started.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|e| Failure::harness(format!("failed to start threads: {e}")))
}

fn inventory_file(on: &OnLab) -> Result<PathBuf, Failure> {
    if let Some(file) = &on.inventory {
        return Ok(file.clone());
    }
    let file = lab::inventory()?;
    if file.exists() {
        return Ok(file);
    }
    Err(Failure::usage(
        "no inventory was given and the local lab is not up: pass `-i FILE`, or run `rackrift lab up`",
    ))
}
