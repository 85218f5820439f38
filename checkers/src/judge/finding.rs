//! Builds one [`CheckResult`]: what was asked first, the word and its sentence last.

use crate::history::{At, Nanos};
use crate::verdict::{CheckResult, Class, Exhibit, Verdict, Witness};

/// Most witnesses of one check: the gravest tell the story, and a report has to hold them all.
pub(super) const MOST_WITNESSES: usize = 20;

/// A check on its way to its word.
pub(super) struct Finding(CheckResult);

impl Finding {
    /// A check with nothing measured yet.
    pub(super) fn new(id: impl Into<String>, title: impl Into<String>, class: Class) -> Self {
        Self(CheckResult {
            id: id.into(),
            title: title.into(),
            class,
            verdict: Verdict::Unknown,
            bound: "–".to_owned(),
            measured: "–".to_owned(),
            sentence: String::new(),
            checked: "–".to_owned(),
            evidence: "–".to_owned(),
            witnesses: Vec::new(),
            value: None,
        })
    }

    /// The bound in words.
    pub(super) fn bound(mut self, words: impl Into<String>) -> Self {
        self.0.bound = words.into();
        self
    }

    /// What was measured, in words.
    pub(super) fn measured(mut self, words: impl Into<String>) -> Self {
        self.0.measured = words.into();
        self
    }

    /// How much was looked at.
    pub(super) fn checked(mut self, words: impl Into<String>) -> Self {
        self.0.checked = words.into();
        self
    }

    /// Where the evidence comes from.
    pub(super) fn evidence(mut self, words: impl Into<String>) -> Self {
        self.0.evidence = words.into();
        self
    }

    /// The measured number, for trends.
    pub(super) fn value(mut self, value: Nanos) -> Self {
        self.0.value = i64::try_from(value).ok();
        self
    }

    /// One more witness, graver ones first.
    pub(super) fn witness(mut self, witness: Witness) -> Self {
        self.0.witnesses.push(witness);
        self
    }

    /// The word and the answer in one sentence.
    pub(super) fn say(mut self, verdict: Verdict, sentence: impl Into<String>) -> CheckResult {
        self.0.verdict = verdict;
        self.0.sentence = sentence.into();
        self.0
    }

    /// `pass`.
    pub(super) fn pass(self, sentence: impl Into<String>) -> CheckResult {
        self.say(Verdict::Pass, sentence)
    }

    /// `unknown`: evidence is missing or too coarse.
    pub(super) fn unknown(self, sentence: impl Into<String>) -> CheckResult {
        self.say(Verdict::Unknown, sentence)
    }

    /// `skipped`: the lab lacks what the check needs.
    pub(super) fn skipped(self, sentence: impl Into<String>) -> CheckResult {
        self.say(Verdict::Skipped, sentence)
    }

    /// `invalid`: what the check needs did not happen.
    pub(super) fn invalid(self, sentence: impl Into<String>) -> CheckResult {
        self.say(Verdict::Invalid, sentence)
    }

    /// `fail`, with the witness whose sentence is the answer.
    pub(super) fn fail(self, witness: Witness) -> CheckResult {
        let sentence = witness.sentence.clone();
        self.witness(witness).say(Verdict::Fail, sentence)
    }
}

/// A witness with its exhibits; [`Witness::at`] is the first exhibit's begin.
pub(super) fn witness(rule: &str, sentence: impl Into<String>, exhibits: Vec<Exhibit>) -> Witness {
    Witness {
        rule: rule.to_owned(),
        sentence: sentence.into(),
        at: exhibits.last().map(|e| e.from),
        exhibits,
        margin: None,
        excused_by: None,
    }
}

/// One thing that a witness points at.
pub(super) fn exhibit(
    who: impl Into<String>,
    what: impl Into<String>,
    from: At,
    to: Option<At>,
    line: Option<u64>,
) -> Exhibit {
    Exhibit { who: who.into(), what: what.into(), from, to, line }
}
