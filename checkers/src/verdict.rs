//! Verdicts: what a check says, why, and with which witness.

use serde::{Deserialize, Serialize};

use crate::history::{At, Nanos};

/// The word of a check or of a run.
///
/// The order is that of [`Verdict::merge`]: a `fail` is never hidden by another word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Checked, and right.
    Pass,
    /// What the check needs is missing in this lab.
    Skipped,
    /// Could not be decided: evidence or budget ran out.
    Unknown,
    /// The fault did not bite, or what the check needs did not happen: the run proves nothing.
    Invalid,
    /// The checker itself failed.
    Error,
    /// Checked, and wrong.
    Fail,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pass => "passed",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
            Self::Error => "error",
            Self::Fail => "failed",
        })
    }
}

impl Verdict {
    /// The graver of two words: fail > error > invalid > unknown > pass > skipped.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        if self.gravity() >= other.gravity() { self } else { other }
    }

    const fn gravity(self) -> u8 {
        match self {
            Self::Skipped => 0,
            Self::Pass => 1,
            Self::Unknown => 2,
            Self::Invalid => 3,
            Self::Error => 4,
            Self::Fail => 5,
        }
    }
}

/// How much Kubernetes promises of what a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Documented: a breach is a failure.
    Promised,
    /// Follows from the code in force: a breach is a failure.
    FromCode,
    /// Not promised: a measured window, never a failure.
    NotPromised,
    /// About the run itself: did the fault bite, is the evidence there.
    Evidence,
}

/// One thing that a witness points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Exhibit {
    /// Who: `client a1`, `pod web-1 (3f2a…) on w1`, `m1 kube-controller-manager pid 812`.
    pub who: String,
    /// What it did or showed.
    pub what: String,
    /// From when.
    pub from: At,
    /// Until when; absent: still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<At>,
    /// Index of the operation, or line of the history (1-based) where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Why a check said no, or what it measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Witness {
    /// The rule broken, as a word: `stale-read`, `two-holders`, `duplicate-pod`, `early-steal` ...
    pub rule: String,
    /// One plain sentence with names, times and versions.
    pub sentence: String,
    /// The two (or three) things that suffice.
    pub exhibits: Vec<Exhibit>,
    /// By how much, ns; for windows the certain length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Nanos>,
    /// The smallest clock error that would excuse it, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excused_by: Option<Nanos>,
    /// Where to jump in the timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckResult {
    /// Stable id: `lease-takeover/kube-controller-manager`, `lease-linearizable`, `duplicate-pods/web` ...
    pub id: String,
    /// What a reader sees: `Lease moves within bounds`.
    pub title: String,
    /// How much is promised.
    pub class: Class,
    /// The word.
    pub verdict: Verdict,
    /// The bound, in words: `15.0 to 23.8 s after the last renewal`.
    pub bound: String,
    /// What was measured, in words: `20.1 s`.
    pub measured: String,
    /// One plain sentence: the answer.
    pub sentence: String,
    /// How much was looked at: `2,345 operations on 10 leases`.
    pub checked: String,
    /// Where the evidence comes from: `etcd revisions 512 → 640`.
    pub evidence: String,
    /// Why it failed, or the windows measured, gravest first.
    #[serde(default)]
    pub witnesses: Vec<Witness>,
    /// The measured number, for trends and diffs: ns, or a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
}

/// One of the headline answers of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// `Who led?`
    pub question: String,
    /// One or two sentences.
    pub answer: String,
    /// The ids of the checks it rests on.
    pub checks: Vec<String>,
}

/// `verdict.json`: the truth of a run's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunVerdict {
    /// Version of the format; 1 today.
    pub rackrift_verdict: u32,
    /// The run's id.
    pub run: String,
    /// The scenario's id.
    pub scenario: String,
    /// The gravest word of all checks, `skipped` only if all were.
    pub verdict: Verdict,
    /// Who led, which pods ran twice, is the history linearizable.
    pub answers: Vec<Answer>,
    /// Each check.
    pub checks: Vec<CheckResult>,
}
