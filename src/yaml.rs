//! YAML into typed values, with errors that say where: file, line, column, and the line itself.
//!
//! # Invariants
//! * A key or field written twice, an unknown field and a wrong type are refused, never guessed at.
//! * Files over [`LARGEST`] bytes are refused before they are parsed.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::Spanned;

/// The largest file that is read, in bytes: far above any lab, far below what would hurt.
pub const LARGEST: u64 = 1 << 20;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Flaw {
    /// The file, or the name of what is embedded.
    pub origin: String,
    /// Line and column, from 1; none where the file as a whole is meant.
    pub place: Option<(usize, usize)>,
    /// The line itself.
    pub line: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub advice: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some((line, column)) = self.place {
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            let before = " ".repeat(column.saturating_sub(1));
            write!(f, "\n {number} | {}\n {gutter} | {before}^", self.line)?;
        }
        if !self.advice.is_empty() {
            write!(f, "\n{}", self.advice)?;
        }
        Ok(())
    }
}

/// A file's text together with its name: what errors are made from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file, or the name of what is embedded.
    pub origin: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Source<'_> {
    /// Parses the text.
    ///
    /// # Errors
    /// The first place that does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Flaw> {
        serde_saphyr::from_str_with_options(self.text, serde_saphyr::options! { strict_booleans: true })
            .map_err(|e| {
                let place = e.location().map(|l| (number(l.line()), number(l.column())));
                let (message, advice) = self.said(e.without_snippet());
                self.flaw_at(place, message, advice)
            })
    }

    /// The parser's sentence without the place, which [`Flaw`] shows itself; and advice where it has none.
    fn said(&self, error: &serde_saphyr::Error) -> (String, String) {
        if self.text.trim().is_empty() {
            return ("is empty".to_owned(), "Is it the right file?".to_owned());
        }
        let said = error.to_string();
        let first = said.lines().next().unwrap_or("is malformed");
        let message = first.rsplit_once(" at line ").map_or(first, |(message, _)| message);
        match message.strip_prefix("duplicate mapping key: ").and_then(|m| m.split_once(',')) {
            Some((key, _)) => (format!("`{key}` is written twice"), "Remove one of them.".to_owned()),
            None => (message.to_owned(), String::new()),
        }
    }

    /// A flaw of a value that was parsed.
    #[must_use]
    pub fn flaw<T>(&self, value: &Spanned<T>, message: String, advice: impl Into<String>) -> Flaw {
        let place = (number(value.referenced.line()), number(value.referenced.column()));
        self.flaw_at(Some(place).filter(|(line, _)| *line > 0), message, advice.into())
    }

    /// A flaw of the file as a whole.
    #[must_use]
    pub fn flaw_of_all(&self, message: impl Into<String>, advice: impl Into<String>) -> Flaw {
        self.flaw_at(None, message.into(), advice.into())
    }

    fn flaw_at(&self, place: Option<(usize, usize)>, message: String, advice: String) -> Flaw {
        let line =
            place.and_then(|(line, _)| self.text.lines().nth(line.saturating_sub(1))).unwrap_or_default();
        Flaw { origin: self.origin.to_owned(), place, line: line.to_owned(), message, advice }
    }
}

fn number(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Reads a file that is to be parsed.
///
/// # Errors
/// Why it can't be read: absent, not text, too large.
pub fn read(path: &Path) -> Result<String, Flaw> {
    let origin = path.display().to_string();
    let whole = Source { origin: &origin, text: "" };
    let wrong = |message: String, advice: &str| whole.flaw_of_all(message, advice);
    let size = std::fs::metadata(path).map_err(|e| wrong(format!("cannot be read: {e}"), ""))?.len();
    if size > LARGEST {
        return Err(wrong(
            format!("{size} bytes are more than the {LARGEST} that are read"),
            "Is it the right file?",
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| wrong(format!("cannot be read: {e}"), ""))?;
    String::from_utf8(bytes).map_err(|e| {
        wrong(format!("is not UTF-8 text: byte {}", e.utf8_error().valid_up_to()), "Is it the right file?")
    })
}
