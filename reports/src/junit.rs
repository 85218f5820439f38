//! The run as JUnit XML: one test suite, one case a check.
//!
//! # Invariants
//! - `fail` is a failure, `error`, `unknown` and `invalid` are errors (a nightly job must not turn green on a run
//!   that proves nothing), `skipped` is skipped.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use rackrift_checkers::facts::Facts;
use rackrift_checkers::verdict::{CheckResult, RunVerdict, Verdict};

use crate::escape::{cleaned, tame};
use crate::{findings, words};

/// The verdict of a run as a JUnit report.
#[must_use]
pub fn junit(facts: &Facts, verdict: &RunVerdict) -> String {
    let facts = cleaned(facts);
    let verdict = cleaned(verdict);
    let mut suite = TestSuite::new(facts.scenario.as_str());
    suite.set_time(Duration::from_nanos(facts.length));
    if let Ok(started) = chrono::DateTime::parse_from_rfc3339(&facts.started) {
        suite.set_timestamp(started);
    }
    let mut property = |name: &str, value: &str| {
        suite.add_property(Property::new(name, value));
    };
    property("run", &facts.run);
    property("lab", &facts.lab);
    property("seed", &facts.seed.to_string());
    property("verdict", words::of_run(verdict.verdict).word);
    for (name, version) in &facts.versions {
        property(name, version);
    }
    for answer in &verdict.answers {
        property(&answer.question, &answer.answer);
    }
    for check in &verdict.checks {
        suite.add_test_case(case(&facts.scenario, check));
    }
    let mut report = Report::new("rackrift");
    report.add_test_suite(suite);
    report.to_string().unwrap_or_else(|error| unwritable(&tame(&error.to_string())))
}

fn case(scenario: &str, check: &CheckResult) -> TestCase {
    let kind = match check.verdict {
        Verdict::Pass => None,
        Verdict::Skipped => Some(None),
        Verdict::Fail => Some(Some(NonSuccessKind::Failure)),
        Verdict::Unknown | Verdict::Invalid | Verdict::Error => Some(Some(NonSuccessKind::Error)),
    };
    let mut status = match kind {
        None => TestCaseStatus::success(),
        Some(None) => TestCaseStatus::skipped(),
        Some(Some(kind)) => TestCaseStatus::non_success(kind),
    };
    if kind.is_some() {
        status.set_message(check.sentence.as_str());
    }
    if let Some(Some(_)) = kind {
        status.set_type(check.witnesses.first().map_or(words::of_check(check).word, |w| w.rule.as_str()));
        let sentences: Vec<&str> =
            check.witnesses.iter().take(findings::MOST).map(|w| w.sentence.as_str()).collect();
        if !sentences.is_empty() {
            status.set_description(sentences.join("\n"));
        }
    }
    let mut case = TestCase::new(check.id.as_str(), status);
    case.set_classname(format!("rackrift.{scenario}"));
    let word = words::of_check(check).word;
    case.set_system_out(format!(
        "{}\n{word} ({})\nbound: {}\nmeasured: {}\nchecked: {}\nevidence: {}\n{}",
        check.title,
        words::class(check.class),
        check.bound,
        check.measured,
        check.checked,
        check.evidence,
        check.sentence,
    ));
    case
}

/// A report that fails in CI and says why, should the XML writer ever refuse.
fn unwritable(why: &str) -> String {
    let why = crate::escape::html(why);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rackrift\" tests=\"1\" errors=\"1\"><testsuite \
         name=\"report\" tests=\"1\" errors=\"1\"><testcase name=\"junit\"><error message=\"{why}\"/></testcase>\
         </testsuite></testsuites>\n"
    )
}
