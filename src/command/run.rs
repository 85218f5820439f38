//! `rackrift run`: each scenario conducted, judged and reported before the next begins.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rackrift_reports::SuiteEntry;

use super::saved::{Judged, judge_saved, write_reports};
use super::{Failure, Lab, Voice, signals};
use crate::cli;
use crate::exit::Exit;
use crate::run::conductor::{Order, RunError, conduct};
use crate::run::library::{self, Chosen};
use crate::run::stop::Stop;
use crate::run::tell::Tell;

/// Runs a scenario or a suite.
///
/// # Errors
/// If nothing could be run at all.
pub async fn run(args: &cli::Run, lab: &Lab, voice: Arc<Voice>) -> Result<Exit, Failure> {
    let mut chosen = library::choose(&args.what).map_err(Failure::usage)?;
    if let Some(only) = &args.only {
        chosen.scenarios.retain(|(s, _)| s.scenario == *only);
        if chosen.scenarios.is_empty() {
            return Err(Failure::usage(format!("`{}` has no scenario `{only}`", chosen.name)));
        }
    }
    let stop = Stop::default();
    signals::listen(&stop, Arc::clone(&voice)).map_err(Failure::harness)?;
    let seed = args.seed.unwrap_or_else(rand::random);
    let length: u64 = chosen.scenarios.iter().map(|(s, _)| s.longest().as_secs()).sum();
    voice.say(&format!(
        "{}: {} scenarios, at most {} min {} s, seed {seed}",
        chosen.name,
        chosen.scenarios.len(),
        length / 60,
        length % 60
    ));
    let ended = all(args, lab, &chosen, seed, &stop, &voice).await;
    voice.done();
    let mut exit = Exit::Nothing;
    for one in &ended {
        exit = exit.merge(one.exit());
    }
    if let Some(Ended::Judged(last)) = ended.last() {
        print(&super::saved::summary(last)).map_err(Failure::harness)?;
    }
    let index = suite_index(args, &chosen, &ended)?;
    print(&ending(&ended, index.as_deref())).map_err(Failure::harness)?;
    Ok(exit)
}

/// How one scenario ended.
#[derive(Debug)]
pub enum Ended {
    /// It was judged.
    Judged(Box<Judged>),
    /// It could not be run; nothing of it is in force.
    Not {
        /// The scenario.
        scenario: String,
        /// Why.
        why: Failure,
    },
}

impl Ended {
    fn exit(&self) -> Exit {
        match self {
            Self::Judged(j) => j.exit(),
            Self::Not { why, .. } => why.exit,
        }
    }
}

async fn all(
    args: &cli::Run,
    lab: &Lab,
    chosen: &Chosen,
    seed: u64,
    stop: &Stop,
    voice: &Arc<Voice>,
) -> Vec<Ended> {
    let mut ended = Vec::new();
    for (number, (scenario, text)) in (1..).zip(&chosen.scenarios) {
        if stop.asked() {
            break;
        }
        voice.say(&format!("scenario {number} of {}: {}", chosen.scenarios.len(), scenario.scenario));
        let order = Order {
            scenario,
            scenario_text: text,
            inventory: &lab.inventory,
            inventory_file: &lab.file,
            runs: &args.runs,
            seed,
            without_faults: args.without_faults,
        };
        let tell: &dyn Tell = voice.as_ref();
        let done = match conduct(&order, &lab.remote, tell, stop).await {
            Ok(dir) => finish(dir.path(), voice),
            Err(e) => Err(failure(e)),
        };
        match done {
            Ok(judged) => {
                voice.say(&format!("{}: {}", scenario.scenario, judged.verdict.verdict));
                ended.push(Ended::Judged(Box::new(judged)));
            }
            Err(why) => {
                voice.say(&format!("{}: {why}", scenario.scenario));
                ended.push(Ended::Not { scenario: scenario.scenario.clone(), why });
            }
        }
    }
    ended
}

fn finish(dir: &Path, voice: &Voice) -> Result<Judged, Failure> {
    voice.now("judging", None);
    let judged = judge_saved(dir)?;
    write_reports(&judged)?;
    Ok(judged)
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Misfit(e) => Failure::usage(e),
        other => Failure::harness(other),
    }
}

/// Writes the suite's index, if it is a suite of several runs.
fn suite_index(args: &cli::Run, chosen: &Chosen, ended: &[Ended]) -> Result<Option<PathBuf>, Failure> {
    if chosen.scenarios.len() < 2 {
        return Ok(None);
    }
    let judged = || {
        ended.iter().filter_map(|one| match one {
            Ended::Judged(judged) => Some(judged),
            Ended::Not { .. } => None,
        })
    };
    let folders: Vec<String> = judged().map(|j| j.dir.id()).collect();
    let entries: Vec<SuiteEntry<'_>> = judged()
        .zip(&folders)
        .map(|(j, folder)| SuiteEntry { facts: &j.facts, verdict: &j.verdict, folder })
        .collect();
    let path = args.runs.join(format!("{}.html", chosen.name));
    std::fs::write(&path, rackrift_reports::suite_html(&entries))
        .map_err(|e| Failure::harness(format!("failed to write {}: {e}", path.display())))?;
    Ok(Some(path))
}

/// The last lines: one for each scenario, and where the reports are.
fn ending(ended: &[Ended], index: Option<&Path>) -> String {
    let mut text = String::new();
    for one in ended {
        text += &match one {
            Ended::Judged(j) => format!(
                "{:<8} {:<14} {}\n",
                j.verdict.verdict.to_string(),
                j.facts.scenario,
                j.dir.file("report.html").display()
            ),
            Ended::Not { scenario, why } => format!("{:<8} {scenario:<14} {why}\n", "not run"),
        };
    }
    if let Some(index) = index {
        text += &format!("suite             {}\n", index.display());
    }
    text
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
