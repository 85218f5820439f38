//! `rackrift check` and `rackrift report`: a saved run judged, or reported, again.

use std::io::{self, Read, Write};
use std::path::Path;

use rackrift_checkers::history::foreign;
use rackrift_checkers::object::{self, Kind};
use rackrift_checkers::verdict::Verdict;

use super::Failure;
use super::saved::{judge_saved, read_saved, summary, write_reports};
use crate::cli;
use crate::exit::Exit;

/// The path that stands for standard input.
const STDIN: &str = "-";

/// Judges a saved run again, writes `verdict.json` and prints the verdict; or checks a history of any tool.
///
/// # Errors
/// If it cannot be read.
pub fn check(args: &cli::Check, out: &mut dyn Write) -> Result<Exit, Failure> {
    if args.path.is_file() || args.path == Path::new(STDIN) {
        return history(args, out);
    }
    let judged = judge_saved(&args.path)?;
    print(out, &summary(&judged))?;
    if let Some(note) = &judged.recorded.note {
        print(out, &format!("{note}\n"))?;
    }
    Ok(judged.exit())
}

/// Checks a history on its own: is it well formed, is it linearizable.
fn history(args: &cli::Check, out: &mut dyn Write) -> Result<Exit, Failure> {
    let path = args.path.display();
    let bytes = read(&args.path).map_err(|e| Failure::usage(format!("failed to read {path}: {e}")))?;
    let operations = foreign::read_operations(&bytes)
        .map_err(|e| Failure::usage(format!("{path}:{}:{}: {}", e.line, e.column, e.message)))?;
    let kind = args.kind.as_deref().map(str::parse::<Kind>).transpose().map_err(Failure::usage)?;
    let options = object::Options { kind, ..object::Options::default() };
    let results =
        object::check(&operations, &options).map_err(|e| Failure::usage(format!("{path}: {e} (--kind)")))?;
    let mut text = String::new();
    for result in &results {
        text += &format!("{:<8} {}\n", result.verdict.to_string(), result.sentence);
        for witness in &result.witnesses {
            for exhibit in &witness.exhibits {
                let line = exhibit.line.map_or_else(String::new, |l| format!("{path}:{l}: "));
                text += &format!("           {line}{}: {}\n", exhibit.who, exhibit.what);
            }
        }
    }
    for note in &operations.notes {
        text += &format!("note: {note}\n");
    }
    print(out, &text)?;
    let verdict = results.iter().map(|r| r.verdict).reduce(Verdict::merge).unwrap_or(Verdict::Skipped);
    Ok(Exit::from(verdict))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new(STDIN) {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, kind: Option<&str>) -> Result<(Exit, String), Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.edn");
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        let args = cli::Check { path: path.clone(), kind: kind.map(str::to_owned) };
        let exit = check(&args, &mut out)?;
        let shown = String::from_utf8(out).unwrap().replace(&path.display().to_string(), "history.edn");
        Ok((exit, shown))
    }

    const WRITE: &str =
        "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n";

    fn read(value: u32) -> String {
        format!(
            "{WRITE}{{:process 1, :type :invoke, :f :read, :value nil}}\n\
             {{:process 1, :type :ok, :f :read, :value {value}}}\n"
        )
    }

    #[test]
    fn a_foreign_history_is_passed_or_failed_with_its_lines() {
        let (exit, good) = checked(&read(1), None).unwrap();
        assert_eq!(exit, Exit::Passed);
        let (exit, bad) = checked(&read(2), None).unwrap();
        assert_eq!(exit, Exit::Failed);
        insta::assert_snapshot!(format!("{good}\n{bad}"));
    }

    #[test]
    fn what_cannot_be_read_is_wrong_input() {
        let broken = checked("{:process 0, :type :frob, :f :read}\n", None).unwrap_err();
        assert_eq!(broken.exit, Exit::Usage);
        assert!(broken.message.contains("history.edn:1:"), "{broken}");
        let kind = checked(&read(1), Some("stack")).unwrap_err();
        assert!(kind.message.contains("cas-register"), "{kind}");
    }
}
