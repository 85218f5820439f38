//! The headline answers of a run, each put together from the sentences of the checks it rests on.

use crate::verdict::{Answer, CheckResult, Verdict};

/// Most sentences in one answer; the checks themselves tell the rest.
const SENTENCES: usize = 5;

/// A question, and the checks whose sentences answer it: the beginnings of their ids.
const QUESTIONS: [(&str, &[&str]); 3] = [
    ("Who led?", &["lease-takeover/", "lease-steady/", "belief-overlap/"]),
    ("Which pods ran twice?", &["duplicate-pods/"]),
    ("Is the lease history linearizable?", &["lease-linearizable"]),
];

/// The answers for which there are checks.
pub(super) fn answers(checks: &[CheckResult]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (question, prefixes) in QUESTIONS {
        let of_prefix = |p: &&str| checks.iter().filter(move |c| c.id.starts_with(*p)).collect::<Vec<_>>();
        let mut asked: Vec<&CheckResult> = prefixes.iter().flat_map(of_prefix).collect();
        if asked.is_empty() {
            continue;
        }
        // What went wrong comes first; the order of the checks is kept otherwise.
        asked.sort_by_key(|c| match c.verdict {
            Verdict::Fail | Verdict::Error => 0,
            Verdict::Invalid | Verdict::Unknown => 1,
            Verdict::Pass | Verdict::Skipped => 2,
        });
        let sentences: Vec<&str> = asked.iter().take(SENTENCES).map(|c| c.sentence.as_str()).collect();
        answers.push(Answer {
            question: question.to_owned(),
            answer: sentences.join(" "),
            checks: asked.iter().map(|c| c.id.clone()).collect(),
        });
    }
    answers
}
