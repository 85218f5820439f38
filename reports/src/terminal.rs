//! The run for a terminal: headline answers first, then what is wrong, then a table of checks.
//!
//! # Invariants
//! - No line is wider than asked for (at least [`NARROWEST`] columns).
//! - Only this module writes escape sequences: what came from the run has none left.

use std::fmt::Write;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Entry;
use rackrift_checkers::verdict::{CheckResult, RunVerdict};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::Priority;
use tabled::settings::{Modify, Padding, Style, Width};

use crate::escape::cleaned;
use crate::findings;
use crate::story::Story;
use crate::words::{self, Word};

/// Columns below which tables would be no tables.
const NARROWEST: usize = 60;
/// Most rows of the table of checks; the rest is in the reports.
const MOST_ROWS: usize = 60;

struct Page {
    out: String,
    width: usize,
    colour: bool,
}

/// The report of a run for a terminal of `width` columns (at least 60), with ANSI colours if `colour`.
#[must_use]
pub fn terminal(
    facts: &Facts,
    verdict: &RunVerdict,
    entries: &[Entry],
    width: usize,
    colour: bool,
) -> String {
    let facts = cleaned(facts);
    let verdict = cleaned(verdict);
    let story = Story::tell(&facts, entries);
    let mut page = Page { out: String::new(), width: width.max(NARROWEST), colour };
    page.head(&facts, &verdict, &story);
    page.answers(&verdict);
    page.troubles(&verdict, &story);
    page.checks(&verdict);
    page.again(&facts);
    page.out
}

impl Page {
    fn paint(&self, style: &str, text: &str) -> String {
        let code = match style {
            "pass" => "32",
            "fail" => "1;31",
            "meas" | "unkn" => "33",
            "skip" => "2",
            "bold" => "1",
            _ => return text.to_owned(),
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn word(&self, word: Word) -> String {
        self.paint(word.style, &format!("{} {}", word.sign, word.word))
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Breaks a text at spaces, each line after `indent` spaces.
    fn text(&mut self, text: &str, indent: usize) {
        for line in wrapped(text, self.width - indent) {
            self.line(&format!("{:indent$}{line}", ""));
        }
    }

    fn head(&mut self, facts: &Facts, verdict: &RunVerdict, story: &Story) {
        let word = self.word(words::of_run(verdict.verdict));
        let name = self.paint("bold", &cut(&facts.scenario, self.width - 20));
        self.line(&format!("{name}  {word}"));
        let mut parts = vec![
            format!("lab {}", facts.lab),
            words::wall(&facts.started),
            words::length(facts.length),
            format!("seed {}", facts.seed),
        ];
        if let Some(bound) = story.clocks.words() {
            parts.push(format!("clocks {bound}"));
        }
        let dirty = facts.hosts.iter().filter(|h| h.clean.is_some()).count();
        if !facts.hosts.is_empty() {
            parts.push(format!(
                "{} of {} hosts verified clean",
                facts.hosts.len() - dirty,
                facts.hosts.len()
            ));
        }
        self.text(&parts.join(" · "), 0);
        if let Some(why) = &facts.cut_short {
            self.text(&format!("The run was cut short: {why}"), 0);
        }
    }

    fn answers(&mut self, verdict: &RunVerdict) {
        for answer in &verdict.answers {
            let question = self.paint("bold", &cut(&answer.question, self.width));
            self.line("");
            self.line(&question);
            for sentence in words::sentences(&answer.answer) {
                self.text(sentence, 2);
            }
        }
    }

    fn troubles(&mut self, verdict: &RunVerdict, story: &Story) {
        for (_, check) in findings::troubles(verdict).into_iter().take(MOST_ROWS) {
            let word = words::of_check(check);
            self.line("");
            let head = self.word(word);
            self.line(&format!("{head}  {}", cut(&check.title, self.width - 14)));
            self.text(&check.sentence, 2);
            for witness in check.witnesses.iter().take(3) {
                self.text(&format!("{}: {}", witness.rule, witness.sentence), 2);
                for exhibit in &witness.exhibits {
                    let at = words::moment(exhibit.from.lo, story.zero);
                    let line = exhibit.line.map_or(String::new(), |line| format!(" (history line {line})"));
                    self.text(&format!("{at}  {}: {}{line}", exhibit.who, exhibit.what), 4);
                }
            }
        }
    }

    fn checks(&mut self, verdict: &RunVerdict) {
        if verdict.checks.is_empty() {
            return;
        }
        let mut rows = Builder::default();
        rows.push_record(["", "check", "bound", "measured"]);
        for check in verdict.checks.iter().take(MOST_ROWS) {
            let CheckResult { title, bound, measured, .. } = check;
            rows.push_record([
                self.word(words::of_check(check)),
                title.clone(),
                bound.clone(),
                measured.clone(),
            ]);
        }
        let mut table = rows.build();
        table
            .with(Style::blank())
            .with(Padding::new(0, 1, 0, 0))
            .with(Modify::new(Columns::one(0)).with(Padding::new(0, 2, 0, 0)))
            .with(Width::wrap(self.width).keep_words(true).priority(Priority::max(true)));
        self.line("");
        for line in table.to_string().lines() {
            self.line(line.trim_end());
        }
        if verdict.checks.len() > MOST_ROWS {
            let more = words::counted(verdict.checks.len() - MOST_ROWS, "more check");
            self.text(&format!("{more} in the reports"), 0);
        }
        self.text(&findings::tally(verdict), 0);
    }

    fn again(&mut self, facts: &Facts) {
        let mut lines = String::new();
        for (what, command) in words::again(facts) {
            let _ = writeln!(lines, "{what}: {command}");
        }
        self.line("");
        for line in lines.lines() {
            self.text(line, 0);
        }
    }
}

fn columns(text: &str) -> usize {
    tabled::grid::util::string::get_string_width(text)
}

fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if columns(&out) + columns(c.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Lines of at most `width` columns, broken at spaces where there are any.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let wide = columns(word);
        if used > 0 && used + 1 + wide <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + wide;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for c in word.chars() {
            let step = columns(c.encode_utf8(&mut [0; 4]));
            if used + step > width && used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += step;
        }
    }
    lines.push(line);
    lines
}
