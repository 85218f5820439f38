//! A history as JSON Lines: bytes to entries and back.
//!
//! # Invariants
//! * The first line is the [`Header`]; entry `i` stands on line `i + 2`. So an empty line between others is an error,
//!   not skipped: every later line number in a witness would be off.
//! * What is written can be read, and gives the same entries.
//! * A history cut off by a killed recorder is read up to there, with a note. Only a last line that *ends too soon*
//!   counts as cut off; one that is wrong is an error, wherever it stands.
//!
//! # Decisions
//! * A line ends with `\n` or `\r\n`; a `\r` alone ends no line and is named in the error.
//! * A byte order mark at the start is skipped, with a note: some editors add one.
//! * Zero bytes at the end are cut off, with a note: a file system leaves them when the machine itself crashed.
//! * Empty lines at the end are ignored.
//!
//! Large histories are cut at line ends and read on two threads, since reading costs fifty times as much as checking.

mod ops;

use super::{Entry, Header};

/// The version of the format.
pub const FORMAT: u32 = 1;

/// Histories larger than this, in bytes, are read on two threads.
const LARGE: usize = 4 << 20;

/// How much of a wrong line is shown, in characters before and after the place.
const SHOWN: usize = 60;

/// A history as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The first line.
    pub header: Header,
    /// The other lines; entry `i` stands on line `i + 2`.
    pub entries: Vec<Entry>,
    /// What was tolerated: a line cut off, a byte order mark.
    pub notes: Vec<String>,
}

/// Where and why a history cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}{}", shown(.excerpt))]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in bytes from 1.
    pub column: usize,
    /// What was expected, and what is there.
    pub message: String,
    /// The line itself, shortened around the column; empty if there is none.
    pub excerpt: String,
}

fn shown(excerpt: &str) -> String {
    if excerpt.is_empty() { String::new() } else { format!("\n    {excerpt}") }
}

/// Reads a history.
///
/// # Errors
/// The first line that is wrong, with its column.
pub fn read(bytes: &[u8]) -> Result<History, ReadError> {
    let mut notes = Vec::new();
    let bytes = trimmed(bytes, &mut notes);
    let end = bytes.iter().position(|&b| b == b'\n').unwrap_or(bytes.len());
    let header = header(&bytes[..end])?;
    let body = bytes.get(end + 1..).unwrap_or_default();
    let (whole, last) = match body.iter().rposition(|&b| b == b'\n') {
        Some(newline) => body.split_at(newline + 1),
        None => (&body[..0], body),
    };
    let mut entries = lines(whole)?;
    if !last.is_empty() {
        match serde_json::from_slice(last) {
            Ok(entry) => entries.push(entry),
            Err(e) if e.is_eof() => notes.push(format!(
                "line {} is cut off after {} bytes and was left out",
                entries.len() + 2,
                last.len()
            )),
            Err(e) => return Err(wrong(last, entries.len() + 2, &e)),
        }
    }
    Ok(History { header, entries, notes })
}

/// Without what is tolerated at either end.
fn trimmed<'a>(bytes: &'a [u8], notes: &mut Vec<String>) -> &'a [u8] {
    let mut rest = bytes;
    if let Some(after) = rest.strip_prefix(b"\xef\xbb\xbf") {
        notes.push("a byte order mark at the start was skipped".to_owned());
        rest = after;
    }
    let zeros = rest.iter().rev().take_while(|&&b| b == 0).count();
    if zeros > 0 {
        notes.push(format!("{zeros} zero bytes at the end were left out: the machine crashed while writing"));
        rest = &rest[..rest.len() - zeros];
    }
    let content = rest.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(0, |p| p + 1);
    // The last line keeps its end, which says that it is whole.
    let end = rest[content..].iter().position(|&b| b == b'\n').map_or(content, |p| content + p + 1);
    &rest[..end]
}

fn header(line: &[u8]) -> Result<Header, ReadError> {
    let expected = r#"expected the header {"rackrift_history": 1, "origin": ..., "run": ...}"#;
    if line.iter().all(u8::is_ascii_whitespace) {
        let message = format!("{expected}, found nothing");
        return Err(ReadError { line: 1, column: 1, message, excerpt: String::new() });
    }
    let header: Header = serde_json::from_slice(line).map_err(|e| {
        let mut error = wrong(line, 1, &e);
        error.message = format!("{expected}: {}", error.message);
        error
    })?;
    if header.rackrift_history != FORMAT {
        return Err(ReadError {
            line: 1,
            column: 1,
            message: format!(
                "expected format {FORMAT}, found {}: read it with the rackrift that wrote it",
                header.rackrift_history
            ),
            excerpt: excerpt(line, 1),
        });
    }
    Ok(header)
}

