//! Renders a saved run to standard output: `render html|markdown|junit|terminal|suite DIR [WIDTH]`.
//!
//! For looking at reports while working on them, and for the picture of the README.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::RunVerdict;
use rackrift_reports::{SuiteEntry, html, junit, markdown, suite_html, terminal};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match render(&args) {
        Ok(text) => match io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "{error}; usage: render html|markdown|junit|terminal|suite DIR [WIDTH]"
            );
            ExitCode::FAILURE
        }
    }
}

fn render(args: &[String]) -> Result<String, Failure> {
    let [what, dir, rest @ ..] = args else { return Err("what and where?".into()) };
    let dir = Path::new(dir);
    let facts: Facts = serde_json::from_slice(&std::fs::read(dir.join("run.json"))?)?;
    let verdict: RunVerdict = serde_json::from_slice(&std::fs::read(dir.join("verdict.json"))?)?;
    let file = io::BufReader::new(std::fs::File::open(dir.join("history.jsonl"))?);
    let mut entries: Vec<Entry> = Vec::new();
    for line in file.lines().skip(1) {
        entries.push(serde_json::from_str(&line?)?);
    }
    let width = rest.first().map_or(Ok(100), |w| w.parse())?;
    Ok(match what.as_str() {
        "html" => html(&facts, &verdict, &entries),
        "markdown" => markdown(&facts, &verdict, &entries),
        "junit" => junit(&facts, &verdict),
        "terminal" => terminal(&facts, &verdict, &entries, width, false),
        "suite" => suite_html(&[SuiteEntry { facts: &facts, verdict: &verdict, folder: &facts.run }]),
        other => return Err(format!("no such output: {other}").into()),
    })
}
