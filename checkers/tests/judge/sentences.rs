//! Every sentence that the judge can say of the planted stories, as a reader meets them.

use std::fmt::Write as _;

use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::{CheckResult, RunVerdict};

use super::support::{Plan, Run};
use super::{planted, verdict};

/// What a reader sees of a run; of the later stories only what they change.
fn told(out: &mut String, story: &str, verdict: &RunVerdict, usual: Option<&RunVerdict>) {
    writeln!(out, "== {story}: {}", verdict.verdict).expect("a String takes all");
    for check in &verdict.checks {
        // The same words with other figures tell a reader of this snapshot nothing new.
        let same =
            |c: &CheckResult| (&c.id, c.verdict, wording(c)) == (&check.id, check.verdict, wording(check));
        if usual.is_some_and(|usual| usual.checks.iter().any(same)) {
            continue;
        }
        writeln!(
            out,
            "[{}] {} | bound {} | measured {}",
            check.verdict, check.title, check.bound, check.measured
        )
        .expect("a String takes all");
        writeln!(out, "    {}", check.sentence).expect("a String takes all");
    }
    for answer in &verdict.answers {
        if usual.is_some_and(|usual| usual.answers.contains(answer)) {
            continue;
        }
        writeln!(out, "{} {}", answer.question, answer.answer).expect("a String takes all");
    }
    out.push('\n');
}

/// A sentence without its figures.
fn wording(check: &CheckResult) -> String {
    check.sentence.replace(|c: char| c.is_ascii_digit(), "").replace(" ms", " s")
}

fn edited(edit: impl FnOnce(&mut Run)) -> Run {
    let mut run = Plan::rack_split().build();
    edit(&mut run);
    run
}

#[test]
fn sentences_of_all_stories() {
    let usual = verdict(&Plan::rack_split().build());
    let mut out = String::new();
    told(&mut out, "all promises kept", &usual, None);
    let stories = [
        ("lease stolen early", planted(|p| p.kcm.takeover = Some(32.4))),
        ("taken over a little early", planted(|p| p.kcm.takeover = Some(34.2))),
        ("taken over late, excused", planted(|p| p.kcm.takeover = Some(45.0))),
        ("taken over late", planted(|p| p.kcm.takeover = Some(61.0))),
        ("holder renews through the cut", planted(|p| p.kcm.takeover = None)),
        ("transitions not counted", planted(|p| p.kcm.transitions_step = 0)),
        ("old leader stays beside the new", planted(|p| (p.kcm.lost, p.kcm.exits) = (41.0, 41.1))),
        ("scheduler leads on while it releases", planted(|p| p.scheduler.exits = 37.3)),
        ("clocks too coarse", planted(|p| (p.clock_bound, p.kcm.lost, p.kcm.exits) = (1.0, 39.0, 39.1))),
        ("ordinal twice", planted(|p| p.db_new_start = 128.0)),
        ("ordinal perhaps twice", planted(|p| p.db_new_start = 129.605)),
        ("no duplicate where one was to be shown", planted(|p| p.web_replacement = 135.0)),
        ("daemon pod restarted", planted(|p| p.agent_restart = Some(70.0))),
        ("node Unknown early", planted(|p| p.w1_unknown = 88.0)),
        ("evicted early", planted(|p| p.evicted = 100.0)),
        (
            "partition left out",
            planted(|p| {
                p.cut = None;
                p.kcm.takeover = None;
                p.scheduler.takeover = None;
            }),
        ),
        ("no logs", edited(|r| r.entries.retain(|e| !matches!(e, Entry::Belief(_))))),
        ("no pods seen", edited(|r| r.entries.retain(|e| !matches!(e, Entry::Pod(_))))),
        ("no leases seen", edited(|r| r.entries.retain(|e| !matches!(e, Entry::Lease(_))))),
        (
            "breaks off in the cut",
            edited(|r| {
                r.entries.truncate(r.entries.len() * 2 / 5);
                r.facts.cut_short = Some("interrupted".to_owned());
            }),
        ),
        ("empty", edited(|r| r.entries.clear())),
    ];
    for (story, run) in stories {
        told(&mut out, story, &verdict(&run), Some(&usual));
    }
    insta::assert_snapshot!(out);
}
