//! The run as one markdown page, for pull requests, issues and job summaries.
//!
//! # Invariants
//! - Text of the run is escaped, so it starts no markup, no mention and no link.
//! - Tables are cut at a fixed number of rows: the page stays far below GitHub's 1 MiB.

use std::fmt::Write;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::{CheckResult, RunVerdict};

use crate::escape::{code, markdown as text};
use crate::findings::{self, Finding};
use crate::story::{Done, FaultStory, Story};
use crate::words;

/// Most checks and most faults in a table.
const MOST_ROWS: usize = 500;

/// The report of a run as markdown.
#[must_use]
pub fn markdown(facts: &Facts, verdict: &RunVerdict, entries: &[Entry]) -> String {
    let story = Story::tell(facts, entries);
    let mut out = String::new();
    head(&mut out, facts, verdict);
    answers(&mut out, verdict);
    troubles(&mut out, verdict);
    checks(&mut out, verdict);
    all_findings(&mut out, verdict, &story);
    faults(&mut out, &story);
    clients(&mut out, &story);
    lab(&mut out, facts, &story);
    redo(&mut out, facts);
    out
}

fn head(out: &mut String, facts: &Facts, verdict: &RunVerdict) {
    let word = words::of_run(verdict.verdict);
    let _ = writeln!(out, "# {} {}: {}\n", word.sign, text(&facts.scenario), word.word);
    if !facts.purpose.is_empty() {
        let _ = writeln!(out, "{}\n", text(&facts.purpose));
    }
    let _ = writeln!(
        out,
        "Run {} · lab {} · {} · {} · seed {} · {}\n",
        code(&facts.run),
        text(&facts.lab),
        text(&words::wall(&facts.started)),
        words::length(facts.length),
        facts.seed,
        findings::tally(verdict),
    );
    if let Some(why) = &facts.cut_short {
        let _ = writeln!(out, "**The run was cut short:** {}\n", text(why));
    }
}

fn answers(out: &mut String, verdict: &RunVerdict) {
    for answer in &verdict.answers {
        let _ = writeln!(out, "**{}**\n", text(&answer.question));
        for sentence in words::sentences(&answer.answer) {
            let _ = writeln!(out, "- {}", text(sentence));
        }
        out.push('\n');
    }
}

fn troubles(out: &mut String, verdict: &RunVerdict) {
    let troubles = findings::troubles(verdict);
    if troubles.is_empty() {
        return;
    }
    let _ = writeln!(out, "## What is wrong\n");
    for (_, check) in troubles.iter().take(MOST_ROWS) {
        let word = words::of_check(check);
        let _ = writeln!(
            out,
            "- {} **{}**, {}: {}",
            word.sign,
            word.word,
            text(&check.title),
            text(&check.sentence)
        );
    }
    out.push('\n');
}

fn checks(out: &mut String, verdict: &RunVerdict) {
    if verdict.checks.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## Checks\n\n| | check | promise | bound | measured | looked at |\n|---|---|---|---|---|---|"
    );
    for check in verdict.checks.iter().take(MOST_ROWS) {
        let CheckResult { title, class, bound, measured, checked, .. } = check;
        let word = words::of_check(check);
        let _ = writeln!(
            out,
            "| {} {} | {} | {} | {} | {} | {} |",
            word.sign,
            word.word,
            text(title),
            words::class(*class),
            text(bound),
            text(measured),
            text(checked)
        );
    }
    rest(out, verdict.checks.len(), "check");
    out.push('\n');
}

fn rest(out: &mut String, len: usize, noun: &str) {
    if len > MOST_ROWS {
        let _ = writeln!(out, "\n{} more in `verdict.json`.", words::counted(len - MOST_ROWS, noun));
    }
}

