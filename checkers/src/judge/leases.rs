//! Are the clients' lease histories linearizable by resourceVersion.

use super::finding::{Finding, MOST_WITNESSES};
use super::wording::{count, counted, short_list};
use crate::engine::lease::{Answer, Counts, LeaseCheck, check_leases};
use crate::facts::Facts;
use crate::history::Entry;
use crate::verdict::{CheckResult, Class, Verdict};

/// One check over all leases, if the scenario asks for it.
pub(super) fn check(facts: &Facts, entries: &[Entry]) -> Vec<CheckResult> {
    if !facts.expect.lease_history {
        return Vec::new();
    }
    vec![linearizable(&check_leases(entries))]
}

fn grouped(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX))
}

fn linearizable(leases: &[LeaseCheck]) -> CheckResult {
    let sum = leases.iter().fold(Counts::default(), |sum, lease| sum.plus(lease.counts));
    let operations = usize::try_from(sum.operations).unwrap_or(usize::MAX);
    let all = format!(
        "{} on {}",
        counted(operations, "operation", "operations"),
        counted(leases.len(), "lease", "leases")
    );
    let mut finding = Finding::new("lease-linearizable", "Lease history is linearizable", Class::Promised)
        .bound("one order explains every answer")
        .checked(all.clone())
        .evidence("every client's invocations and answers, with resourceVersions");
    let mut broken = Vec::new();
    let mut undecided = Vec::new();
    for lease in leases {
        match &lease.answer {
            Answer::Linearizable => {}
            Answer::Violation(witness) => broken.push(witness.as_ref().clone()),
            Answer::Undecided(why) => undecided.push(why.clone()),
        }
    }
    if let Some(first) = broken.first() {
        let sentence = first.sentence.clone();
        finding = finding.measured(format!("{} not linearizable", counted(broken.len(), "lease", "leases")));
        for witness in broken.into_iter().take(MOST_WITNESSES) {
            finding = finding.witness(witness);
        }
        return finding.say(Verdict::Fail, sentence);
    }
    if operations == 0 {
        return finding.measured("nothing").invalid("No client did anything, so there was nothing to check.");
    }
    if !undecided.is_empty() {
        return finding.measured("undecided").unknown(short_list(&undecided, 2));
    }
    finding.measured(format!("linearizable, {}", counted(operations, "operation", "operations"))).pass(format!(
        "Linearizable: {all} have an order that explains every answer ({} reads answered, {} writes, {} refusals; {}).",
        grouped(sum.reads),
        grouped(sum.writes),
        grouped(sum.refused),
        match sum.unknown {
            0 => "every outcome is known".to_owned(),
            unknown => format!("the outcome of {} is not known", grouped(unknown)),
        }
    ))
}
