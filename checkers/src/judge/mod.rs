//! From the facts and the history of a run to its verdict.
//!
//! Each check is a file of its own: a function from the [`Index`] of a history to the results it stands for. A check
//! that lacks its evidence says `unknown` and what is missing; one whose subject did not happen says `invalid`.
//!
//! # Invariants
//! - The same facts and entries give the same verdict, whenever and wherever it is computed.
//! - The run's word is the gravest of its checks: no check hides another's `fail`.
//! - Every length in a sentence is measured between moments on the controller's clock; "before" is said only of
//!   what certainly was before.

mod answers;
mod belief;
mod converge;
mod coverage;
mod cut;
mod duplicates;
mod evidence;
mod finding;
mod index;
mod leases;
mod lives;
mod nodes;
mod reached;
mod record;
mod safety;
mod steal;
mod streams;
mod takeover;
mod undisturbed;
mod windows;
mod wording;

use crate::facts::Facts;
use crate::history::Entry;
use crate::verdict::{CheckResult, RunVerdict, Verdict};
use index::Index;

/// Judges one run.
#[must_use]
pub fn judge(facts: &Facts, entries: &[Entry]) -> RunVerdict {
    let index = Index::new(facts, entries);
    let mut checks: Vec<CheckResult> = Vec::new();
    checks.extend(takeover::check(&index));
    checks.extend(reached::check(&index));
    checks.extend(belief::check(&index));
    checks.extend(steal::check(&index));
    checks.extend(leases::check(facts, entries));
    checks.extend(streams::check(entries));
    checks.extend(nodes::check(&index));
    checks.extend(duplicates::check(&index));
    checks.extend(undisturbed::check(&index));
    checks.extend(converge::check(&index));
    checks.extend(coverage::check(&index));
    checks.extend(evidence::check(&index));
    checks.extend(safety::check(&index));
    let verdict = checks.iter().map(|check| check.verdict).fold(Verdict::Skipped, Verdict::merge);
    RunVerdict {
        rackrift_verdict: 1,
        run: facts.run.clone(),
        scenario: facts.scenario.clone(),
        verdict,
        answers: answers::answers(&checks),
        checks,
    }
}