fn all_findings(out: &mut String, verdict: &RunVerdict, story: &Story) {
    let (found, more) = findings::of(verdict);
    if found.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Findings\n");
    for Finding { number, check, witness, word, .. } in &found {
        let _ = writeln!(
            out,
            "{number}. {} **{}** ({}): {}",
            word.sign,
            text(&witness.rule),
            text(&check.title),
            text(&witness.sentence)
        );
        for exhibit in &witness.exhibits {
            let until =
                exhibit.to.map_or(String::new(), |to| format!(" to {}", words::moment(to.hi, story.zero)));
            let line = exhibit.line.map_or(String::new(), |line| format!(", history line {line}"));
            let _ = writeln!(
                out,
                "   - {}: {} ({}{until}{line})",
                text(&exhibit.who),
                text(&exhibit.what),
                words::moment(exhibit.from.lo, story.zero)
            );
        }
        if let Some(excuse) = witness.excused_by {
            let _ =
                writeln!(out, "   - only a clock error of {} or more would excuse it", words::length(excuse));
        }
    }
    if more > 0 {
        let _ = writeln!(out, "\n{} in `verdict.json`.", words::counted(more, "further witness"));
    }
    out.push('\n');
}

fn faults(out: &mut String, story: &Story) {
    if story.faults.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## Faults\n\nTimes count from the moment the first fault was in force.\n\n\
         | fault | asked | in force | observed | undo sent | healed | edges seen |\n|---|---|---|---|---|---|---|"
    );
    for fault in story.faults.iter().take(MOST_ROWS) {
        let FaultStory { summary, asked, in_force, observed, healing, healed, edges, .. } = fault;
        let at = |t: &Option<u64>| t.map_or("never".to_owned(), |t| words::moment(t, story.zero));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} of {} |",
            text(summary),
            at(asked),
            at(in_force),
            at(observed),
            at(healing),
            at(healed),
            fault.seen(),
            edges.len()
        );
    }
    rest(out, story.faults.len(), "fault");
    out.push('\n');
}

fn clients(out: &mut String, story: &Story) {
    if story.clients.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## Clients\n\n| | ok | refused | fail | info | open |\n|---|---:|---:|---:|---:|---:|"
    );
    for lane in story.clients.iter().take(MOST_ROWS) {
        let n = |how| words::count(lane.count(how) as u64);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            text(&lane.name),
            n(Done::Ok),
            n(Done::Refused),
            n(Done::Fail),
            n(Done::Info),
            words::count(lane.open as u64)
        );
    }
    rest(out, story.clients.len(), "client");
    out.push('\n');
}

fn lab(out: &mut String, facts: &Facts, story: &Story) {
    let _ = writeln!(out, "## Facts\n");
    if !facts.versions.is_empty() {
        let versions: Vec<String> = facts
            .versions
            .iter()
            .map(|(name, version)| format!("{} {}", text(name), text(version)))
            .collect();
        let _ = writeln!(out, "- Versions: {}", versions.join(", "));
    }
    for lease in &facts.leases {
        let _ = writeln!(
            out,
            "- {}: lease duration {}, renew deadline {}, retry period {}",
            text(&lease.component),
            words::seconds(lease.flags.lease_duration),
            words::seconds(lease.flags.renew_deadline),
            words::seconds(lease.flags.retry_period)
        );
    }
    let _ = writeln!(
        out,
        "- Nodes: monitor period {}, grace period {}, heartbeat {}, toleration {}",
        words::seconds(facts.nodes.monitor_period),
        words::seconds(facts.nodes.grace_period),
        words::seconds(facts.nodes.heartbeat),
        words::seconds(facts.nodes.toleration)
    );
    if let Some(bound) = story.clocks.words() {
        let samples = words::counted(story.clocks.samples, "clock sample");
        let _ = writeln!(out, "- Clocks: hosts' moments known to {bound}, {samples}");
    }
    let dirty: Vec<String> = facts
        .hosts
        .iter()
        .filter_map(|h| h.clean.as_ref().map(|why| format!("{} ({})", text(&h.host), text(why))))
        .collect();
    let clean = facts.hosts.len() - dirty.len();
    let _ = writeln!(out, "- Hosts: {clean} of {} verified clean", facts.hosts.len());
    if !dirty.is_empty() {
        let _ = writeln!(out, "- **Not verified clean:** {}", dirty.join(", "));
    }
    out.push('\n');
}

fn redo(out: &mut String, facts: &Facts) {
    let _ = writeln!(out, "## Again\n");
    for (what, command) in words::again(facts) {
        let _ = writeln!(out, "- {what}: {}", code(&command));
    }
}
