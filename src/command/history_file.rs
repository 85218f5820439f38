//! `rackrift check FILE`: a history on its own, ours or another tool's.

use std::io::Write;
use std::path::Path;

use rackrift_checkers::history::foreign;
use rackrift_checkers::object;
use rackrift_checkers::verdict::{CheckResult, Exhibit, Verdict};

use super::Failure;
use crate::exit::Exit;

/// Things shown of a witness at most; the sentence names the two that matter.
const EXHIBITS: usize = 8;

/// Reads a history in any known format, judges it and prints what was found.
///
/// # Errors
/// If it cannot be read, or no kind of object has the functions that it calls.
pub fn check(path: &Path, out: &mut dyn Write) -> Result<Exit, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::usage(format!("failed to read {}: {e}", path.display())))?;
    let text = said(&bytes).map_err(|why| Failure::usage(format!("{}:{why}", path.display())))?;
    out.write_all(text.0.as_bytes())
        .map_err(|e| Failure::harness(format!("failed to write to standard output: {e}")))?;
    Ok(Exit::from(text.1))
}

/// What is said of a history, and the gravest word.
fn said(bytes: &[u8]) -> Result<(String, Verdict), String> {
    let operations = foreign::read_operations(bytes).map_err(|e| e.to_string())?;
    let checks = object::check(&operations, &object::Options::default()).map_err(|e| format!(" {e}"))?;
    let mut text = String::new();
    for check in &checks {
        push(&mut text, check);
    }
    for note in &operations.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    let verdict = checks.iter().map(|c| c.verdict).fold(Verdict::Skipped, Verdict::merge);
    Ok((text, verdict))
}

fn push(text: &mut String, check: &CheckResult) {
    let word = match check.verdict {
        Verdict::Pass => "pass",
        Verdict::Skipped => "skipped",
        Verdict::Unknown => "unknown",
        Verdict::Invalid => "invalid",
        Verdict::Error => "error",
        Verdict::Fail => "FAIL",
    };
    text.push_str(&format!("{word:8} {} ({}; {})\n", check.title, check.checked, check.evidence));
    text.push_str(&format!("         {}\n", check.sentence));
    for exhibit in check.witnesses.iter().take(1).flat_map(|w| w.exhibits.iter().take(EXHIBITS)) {
        text.push_str(&format!("         {}\n", shown(exhibit)));
    }
    if check.witnesses.len() > 1 {
        text.push_str(&format!("         and {} more\n", check.witnesses.len() - 1));
    }
}

fn shown(exhibit: &Exhibit) -> String {
    let line = exhibit.line.map_or_else(String::new, |line| format!("line {line}: "));
    format!("{line}{}: {}", exhibit.who, exhibit.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_history_is_judged_in_words() {
        let knossos = "[{:process 1, :type :invoke, :f :write, :value 1}\n\
                        {:process 1, :type :ok, :f :write, :value 1}\n\
                        {:process 2, :type :invoke, :f :write, :value 2}\n\
                        {:process 2, :type :info, :f :write, :value 2}\n\
                        {:process :nemesis, :type :info, :f :kill}\n\
                        {:process 1, :type :invoke, :f :read}\n\
                        {:process 1, :type :ok, :f :read, :value 3}]";
        let (text, verdict) = said(knossos.as_bytes()).unwrap();
        assert_eq!(verdict, Verdict::Fail);
        insta::assert_snapshot!(text, @"
        pass     The history is well formed (3 operations; –)
                 Every completion has its invocation, and time never goes back.
        FAIL     Linearizable (3 operations on 1 key; as registers (search))
                 Not linearizable: process 1 did read 3 on the object (line 7), which fits nowhere: after process 1 did write 1 (line 2), cannot read 3, the register holds 1. The one other operation open then that could have changed it does not help.
                 line 7: process 1: read 3
                 line 2: process 1: write 1
                 line 4: process 2: write 2
        note: 1 events are not of clients and were left out
        ");
        let (text, verdict) = said(b"{:process 1, :type :ok, :f :read, :value 3}").unwrap();
        assert_eq!(verdict, Verdict::Fail, "{text}");
        assert!(said(b"{:process 1 :type}").unwrap_err().starts_with("1:"));
    }
}
