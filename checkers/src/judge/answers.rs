//! The headline answers of a run, each put together from the sentences of the checks it rests on.
//!
//! # Invariants
//! - All questions are answered in every run; where a run did not look, the answer says so.
//! - What went wrong comes first, and no sentence about it is left out for brevity before one that tells of a pass.

use super::wording::counted;
use crate::verdict::{Answer, CheckResult, Verdict};

/// Most sentences told in full in one answer; the checks themselves tell the rest.
const SENTENCES: usize = 5;

/// One headline question.
struct Question {
    asked: &'static str,
    /// Beginnings of the ids of the checks whose sentences are told in full.
    full: &'static [&'static str],
    /// The same for checks that are only counted while they pass, with the words for one and for several.
    brief: &'static [(&'static str, &'static str, &'static str)],
    /// The answer where the run has no such check.
    nothing: &'static str,
}

const QUESTIONS: [Question; 3] = [
    Question {
        asked: "Who led?",
        full: &["lease-takeover/", "lease-steady/", "belief-overlap/"],
        brief: &[],
        nothing: "Not looked at: this run watched no elected component.",
    },
    Question {
        asked: "Which pods ran twice?",
        full: &["duplicate-pods/"],
        brief: &[
            ("daemon-undisturbed/", "DaemonSet pod ran on undisturbed", "DaemonSet pods ran on undisturbed"),
            ("not-recreated/", "bare pod was not recreated", "bare pods were not recreated"),
        ],
        nothing: "Not looked at: this run had no pods of its own.",
    },
    Question {
        asked: "Is the lease history linearizable?",
        full: &["lease-linearizable"],
        brief: &[],
        nothing: "Not looked at: this scenario has no clients that contend for leases.",
    },
];

/// The answers to all questions.
pub(super) fn answers(checks: &[CheckResult]) -> Vec<Answer> {
    QUESTIONS.iter().map(|question| answer(question, checks)).collect()
}

fn answer(question: &Question, checks: &[CheckResult]) -> Answer {
    let of = |prefix: &str| checks.iter().filter(|c| c.id.starts_with(prefix)).collect::<Vec<_>>();
    let mut told: Vec<&CheckResult> = question.full.iter().flat_map(|prefix| of(prefix)).collect();
    let mut rests_on: Vec<&CheckResult> = told.clone();
    let mut counts: Vec<String> = Vec::new();
    for (prefix, one, many) in question.brief {
        let (well, rest): (Vec<&CheckResult>, Vec<&CheckResult>) =
            of(prefix).into_iter().partition(|c| c.verdict == Verdict::Pass);
        rests_on.extend(well.iter().chain(&rest));
        told.extend(rest);
        if !well.is_empty() {
            counts.push(format!("{}.", counted(well.len(), one, many)));
        }
    }
    if rests_on.is_empty() {
        let nothing = question.nothing.to_owned();
        return Answer { question: question.asked.to_owned(), answer: nothing, checks: Vec::new() };
    }
    // The order of the checks is kept within each word.
    told.sort_by_key(|c| match c.verdict {
        Verdict::Fail | Verdict::Error => 0,
        Verdict::Invalid | Verdict::Unknown => 1,
        Verdict::Pass | Verdict::Skipped => 2,
    });
    let mut sentences: Vec<String> = told.iter().take(SENTENCES).map(|c| c.sentence.clone()).collect();
    if told.len() > SENTENCES {
        let more = told.len() - SENTENCES;
        sentences
            .push(format!("{} below.", counted(more, "more such check stands", "more such checks stand")));
    }
    sentences.extend(counts);
    Answer {
        question: question.asked.to_owned(),
        answer: sentences.join(" "),
        checks: rests_on.iter().map(|c| c.id.clone()).collect(),
    }
}
