//! The index of several runs: one line a run, worst first.

use std::fmt::Write;

use askama::Template;
use rackrift_checkers::facts::Facts;
use rackrift_checkers::verdict::{RunVerdict, Verdict};

use crate::escape::{html as escaped, markdown as text, tame};
use crate::findings;
use crate::html::STYLE;
use crate::words::{self, Word};

/// A run of a suite.
#[derive(Debug, Clone, Copy)]
pub struct SuiteEntry<'a> {
    /// Its facts.
    pub facts: &'a Facts,
    /// Its verdict.
    pub verdict: &'a RunVerdict,
    /// Its folder relative to the index, `/`-separated: where `report.html` lies.
    pub folder: &'a str,
}

struct Row<'a> {
    entry: &'a SuiteEntry<'a>,
    word: Word,
    href: String,
    length: String,
    tally: String,
    trouble: Vec<&'a str>,
    answers: Vec<(&'a str, Vec<&'a str>)>,
}

#[derive(Template)]
#[template(path = "suite.html")]
struct Index<'a> {
    style: &'static str,
    word: Word,
    meaning: &'static str,
    title: String,
    rows: Vec<Row<'a>>,
}

fn overall(entries: &[SuiteEntry<'_>]) -> Verdict {
    entries.iter().map(|e| e.verdict.verdict).fold(Verdict::Skipped, Verdict::merge)
}

fn rows<'a>(entries: &'a [SuiteEntry<'a>]) -> Vec<Row<'a>> {
    let row = |entry: &'a SuiteEntry<'a>| Row {
        entry,
        word: words::of_run(entry.verdict.verdict),
        href: href(entry.folder),
        length: words::length(entry.facts.length),
        tally: findings::tally(entry.verdict),
        answers: entry
            .verdict
            .answers
            .iter()
            .map(|a| (a.question.as_str(), words::sentences(&a.answer)))
            .collect(),
        trouble: findings::troubles(entry.verdict).iter().take(3).map(|(_, c)| c.sentence.as_str()).collect(),
    };
    entries.iter().map(row).collect()
}

/// The path of a report with everything but plain path characters percent-encoded: a folder's name cannot become
/// a scheme or leave the page's own folder.
fn href(folder: &str) -> String {
    let mut out = String::from("./");
    for part in folder.split('/').filter(|p| !matches!(*p, "" | "." | "..")) {
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out.push('/');
    }
    out.push_str("report.html");
    out
}

fn title(entries: &[SuiteEntry<'_>]) -> String {
    let passed = entries.iter().filter(|e| e.verdict.verdict == Verdict::Pass).count();
    format!("{passed} of {} passed", words::counted(entries.len(), "run"))
}

/// The index of a suite's runs as one offline page, in the order given.
#[must_use]
pub fn suite_html(entries: &[SuiteEntry<'_>]) -> String {
    let verdict = overall(entries);
    let index = Index {
        style: STYLE,
        word: words::of_run(verdict),
        meaning: words::meaning(verdict),
        title: title(entries),
        rows: rows(entries),
    };
    index.render().unwrap_or_else(|error| escaped(&error.to_string()))
}

/// The index of a suite's runs as markdown, in the order given.
#[must_use]
pub fn suite_markdown(entries: &[SuiteEntry<'_>]) -> String {
    let word = words::of_run(overall(entries));
    let mut out = format!("# {} {}\n\n", word.sign, title(entries));
    if entries.is_empty() {
        out.push_str("Nothing ran.\n");
        return out;
    }
    out.push_str("| | scenario | checks | length | report |\n|---|---|---|---|---|\n");
    for row in rows(entries) {
        let _ = writeln!(
            out,
            "| {} {} | {} | {} | {} | [report]({}) |",
            row.word.sign,
            row.word.word,
            text(&row.entry.facts.scenario),
            row.tally,
            row.length,
            row.href
        );
    }
    for row in rows(entries).iter().filter(|r| !r.entry.verdict.answers.is_empty() || !r.trouble.is_empty()) {
        let _ = writeln!(out, "\n## {} {}\n", row.word.sign, text(&row.entry.facts.scenario));
        for answer in &row.entry.verdict.answers {
            let _ = writeln!(out, "**{}**\n", text(&answer.question));
            for sentence in words::sentences(&answer.answer) {
                let _ = writeln!(out, "- {}", text(sentence));
            }
            out.push('\n');
        }
        if !row.trouble.is_empty() {
            out.push_str("**What is wrong**\n\n");
        }
        for sentence in &row.trouble {
            let _ = writeln!(out, "- {}", text(&tame(sentence)));
        }
    }
    out
}
