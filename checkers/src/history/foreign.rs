//! Histories that other tools wrote: which format it is, and what they have in common.
//!
//! # Invariants
//! * The order of the events in the file is the clock, as these formats define it: an operation's time is its
//!   position, whatever time the file gives. (Knossos' own files have times that go back.)
//! * Only clients' operations are kept: what a nemesis did is counted in a note.

use super::jsonl::{self, ReadError};
use super::{Entry, Op, edn, porcupine_log};

/// A format of histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Ours.
    JsonLines,
    /// Maps as Jepsen, Knossos and Porcupine (its kv files) write them.
    Edn,
    /// Lines of a Jepsen log, as Porcupine keeps them of etcd.
    JepsenLog,
}

/// The operations of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operations {
    /// Which format it was in.
    pub format: Format,
    /// Invocations and completions.
    pub ops: Vec<Op>,
    /// The line of each of them, from 1.
    pub lines: Vec<u32>,
    /// What was tolerated or left out.
    pub notes: Vec<String>,
}

impl Operations {
    pub(super) const fn empty(format: Format) -> Self {
        Self { format, ops: Vec::new(), lines: Vec::new(), notes: Vec::new() }
    }

    /// Adds an operation, with its position as index and time.
    pub(super) fn push(&mut self, op: Op, line: u32) {
        let index = self.ops.len() as u64;
        self.ops.push(Op { index, time: index, ..op });
        self.lines.push(line);
    }
}

/// The format of a history, by its first characters.
#[must_use]
pub fn format(bytes: &[u8]) -> Format {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text {
        [b'{', rest @ ..] if rest.trim_ascii_start().starts_with(b"\"") => Format::JsonLines,
        [] | [b'{' | b'[' | b'(' | b';' | b'#' | b',', ..] => Format::Edn,
        _ => Format::JepsenLog,
    }
}

/// Reads the operations of a history in any of the formats.
///
/// # Errors
/// The first thing that is wrong, with line and column.
pub fn read_operations(bytes: &[u8]) -> Result<Operations, ReadError> {
    match format(bytes) {
        Format::JsonLines => {
            let history = jsonl::read(bytes)?;
            let mut operations = Operations { notes: history.notes, ..Operations::empty(Format::JsonLines) };
            for (entry, line) in history.entries.into_iter().zip(2..) {
                if let Entry::Op(op) = entry {
                    operations.ops.push(op);
                    operations.lines.push(line);
                }
            }
            Ok(operations)
        }
        Format::Edn => edn::read(bytes),
        Format::JepsenLog => porcupine_log::read(bytes),
    }
}

/// The text of a foreign history.
pub(super) fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|b| **b != b'\n').count();
        ReadError {
            line,
            column,
            message: "expected UTF-8 text, found a byte that is none".to_owned(),
            excerpt: String::new(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_told_by_the_first_characters() {
        let cases = [
            ("{\"rackrift_history\":1}", Format::JsonLines),
            ("{:process 0}", Format::Edn),
            ("\u{feff} ; comment\n[]", Format::Edn),
            ("({:process 0})", Format::Edn),
            ("", Format::Edn),
            ("INFO  jepsen.util - 4 :invoke :read nil", Format::JepsenLog),
        ];
        for (text, expected) in cases {
            assert_eq!(format(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_none_is_refused_with_its_place() {
        let e = read_operations(b"[\n \xff]").unwrap_err();
        assert_eq!((e.line, e.column), (2, 2));
    }
}
