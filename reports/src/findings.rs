//! The witnesses of all checks in one numbered row, gravest first.
//!
//! # Invariants
//! - Every output numbers them alike, so "finding 2" is the same thing in the page, the markdown and the terminal.

use rackrift_checkers::history::At;
use rackrift_checkers::verdict::{CheckResult, Class, RunVerdict, Verdict, Witness};

use crate::words::{self, Word};

/// One witness of one check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finding<'a> {
    /// From 1.
    pub(crate) number: usize,
    /// Place of the check that it belongs to in the verdict.
    pub(crate) place: usize,
    /// That check.
    pub(crate) check: &'a CheckResult,
    /// What was found.
    pub(crate) witness: &'a Witness,
    /// The check's word.
    pub(crate) word: Word,
}

impl Finding<'_> {
    /// Where to jump in the timeline: the witness's own moment, else its first exhibit's.
    pub(crate) fn at(&self) -> Option<At> {
        self.witness.at.or_else(|| self.witness.exhibits.iter().map(|e| e.from).min_by_key(|at| at.lo))
    }
}

/// Most witnesses shown of one check; a broken check can have as many as it has operations.
pub(crate) const MOST: usize = 20;
/// Most findings in all: a report with more of them is not read.
const MOST_IN_ALL: usize = 100;

/// Findings in order, and how many more there are in `verdict.json`.
pub(crate) fn of(verdict: &RunVerdict) -> (Vec<Finding<'_>>, usize) {
    let mut checks: Vec<(usize, &CheckResult)> = verdict.checks.iter().enumerate().collect();
    checks.sort_by_key(|(_, check)| order(check));
    let mut findings = Vec::new();
    let mut more = 0;
    for (place, check) in checks {
        more += check.witnesses.len().saturating_sub(MOST);
        for witness in check.witnesses.iter().take(MOST) {
            let number = findings.len() + 1;
            findings.push(Finding { number, place, check, witness, word: words::of_check(check) });
        }
    }
    more += findings.len().saturating_sub(MOST_IN_ALL);
    findings.truncate(MOST_IN_ALL);
    (findings, more)
}

/// Gravest first; what is measured before what merely passed.
pub(crate) fn order(check: &CheckResult) -> u8 {
    match (check.verdict, check.class) {
        (Verdict::Fail, _) => 0,
        (Verdict::Error, _) => 1,
        (Verdict::Invalid, _) => 2,
        (Verdict::Unknown, _) => 3,
        (Verdict::Pass, Class::NotPromised) => 4,
        (Verdict::Pass, _) => 5,
        (Verdict::Skipped, _) => 6,
    }
}

/// The checks that are not well, with their places in the verdict: what a reader must look at first, gravest first.
pub(crate) fn troubles(verdict: &RunVerdict) -> Vec<(usize, &CheckResult)> {
    let mut checks: Vec<(usize, &CheckResult)> =
        verdict.checks.iter().enumerate().filter(|(_, c)| order(c) < 4).collect();
    checks.sort_by_key(|(_, check)| order(check));
    checks
}

/// How many checks have each word, in order of gravity: `12 pass, 2 measured`.
pub(crate) fn tally(verdict: &RunVerdict) -> String {
    let mut checks: Vec<&CheckResult> = verdict.checks.iter().collect();
    checks.sort_by_key(|check| order(check));
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for check in checks {
        let word = words::of_check(check).word;
        match counts.iter_mut().find(|(w, _)| *w == word) {
            Some((_, n)) => *n += 1,
            None => counts.push((word, 1)),
        }
    }
    let parts: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    if parts.is_empty() { "no checks".to_owned() } else { parts.join(", ") }
}
