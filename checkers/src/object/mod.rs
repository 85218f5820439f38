//! Is a history of objects linearizable, whoever wrote it? From operations in any format to a verdict in plain words.
//!
//! Each key is judged by the best engine there is for it: the exact rule where versions give the order, the sweep for
//! a mutex, the search for the rest. What the history itself lacks is said in a check of its own.
//!
//! # Invariants
//! * A history that is not well formed is never passed: what it proves is not what it seems to.
//! * A search that ran out of its budget is `unknown`, with how far it came.

mod kind;
mod searched;
mod words;

use std::collections::BTreeMap;

use crate::engine::lease::{Answer, check_leases};
use crate::engine::search::Limits;
use crate::history::calls::{Paired, pair};
use crate::history::foreign::{Format, Operations};
use crate::history::{At, Entry, Value};
use crate::model::reading::Refused;
use crate::verdict::{CheckResult, Class, Exhibit, Verdict, Witness};
pub use kind::{Kind, NoSuchKind};

/// Flaws named at most; a broken recorder makes one in every line.
const FLAWS_SHOWN: usize = 8;

/// How a history is to be read.
#[derive(Clone, Default)]
pub struct Options<'a> {
    /// What kind of object it is; absent: by the functions called.
    pub kind: Option<Kind>,
    /// A register's value before the first operation; absent: nil or, if that explains no more, 0, since tools differ.
    pub start: Option<Value>,
    /// What a refused compare-and-set or lock says; absent: as the format's authors have it.
    pub refused: Option<Refused>,
    /// For each key that needs a search.
    pub limits: Limits<'a>,
}

/// What became of one key.
enum Found {
    Linearizable,
    Violation(Box<Witness>),
    Undecided(String),
}

/// Checks a history: whether it is well formed, and whether it is linearizable.
///
/// # Errors
/// If no kind of object is given and none knows the functions called.
pub fn check(operations: &Operations, options: &Options<'_>) -> Result<Vec<CheckResult>, NoSuchKind> {
    let (calls, flaws) = pair(&operations.ops);
    let kind = match options.kind {
        Some(kind) => kind,
        None => Kind::of(&calls)?,
    };
    let line = |at: usize| operations.lines.get(at).copied().map(u64::from);
    let flaws: Vec<Witness> = flaws
        .iter()
        .take(FLAWS_SHOWN)
        .map(|flaw| {
            let op = &operations.ops[flaw.at()];
            let from = At::exactly(op.time);
            let who = format!("process {}", op.process);
            let exhibits =
                vec![Exhibit { who, what: flaw.to_string(), from, to: None, line: line(flaw.at()) }];
            let place = line(flaw.at()).map_or_else(String::new, |line| format!("Line {line}: "));
            let sentence = format!("{place}{flaw}.");
            Witness {
                rule: "not-well-formed".into(),
                sentence,
                exhibits,
                margin: None,
                excused_by: None,
                at: None,
            }
        })
        .collect();
    let keys = by_key(&calls);
    let found: BTreeMap<String, Found> = if kind == Kind::Versioned {
        versioned(operations)
    } else {
        let refused = options.refused.unwrap_or(match operations.format {
            Format::JepsenLog => Refused::Tells,
            Format::JsonLines | Format::Edn => Refused::TellsNothing,
        });
        let reading = searched::Reading {
            kind,
            start: options.start.as_ref(),
            refused,
            nil_is_any: operations.format == Format::Edn,
            limits: options.limits,
            lines: &operations.lines,
        };
        keys.iter().map(|(key, calls)| (key.clone(), reading.check(key, calls))).collect()
    };
    Ok(vec![well_formed(flaws, calls.len()), linearizable(kind, found, calls.len())])
}

fn by_key<'a>(calls: &[Paired<'a>]) -> BTreeMap<String, Vec<Paired<'a>>> {
    let mut keys: BTreeMap<String, Vec<Paired<'a>>> = BTreeMap::new();
    for call in calls {
        keys.entry(call.first.key.clone().unwrap_or_default()).or_default().push(*call);
    }
    keys
}

/// By the exact rule, which wants entries.
fn versioned(operations: &Operations) -> BTreeMap<String, Found> {
    let entries: Vec<Entry> = operations.ops.iter().cloned().map(Entry::Op).collect();
    let of = |answer| match answer {
        Answer::Linearizable => Found::Linearizable,
        Answer::Violation(mut witness) => {
            for exhibit in &mut witness.exhibits {
                let at = exhibit.line.and_then(|line| usize::try_from(line).ok()).map(|line| line - 2);
                exhibit.line = at.and_then(|at| operations.lines.get(at).copied()).map(u64::from);
            }
            Found::Violation(witness)
        }
        Answer::Undecided(why) => Found::Undecided(why),
    };
    check_leases(&entries).into_iter().map(|check| (check.key, of(check.answer))).collect()
}

fn result(id: &str, title: &str, class: Class, checked: String) -> CheckResult {
    CheckResult {
        id: id.to_owned(),
        title: title.to_owned(),
        class,
        verdict: Verdict::Pass,
        bound: "–".to_owned(),
        measured: "–".to_owned(),
        sentence: String::new(),
        checked,
        evidence: "–".to_owned(),
        witnesses: Vec::new(),
        value: None,
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn well_formed(flaws: Vec<Witness>, operations: usize) -> CheckResult {
    let checked = counted(operations, "operation", "operations");
    let mut check = result("well-formed", "The history is well formed", Class::Evidence, checked);
    match flaws.first() {
        None => check.sentence = "Every completion has its invocation, and time never goes back.".to_owned(),
        Some(first) => {
            check.verdict = Verdict::Invalid;
            check.sentence = format!("The history is not well formed. {}", first.sentence);
        }
    }
    check.witnesses = flaws;
    check
}

fn linearizable(kind: Kind, found: BTreeMap<String, Found>, operations: usize) -> CheckResult {
    let keys = counted(found.len(), "key", "keys");
    let checked = format!("{} on {keys}", counted(operations, "operation", "operations"));
    let mut check = result("linearizable", "Linearizable", Class::Promised, checked);
    check.evidence = format!("as {}", kind.describe());
    let (mut undecided, mut passed) = (Vec::new(), 0);
    for (_, found) in found {
        match found {
            Found::Linearizable => passed += 1,
            Found::Violation(witness) => check.witnesses.push(*witness),
            Found::Undecided(why) => undecided.push(why),
        }
    }
    match (check.witnesses.first(), undecided.first()) {
        (Some(first), _) => {
            check.sentence = first.sentence.clone();
            check.verdict = Verdict::Fail;
        }
        (None, Some(why)) => {
            check.sentence = why.clone();
            check.verdict = Verdict::Unknown;
        }
        (None, None) if operations == 0 => {
            check.sentence = "There are no operations of clients in the history.".to_owned();
            check.verdict = Verdict::Invalid;
        }
        (None, None) => check.sentence = format!("Linearizable: {}.", check.checked),
    }
    check.measured = if check.witnesses.is_empty() && undecided.is_empty() {
        "all".to_owned()
    } else {
        format!("{passed} linearizable, {} not, {} undecided", check.witnesses.len(), undecided.len())
    };
    check
}

#[cfg(test)]
mod tests;
