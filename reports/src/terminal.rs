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
use tabled::settings::{Padding, Style};

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
        let shown = &verdict.checks[..verdict.checks.len().min(MOST_ROWS)];
        let texts = |of: fn(&CheckResult) -> &String| shown.iter().map(of).collect::<Vec<_>>();
        let columns_of_text = [texts(|c| &c.title), texts(|c| &c.bound), texts(|c| &c.measured)];
        let first = shown.iter().map(|c| columns(words::of_check(c).word) + 2).max().unwrap_or(0);
        let widths = shares(self.width - first - 2 * columns_of_text.len(), &columns_of_text);
        let mut rows = Builder::default();
        rows.push_record(["", "check", "bound", "measured"]);
        for (place, check) in shown.iter().enumerate() {
            let cell = |column: usize| wrapped(columns_of_text[column][place], widths[column]).join("\n");
            rows.push_record([self.word(words::of_check(check)), cell(0), cell(1), cell(2)]);
        }
        let mut table = rows.build();
        table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
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

/// Widths of columns that share `room`: none gets more than it needs, what it leaves goes to the others.
fn shares(room: usize, texts: &[Vec<&String>; 3]) -> [usize; 3] {
    let needs = texts.each_ref().map(|t| t.iter().map(|s| columns(s)).max().unwrap_or(0).max(8));
    let mut widths = [0; 3];
    let (mut left, mut open) = (room, vec![0, 1, 2]);
    while !open.is_empty() {
        let share = left / open.len();
        let content: Vec<usize> = open.iter().copied().filter(|c| needs[*c] <= share).collect();
        if content.is_empty() {
            open.iter().for_each(|c| widths[*c] = share);
            break;
        }
        for column in content {
            widths[column] = needs[column];
            left -= needs[column];
            open.retain(|c| *c != column);
        }
    }
    widths
}

/// Lines of at most `width` columns, broken at spaces, else after `-`, `/` or `,`, else anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for piece in text.split_inclusive([' ', '-', '/', ',']) {
        let wide = columns(piece.trim_end());
        if used > 0 && used + wide > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if wide <= width {
            line.push_str(piece);
            used += columns(piece);
            continue;
        }
        for c in piece.chars() {
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
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_breaks_at_spaces_then_at_hyphens() {
        assert_eq!(
            wrapped("lease of kube-controller-manager", 16),
            ["lease of kube-", "controller-", "manager"]
        );
        assert_eq!(wrapped("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn columns_share_what_there_is() {
        let texts = ["a".repeat(9), "b".repeat(90), "c".repeat(90)];
        let widths = shares(60, &texts.each_ref().map(|t| vec![t]));
        assert_eq!(widths, [9, 25, 25]);
    }
}
