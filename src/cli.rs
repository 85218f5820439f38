//! The command line: clap's definitions and nothing else. Help, completions and the man page all come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Cut racks apart, and say with evidence who led and which pods ran twice.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "Exit codes:
  0   passed
  1   a check failed
  2   undecided, or the run proves nothing (the fault did not bite)
  3   the harness failed (a host unreachable, a fault not applied)
  4   nothing ran
  5   hosts are not verified clean (wins over all others)
  64  wrong usage or input";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The whole thing on this machine: a lab of two racks, a short suite, a report.
    Demo(Demo),
    /// The local two-rack lab.
    #[command(subcommand)]
    Lab(crate::command::lab::LabVerb),
    /// Look whether each host and API server has what a suite needs.
    Preflight(OnLab),
    /// Print every command, its undo and the expected effect; touch nothing.
    Plan(Plan),
    /// Run a scenario or a suite.
    Run(Run),
    /// Find and remove every fault that is left on the hosts, with or without a run.
    Heal(OnLab),
    /// Say which faults are in force, and when the hosts would heal by themselves.
    Status(OnLab),
    /// Judge a saved run or a history again.
    Check(Check),
    /// Write the reports of a saved run again.
    Report(Report),
    /// What there is: scenarios, suites, faults, checks.
    List(List),
    /// Print shell completions, the man page, or a history with a planted anomaly.
    #[command(hide = true, args_conflicts_with_subcommands = true)]
    Generate(Generate),
}

/// Which lab.
#[derive(Debug, Args)]
pub struct OnLab {
    /// The inventory; by default that of the local lab.
    #[arg(short, long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
}

/// `rackrift plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Which lab.
    #[command(flatten)]
    pub lab: OnLab,
    /// A scenario's or suite's name or file.
    #[arg(default_value = "rack-split")]
    pub what: String,
    /// Seed of what is drawn by chance: the same seed is planned and run alike.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// `rackrift run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Which lab.
    #[command(flatten)]
    pub lab: OnLab,
    /// A scenario's or suite's name or file.
    #[arg(default_value = "demo")]
    pub what: String,
    /// Where to keep runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Seed of everything random; a fresh one by default.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Do all but the faults: shows that a run without its fault is not passed.
    #[arg(long)]
    pub without_faults: bool,
    /// Only the scenario of this name.
    #[arg(long, value_name = "SCENARIO")]
    pub only: Option<String>,
}

/// `rackrift demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Install missing packages without asking.
    #[arg(short, long)]
    pub yes: bool,
    /// Where to keep runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// A folder with the Kubernetes and etcd binaries, instead of building them.
    #[arg(long, value_name = "DIR")]
    pub components: Option<PathBuf>,
    /// Leave the lab running afterwards.
    #[arg(long)]
    pub keep: bool,
}

/// `rackrift check`.
#[derive(Debug, Args)]
pub struct Check {
    /// A run's folder, or a history: JSON Lines, EDN (Jepsen, Knossos, Porcupine), a Jepsen log; `-` reads one from
    /// standard input.
    pub path: PathBuf,
    /// What kind of object a history is of; by default told by its functions.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
}

/// `rackrift report`.
#[derive(Debug, Args)]
pub struct Report {
    /// A run's folder.
    pub dir: PathBuf,
}

/// `rackrift list`.
#[derive(Debug, Args)]
pub struct List {
    /// What to list.
    #[arg(value_enum)]
    pub what: Listed,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Listed {
    /// Scenarios and suites, embedded in the program.
    Scenarios,
    /// Kinds and shapes of faults.
    Faults,
    /// Checks, and what each may promise.
    Checks,
}

/// `rackrift generate`.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct Generate {
    /// `man`, a shell's name, or `files` for the generated files of the source tree.
    #[arg(required = true)]
    pub what: Option<String>,
    /// What takes arguments of its own.
    #[command(subcommand)]
    pub made: Option<Generated>,
}

/// What `rackrift generate` makes from arguments of its own.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// A history with an anomaly planted, as JSON Lines that `rackrift check` judges.
    History(GenerateHistory),
}

/// `rackrift generate history`.
#[derive(Debug, Args)]
pub struct GenerateHistory {
    /// The anomaly's name.
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// Say which anomalies there are, what each is and who finds it; make nothing.
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Seed of everything random: the same one gives the same history.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many operations, over all keys.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub operations: u32,
    /// How many clients work at once on each key.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub clients: u32,
    /// How many keys; the anomaly is in the first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keys: u32,
    /// Where the anomaly is, from 0 (the beginning) to 1 (the end).
    #[arg(long, value_name = "FRACTION", default_value_t = 0.5, value_parser = fraction)]
    pub at: f64,
    /// The same, changed as little as makes it legal.
    #[arg(long, conflicts_with = "valid")]
    pub near_miss: bool,
    /// The history before anything was planted.
    #[arg(long)]
    pub valid: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(at) if (0.0..=1.0).contains(&at) => Ok(at),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}
