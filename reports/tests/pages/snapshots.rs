//! What people read, kept as files.

use crate::support::{Run, sample};
use rackrift_checkers::history::At;
use rackrift_checkers::verdict::{Exhibit, Verdict, Witness};
use rackrift_reports::{SuiteEntry, junit, markdown, suite_markdown, terminal};

/// The sample with a planted stale read: one check fails.
fn failed() -> Run {
    let mut run = sample();
    run.verdict.verdict = Verdict::Fail;
    let check = &mut run.verdict.checks[0];
    check.verdict = Verdict::Fail;
    check.measured = "30.2 s".to_owned();
    check.value = Some(30_200_000_000);
    check.sentence =
        "kube-controller-manager moved from m1 to m2 30.2 s after m1's last renewal, later than the 23.8 s \
                      that the flags give it."
            .to_owned();
    let exhibit = |who: &str, what: &str, at: u64, line: u64| Exhibit {
        who: who.to_owned(),
        what: what.to_owned(),
        from: At::exactly(at),
        to: None,
        line: Some(line),
    };
    check.witnesses.push(Witness {
        rule: "late-takeover".to_owned(),
        sentence: "m2 acquired the lease at revision 1192, 6.4 s after the last moment its flags allow."
            .to_owned(),
        exhibits: vec![
            exhibit("m1_5d0c", "renewed at revision 1165", 19_000_000_000, 412),
            exhibit("m2_9a41", "acquired at revision 1192", 49_200_000_000, 977),
        ],
        margin: Some(6_400_000_000),
        excused_by: Some(6_400_000_000),
        at: Some(At::exactly(49_200_000_000)),
    });
    run.facts.hosts[0].clean = Some("rule rackrift-7f3a left in raw".to_owned());
    run.facts.cut_short = Some("interrupted".to_owned());
    run
}

#[test]
fn markdown_passed() {
    let Run { facts, verdict, entries } = sample();
    insta::assert_snapshot!(markdown(&facts, &verdict, &entries));
}

#[test]
fn markdown_failed() {
    let Run { facts, verdict, entries } = failed();
    insta::assert_snapshot!(markdown(&facts, &verdict, &entries));
}

#[test]
fn terminal_passed() {
    let Run { facts, verdict, entries } = sample();
    insta::assert_snapshot!(terminal(&facts, &verdict, &entries, 110, false));
}

#[test]
fn terminal_failed_narrow() {
    let Run { facts, verdict, entries } = failed();
    insta::assert_snapshot!(terminal(&facts, &verdict, &entries, 72, false));
}

#[test]
fn terminal_in_colour() {
    let Run { facts, verdict, entries } = failed();
    let text = terminal(&facts, &verdict, &entries, 110, true);
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"));
}

#[test]
fn junit_failed() {
    let Run { facts, verdict, .. } = failed();
    insta::assert_snapshot!(junit(&facts, &verdict));
}

#[test]
fn suite_of_two() {
    let (one, two) = (sample(), failed());
    let entry = |run: &'static str, of: &'_ Run| (run, of.clone());
    let runs = [entry("first", &one), entry("second <b>", &two)];
    let entries: Vec<SuiteEntry<'_>> = runs
        .iter()
        .map(|(folder, run)| SuiteEntry { facts: &run.facts, verdict: &run.verdict, folder })
        .collect();
    insta::assert_snapshot!(suite_markdown(&entries));
}