/// Reads whole lines, the first of which is line 2.
fn lines(body: &[u8]) -> Result<Vec<Entry>, ReadError> {
    if body.len() < LARGE {
        return some_lines(body, body.len()).map_err(|e| ReadError { line: e.line + 2, ..e });
    }
    let half = body.len() / 2;
    let cut = body[half..].iter().position(|&b| b == b'\n').map_or(body.len(), |p| half + p + 1);
    let (first, second) = body.split_at(cut);
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| some_lines(second, second.len()));
        // Room for both halves: growing later would copy the first.
        (some_lines(first, body.len()), second.join())
    });
    let mut entries = first.map_err(|e| ReadError { line: e.line + 2, ..e })?;
    let second = second.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let before = entries.len() + 2;
    entries.append(&mut second.map_err(|e| ReadError { line: e.line + before, ..e })?);
    Ok(entries)
}

/// Reads whole lines, with room for as many as `room` bytes hold; the line of an error counts from 0 here.
fn some_lines(body: &[u8], room: usize) -> Result<Vec<Entry>, ReadError> {
    // Lines of a history are 100 to 250 bytes long; memory that is not written to costs nothing.
    let mut entries = Vec::with_capacity(room / 100);
    let mut rest = body;
    while !rest.is_empty() {
        if let Some((op, length)) = ops::op(rest) {
            entries.push(Entry::Op(op));
            rest = &rest[length..];
            continue;
        }
        let end = line_end(rest);
        let (line, after) = (&rest[..end], &rest[(end + 1).min(rest.len())..]);
        entries.push(serde_json::from_slice(line).map_err(|e| wrong(line, entries.len(), &e))?);
        rest = after;
    }
    Ok(entries)
}

/// The position of the first line end, or the length.
fn line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|&b| b == b'\n').unwrap_or(bytes.len())
}

/// The error of the JSON reader in terms of the file.
fn wrong(line: &[u8], number: usize, error: &serde_json::Error) -> ReadError {
    if line.iter().all(u8::is_ascii_whitespace) {
        return ReadError {
            line: number,
            column: 1,
            message: "expected an entry, found an empty line: delete it".to_owned(),
            excerpt: String::new(),
        };
    }
    let text = error.to_string();
    let place = text.rfind(" at line ").unwrap_or(text.len());
    let mut message = text[..place].to_owned();
    let inside = line.strip_suffix(b"\r").unwrap_or(line);
    if error.is_eof() {
        message = format!("expected the rest of the entry, found the end of the line ({message})");
    }
    // The reader's own line counts every "\n" it passes, and a line has none: its column is the line's.
    let mut column = error.column().max(1);
    if let Some(lone) = inside.iter().position(|&b| b == b'\r').filter(|&p| p < column) {
        column = lone + 1;
        message = "expected lines that end with \\n, found a lone carriage return".to_owned();
    }
    ReadError { line: number, column, message, excerpt: excerpt(line, column) }
}

/// The part of a line around a column.
pub(super) fn excerpt(line: &[u8], column: usize) -> String {
    let at = (column - 1).min(line.len());
    let (from, to) = (at.saturating_sub(SHOWN), (at + SHOWN).min(line.len()));
    let text: String = String::from_utf8_lossy(&line[from..to])
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    let (before, after) = (if from > 0 { "… " } else { "" }, if to < line.len() { " …" } else { "" });
    format!("{before}{text}{after}")
}

/// Appends the header's line.
pub fn push_header(out: &mut Vec<u8>, header: &Header) {
    push(out, header);
}

/// Appends the line of an entry.
pub fn push_entry(out: &mut Vec<u8>, entry: &Entry) {
    push(out, entry);
}

fn push(out: &mut Vec<u8>, line: &impl serde::Serialize) {
    serde_json::to_writer(&mut *out, line)
        .expect("because a vector takes every write, and headers and entries have string keys only");
    out.push(b'\n');
}

