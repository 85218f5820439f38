//! The report as one offline HTML page.
//!
//! # Invariants
//! - No request: styles, script and pictures are in the page, and a content policy forbids everything else.
//! - All is readable without script; the script only adds a cursor with the time under the pointer.
//! - Every picture has its words: a title, and a table with the same content.

mod axis;
mod drawing;
mod rates;
mod rows;
mod timeline;
mod topology;

use askama::Template;
use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::RunVerdict;

use crate::escape;
use crate::findings;
use crate::story::Story;
use crate::words::{self, Word};
use rows::{AnswerRow, CheckRow, ClientRow, FaultRow, FindingRow, HostRow, Legend, MomentRow};

/// The style sheet of every page.
pub(crate) const STYLE: &str = include_str!("../../templates/report.css");

/// Most checks named at the top; the table has them all.
const MOST_TROUBLES: usize = 20;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    facts: &'a Facts,
    word: Word,
    meaning: &'static str,
    tally: String,
    started: String,
    length: String,
    clocks: Option<String>,
    clean: usize,
    kubernetes: String,
    answers: Vec<AnswerRow>,
    troubles: Vec<CheckRow<'a>>,
    more_troubles: usize,
    timeline: Option<String>,
    legend: Vec<Legend>,
    moments: Vec<MomentRow>,
    more_moments: usize,
    findings: Vec<FindingRow<'a>>,
    more_findings: usize,
    checks: Vec<CheckRow<'a>>,
    more_checks: usize,
    classes: Vec<(&'static str, &'static str)>,
    topology: Option<topology::Topology>,
    faults: Vec<FaultRow>,
    latency: Option<String>,
    clients: Vec<ClientRow>,
    hosts: Vec<HostRow<'a>>,
    more_hosts: usize,
    notes: Vec<(String, String)>,
    more_notes: usize,
    flags: Vec<(String, String)>,
    again: [(&'static str, String); 3],
    lines: String,
}

/// The report of a run as one HTML page without any request.
#[must_use]
pub fn html(facts: &Facts, verdict: &RunVerdict, entries: &[Entry]) -> String {
    let story = Story::tell(facts, entries);
    let (found, more_findings) = findings::of(verdict);
    let anchors = rows::anchors(verdict);
    let check = |place, check| CheckRow::new(check, rows::anchor(&anchors, place));
    let (moments, more_moments) = rows::moments(&story);
    let (notes, more_notes) = rows::notes(entries, story.zero);
    let has_matter = !story.groups.is_empty() || !story.clients.is_empty();
    let page = Page {
        style: STYLE,
        script: include_str!("../../templates/report.js"),
        facts,
        word: words::of_run(verdict.verdict),
        meaning: words::meaning(verdict.verdict),
        tally: findings::tally(verdict),
        started: words::wall(&facts.started),
        length: words::length(facts.length),
        clocks: story.clocks.words(),
        clean: facts.hosts.iter().filter(|h| h.clean.is_none()).count(),
        kubernetes: rows::versions(facts),
        answers: rows::answers(verdict, &anchors),
        troubles: findings::troubles(verdict)
            .into_iter()
            .take(MOST_TROUBLES)
            .map(|(at, c)| check(at, c))
            .collect(),
        more_troubles: findings::troubles(verdict).len().saturating_sub(MOST_TROUBLES),
        timeline: has_matter.then(|| timeline::draw(&story, &rows::flags(&found))),
        legend: rows::legend(facts, &story),
        moments,
        more_moments,
        findings: found
            .iter()
            .map(|f| FindingRow::new(f, rows::anchor(&anchors, f.place), story.zero))
            .collect(),
        more_findings,
        checks: rows::explained(
            verdict.checks.iter().take(rows::MOST).enumerate().map(|(at, c)| check(at, c)).collect(),
        ),
        more_checks: verdict.checks.len().saturating_sub(rows::MOST),
        classes: rows::classes(verdict),
        topology: topology::draw(facts, &story),
        faults: story.faults.iter().take(rows::MOST).map(|f| FaultRow::new(f, story.zero)).collect(),
        latency: rates::latency(&story),
        clients: story.clients.iter().take(rows::MOST).map(ClientRow::new).collect(),
        hosts: rows::hosts(facts),
        more_hosts: facts.hosts.len().saturating_sub(rows::MOST),
        notes,
        more_notes,
        flags: rows::flags_in_force(facts),
        again: words::again(facts),
        lines: words::count(story.lines as u64),
    };
    // Rendering into a string fails only if a filter does, and the templates use none that can.
    page.render().unwrap_or_else(|error| escape::html(&error.to_string()))
}
