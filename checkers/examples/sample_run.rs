//! Prints one file of the synthetic sample run: `run.json`, `history.jsonl` or `verdict.json`.
//!
//! The reports' tests read what this prints, so both crates speak of the same run.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{self, Write};
use std::process::ExitCode;

use rackrift_checkers::history::Header;

fn main() -> ExitCode {
    match std::env::args().nth(1).map(|file| print(&file)) {
        Some(Ok(true)) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            let _ = writeln!(io::stderr(), "cannot write: {error}");
            ExitCode::FAILURE
        }
        Some(Ok(false)) | None => {
            let _ = writeln!(io::stderr(), "usage: sample_run run.json|history.jsonl|verdict.json");
            ExitCode::from(64)
        }
    }
}

fn print(file: &str) -> io::Result<bool> {
    let run = support::Plan::rack_split().build();
    let mut out = io::BufWriter::new(io::stdout().lock());
    match file {
        "run.json" => serde_json::to_writer_pretty(&mut out, &run.facts)?,
        "history.jsonl" => {
            let header =
                Header { rackrift_history: 1, origin: run.facts.started.clone(), run: run.facts.run.clone() };
            serde_json::to_writer(&mut out, &header)?;
            for entry in &run.entries {
                out.write_all(b"\n")?;
                serde_json::to_writer(&mut out, entry)?;
            }
        }
        "verdict.json" => {
            let verdict = rackrift_checkers::judge::judge(&run.facts, &run.entries);
            serde_json::to_writer_pretty(&mut out, &verdict)?;
        }
        _ => return Ok(false),
    }
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(true)
}