/// Writes a whole history.
#[must_use]
pub fn write(header: &Header, entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(160 * (entries.len() + 1));
    push_header(&mut out, header);
    for entry in entries {
        push_entry(&mut out, entry);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Note, Op, OpType, Value};

    const HEAD: &str = "{\"rackrift_history\":1,\"origin\":\"2026-01-01T00:00:00Z\",\"run\":\"r\"}\n";
    const NOTE: &str = "{\"note\":{\"time\":5,\"text\":\"hello\"}}\n";

    fn with(lines: &str) -> Result<History, ReadError> {
        read(format!("{HEAD}{lines}").as_bytes())
    }

    #[test]
    fn a_history_cut_off_anywhere_is_read_up_to_there() {
        let text = format!("{HEAD}{NOTE}{}", NOTE.replace("hello", "höllo"));
        let second = HEAD.len() + NOTE.len();
        for cut in HEAD.len()..text.len() {
            let got = read(&text.as_bytes()[..cut]).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            let whole = usize::from(cut + 1 >= second) + usize::from(cut + 1 >= text.len());
            assert_eq!(got.entries.len(), whole, "cut at {cut}");
            let clean = cut == HEAD.len() || cut + 1 == second || cut == second || cut + 1 == text.len();
            assert_eq!(got.notes.is_empty(), clean, "cut at {cut}: {:?}", got.notes);
        }
        for cut in 0..HEAD.len() - 1 {
            assert!(read(&text.as_bytes()[..cut]).is_err(), "a header cut at {cut} is no header");
        }
    }

    #[test]
    fn what_is_tolerated_is_said() {
        let got = read(format!("\u{feff}{HEAD}{NOTE}\n \r\n\0\0\0").as_bytes()).unwrap();
        assert_eq!(got.entries.len(), 1);
        insta::assert_snapshot!(got.notes.join("\n"), @r"
        a byte order mark at the start was skipped
        3 zero bytes at the end were left out: the machine crashed while writing
        ");
        let crlf = format!("{HEAD}{NOTE}").replace('\n', "\r\n");
        assert_eq!(read(crlf.as_bytes()).unwrap().entries.len(), 1);
        insta::assert_snapshot!(with("{\"note\":{\"ti").unwrap().notes.join("\n"), @"line 2 is cut off after 12 bytes and was left out");
    }

    #[test]
    fn errors_name_line_column_and_what_was_expected() {
        let op = r#"{"op":{"index":0,"time":1,"process":0,"type":"done","f":"read"}}"#;
        let cases = [
            "",
            "{\"rackrift_history\":2,\"origin\":\"\",\"run\":\"r\"}\n",
            "{\"note\":{\"time\":5,\"text\":\"no header\"}}\n",
        ];
        let mut said: Vec<String> =
            cases.iter().map(|c| read(c.as_bytes()).unwrap_err().to_string()).collect();
        let lines = [
            format!("{NOTE}\n{NOTE}"),
            format!("{NOTE}{op}\n"),
            format!("{NOTE}{}", NOTE.replace('\n', "\r") + NOTE),
            format!("{NOTE}{{\"nota\":{{}}}}\n"),
            format!("{NOTE}{{\"note\":{{\"time\":1.5,\"text\":\"\"}}}}\n"),
            format!("{NOTE}{{\"note\":{{\"text\":\"\"}}}}"),
            format!("{NOTE}{{\"note\":{{\"ti\n"),
        ];
        said.extend(lines.iter().map(|l| with(l).unwrap_err().to_string()));
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn a_large_history_is_read_in_order_and_its_error_has_the_right_line() {
        let header = Header { rackrift_history: 1, origin: String::new(), run: "r".into() };
        let entries: Vec<Entry> = (0..60_000u64)
            .map(|index| {
                Entry::Op(Op {
                    index,
                    time: index * 10,
                    process: index % 7,
                    kind: OpType::Invoke,
                    f: "read".into(),
                    key: Some("lab/lease-0".into()),
                    client: None,
                    value: Value::Map(vec![("version".into(), Value::Int(7))]),
                    error: None,
                })
            })
            .collect();
        let mut bytes = write(&header, &entries);
        assert!(bytes.len() > LARGE);
        assert_eq!(read(&bytes).unwrap().entries, entries);
        let line = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(49_999).unwrap().0;
        bytes[line + 3] = b'!';
        assert_eq!(read(&bytes).unwrap_err().line, 50_001);
    }

    /// The short way is never different: each line alone, and with each byte of it changed.
    #[test]
    fn the_short_way_reads_what_the_general_reader_reads() {
        let lines = [
            r#"{"op":{"index":0,"time":12,"process":3,"type":"invoke","f":"cas","key":"lab/lease-0","client":"a1","value":{"expected":7,"id":"w5"},"error":"late: x"}}"#,
            r#"{"op":{"index":18446744073709551615,"time":0,"process":3,"type":"info","f":"ü","value":[-1,[],{},-9223372036854775808,null,true,false]}}"#,
        ];
        for line in lines {
            for at in 0..line.len() {
                for byte in *b"0-9\"\\,:{}[]ntfe.\x01\xff A" {
                    let mut changed = line.as_bytes().to_vec();
                    changed[at] = byte;
                    let general: Option<Entry> = serde_json::from_slice(&changed).ok();
                    changed.push(b'\n');
                    if let Some((op, length)) = ops::op(&changed) {
                        assert_eq!((Some(Entry::Op(op)), length), (general, changed.len()), "{changed:?}");
                    }
                }
            }
            let whole = format!("{line}\n");
            let entry: Entry = serde_json::from_str(line).unwrap();
            assert_eq!(
                ops::op(whole.as_bytes()).map(|(op, _)| Entry::Op(op)),
                Some(entry),
                "the short way is taken"
            );
        }
    }

    #[test]
    fn a_note_survives() {
        let entry = Entry::Note(Note { time: 1, text: "line\nwith \u{1} controls".into() });
        let header = Header { rackrift_history: 1, origin: "o".into(), run: "r".into() };
        let got = read(&write(&header, std::slice::from_ref(&entry))).unwrap();
        assert_eq!((got.header, got.entries), (header, vec![entry]));
    }
}
