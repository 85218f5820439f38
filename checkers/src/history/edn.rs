//! Histories as EDN: what Jepsen, Knossos and Porcupine write.
//!
//! A history is one vector or list of maps, or maps one after another:
//! `{:process 4, :type :invoke, :f :cas, :value [2 3]}`. `:key`, `:error`, `:time` and `:index` may be there; keywords
//! become strings, sets become lists. A process that is no number (`:nemesis`) is no client.
//!
//! Each map is read by `clojure-reader` on its own, not the whole collection at once, so that memory holds one map
//! beside the operations, and what was read stays read if the end is cut off.

use clojure_reader::edn::{self, Edn};
use clojure_reader::error::Code;

use super::foreign::{Format, Operations, text};
use super::jsonl::{ReadError, excerpt};
use super::{Op, OpType, Value};

/// Reads a history.
///
/// # Errors
/// The first thing that is wrong, with line and column.
pub fn read(bytes: &[u8]) -> Result<Operations, ReadError> {
    let whole = text(bytes)?;
    let mut reader = Reader { whole, at: 0, line: 1, counted: 0 };
    let mut operations = Operations::empty(Format::Edn);
    let mut others = 0u64;
    reader.skip_blanks();
    let close = match reader.rest().chars().next() {
        Some('[') => Some(']'),
        Some('(') => Some(')'),
        _ => None,
    };
    reader.at += usize::from(close.is_some());
    loop {
        reader.skip_blanks();
        let Some(next) = reader.rest().chars().next() else {
            if let Some(close) = close {
                operations.notes.push(format!("the closing {close} is missing: the history is cut off"));
            }
            break;
        };
        if Some(next) == close {
            reader.at += 1;
            reader.skip_blanks();
            if !reader.rest().is_empty() {
                return Err(reader.wrong(reader.at, "expected the end of the history, found more".to_owned()));
            }
            break;
        }
        let start = reader.at;
        let (form, rest) = match edn::read(reader.rest()) {
            Ok(read) => read,
            Err(e)
                if (e.code == Code::UnexpectedEOF && !closes(reader.rest()))
                    || reader.in_last_word(start + e.ptr.unwrap_or(0)) =>
            {
                operations
                    .notes
                    .push(format!("line {}: the last operation is cut off and was left out", reader.line()));
                break;
            }
            Err(e) => {
                let message = format!("expected an operation in EDN: {}", words(&e.code));
                return Err(reader.wrong(start + e.ptr.unwrap_or(0), message));
            }
        };
        match operation(form) {
            Ok(Some(op)) => operations.push(op, reader.line()),
            Ok(None) => others += 1,
            Err(message) => return Err(reader.wrong(start, message)),
        }
        reader.at = whole.len() - rest.len();
    }
    if others > 0 {
        operations.notes.push(format!("{others} events are not of clients and were left out"));
    }
    Ok(operations)
}

struct Reader<'t> {
    whole: &'t str,
    at: usize,
    line: u32,
    /// Line ends were counted up to here.
    counted: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.whole[self.at..]
    }

    /// Skips what EDN counts as blank, and comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            self.at += rest.len() - blank.len();
            if !blank.starts_with(';') {
                return;
            }
            self.at += blank.find('\n').unwrap_or(blank.len());
        }
    }

    /// The line on which the reader stands.
    fn line(&mut self) -> u32 {
        let passed = &self.whole.as_bytes()[self.counted..self.at];
        self.line += passed.iter().filter(|b| **b == b'\n').count() as u32;
        self.counted = self.at;
        self.line
    }

    /// Whether the text ends within the word that begins at `at`: half a keyword is wrong only because it is cut off.
    fn in_last_word(&self, at: usize) -> bool {
        let word = |b: &u8| !b.is_ascii_whitespace() && !b"()[]{}\",;".contains(b);
        self.whole.as_bytes().get(at..).is_some_and(|rest| rest.iter().all(word))
    }

    fn wrong(&self, at: usize, message: String) -> ReadError {
        let at = at.min(self.whole.len());
        let bytes = self.whole.as_bytes();
        let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |p| at + p);
        let column = at - start + 1;
        ReadError {
            line: 1 + bytes[..start].iter().filter(|b| **b == b'\n').count(),
            column,
            message,
            excerpt: excerpt(&bytes[start..end], column),
        }
    }
}

/// Whether the form that a text begins with is closed in it. The library says "unexpected end" of a map with a name
/// that has no value, too, wherever that stands.
fn closes(text: &str) -> bool {
    let (mut depth, mut string, mut escaped, mut comment) = (0u32, false, false, false);
    for c in text.bytes() {
        match c {
            b'\n' => comment = false,
            _ if comment => {}
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = true,
            b'"' => string = !string,
            _ if string => {}
            b';' => comment = true,
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' if depth <= 1 => return true,
            b'}' | b']' | b')' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// The operation that a form says, nothing if it is not of a client.
fn operation(form: Edn<'_>) -> Result<Option<Op>, String> {
    let Value::Map(fields) = value(form)? else {
        return Err("expected a map such as {:process 0, :type :invoke, :f :read, :value nil}".to_owned());
    };
    let (mut process, mut kind, mut f) = (None, None, None);
    let (mut key, mut client, mut error, mut argument) = (None, None, None, Value::Nil);
    for (name, value) in fields {
        match name.as_str() {
            "process" => process = Some(value),
            "type" => kind = Some(value),
            "f" => f = Some(value),
            "value" => argument = value,
            "key" => key = plain(value),
            "client" => client = plain(value),
            "error" => error = plain(value),
            _ => {}
        }
    }
    let process = match process {
        Some(Value::Int(n)) => {
            u64::try_from(n).map_err(|_| format!("expected a process from 0, found {n}"))?
        }
        Some(Value::Str(_) | Value::Nil) => return Ok(None),
        _ => return Err("expected a number under :process".to_owned()),
    };
    let kind = match kind.as_ref().and_then(Value::as_str) {
        Some("invoke") => OpType::Invoke,
        Some("ok") => OpType::Ok,
        Some("fail") => OpType::Fail,
        Some("info") => OpType::Info,
        _ => return Err("expected :invoke, :ok, :fail or :info under :type".to_owned()),
    };
    let Some(Value::Str(f)) = f else { return Err("expected a keyword under :f".to_owned()) };
    Ok(Some(Op { index: 0, time: 0, process, kind, f, key, client, value: argument, error }))
}

/// A text for what may be any value.
fn plain(value: Value) -> Option<String> {
    match value {
        Value::Nil => None,
        Value::Str(text) => Some(text),
        Value::Int(n) => Some(n.to_string()),
        other => serde_json::to_string(&other).ok(),
    }
}

/// A form as a value.
pub(super) fn value(form: Edn<'_>) -> Result<Value, String> {
    // A form frees its children step by step when dropped, so they are taken out of a reference, not moved.
    from(&form)
}

fn from(form: &Edn<'_>) -> Result<Value, String> {
    Ok(match form {
        Edn::Nil => Value::Nil,
        Edn::Bool(b) => Value::Bool(*b),
        Edn::Int(i) => Value::Int(*i),
        Edn::Str(s) | Edn::Key(s) | Edn::Symbol(s) => Value::Str(s.clone().into_owned()),
        Edn::Char(c) => Value::Str(c.to_string()),
        Edn::Vector(items) | Edn::List(items) => {
            Value::List(items.iter().map(from).collect::<Result<_, _>>()?)
        }
        Edn::Set(items) => Value::List(items.iter().map(from).collect::<Result<_, _>>()?),
        Edn::Map(pairs) => {
            let pair =
                |(name, of): (&Edn<'_>, &Edn<'_>)| Ok((plain(from(name)?).unwrap_or_default(), from(of)?));
            Value::Map(pairs.iter().map(pair).collect::<Result<_, String>>()?)
        }
        // A record, `#jepsen.history.Op{...}`, is its map.
        Edn::Tagged(_, inner) => from(inner)?,
        other => return Err(format!("expected whole numbers, strings and collections, found {other}")),
    })
}

fn words(code: &Code) -> String {
    match code {
        Code::UnexpectedEOF => "a name without a value in a map".to_owned(),
        Code::HashMapDuplicateKey => "a key stands in a map twice".to_owned(),
        Code::SetDuplicateKey => "a value stands in a set twice".to_owned(),
        Code::InvalidNumber => "not a number".to_owned(),
        Code::InvalidEscape => "an escape that no string has".to_owned(),
        Code::InvalidKeyword => "not a keyword".to_owned(),
        Code::UnmatchedDelimiter(c) => format!("a {c} that closes nothing"),
        Code::NoFloatFeature => "a fraction, but values are whole numbers".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Writes a history: one map a line, as Jepsen does.
#[must_use]
pub fn write(ops: &[Op]) -> String {
    let mut out = String::with_capacity(100 * ops.len());
    for op in ops {
        let kind = match op.kind {
            OpType::Invoke => ":invoke",
            OpType::Ok => ":ok",
            OpType::Fail => ":fail",
            OpType::Info => ":info",
        };
        out.push_str(&format!(
            "{{:index {}, :time {}, :process {}, :type {kind}, :f ",
            op.index, op.time, op.process
        ));
        push_word(&mut out, &op.f);
        for (name, text) in [(":key", &op.key), (":client", &op.client), (":error", &op.error)] {
            if let Some(text) = text {
                out.push_str(&format!(", {name} "));
                push_string(&mut out, text);
            }
        }
        out.push_str(", :value ");
        push_value(&mut out, &op.value);
        out.push_str("}\n");
    }
    out
}

fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Str(s) => push_string(out, s),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                push_value(out, item);
            }
            out.push(']');
        }
        Value::Map(pairs) => {
            out.push('{');
            for (i, (name, of)) in pairs.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                push_word(out, name);
                out.push(' ');
                push_value(out, of);
            }
            out.push('}');
        }
    }
}

/// A keyword where the word can be one, else a string.
fn push_word(out: &mut String, word: &str) {
    let fits = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if fits {
        out.push(':');
        out.push_str(word);
    } else {
        push_string(out, word);
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_in_each_shape_that_tools_write() {
        let map = "{:process 3, :type :invoke, :f :cas, :value [2 nil], :time 9 :index 4}";
        let shapes = [
            format!("[{map}\n {map}]"),
            format!("; a comment\n({map},{map})"),
            format!("{map}\n{map}\n"),
            format!("#jepsen.history.Op{map} {{:process :nemesis, :type :info, :f :kill}} {map}"),
        ];
        for shape in shapes {
            let read = read(shape.as_bytes()).unwrap();
            assert_eq!(read.ops.len(), 2, "{shape}");
            let op = &read.ops[1];
            assert_eq!(
                (op.index, op.time, op.process, op.kind, op.f.as_str()),
                (1, 1, 3, OpType::Invoke, "cas")
            );
            assert_eq!(op.value, Value::List(vec![Value::Int(2), Value::Nil]));
        }
        assert!(read(b"").unwrap().ops.is_empty());
    }

    #[test]
    fn what_is_cut_off_is_read_up_to_there() {
        let map = "{:process 3, :type :ok, :f :read, :value {:a \"x]\"}}";
        let text = format!("[{map}\n {map}]");
        for cut in 1..text.len() {
            let got = read(&text.as_bytes()[..cut]).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            let whole = usize::from(cut > map.len()) + usize::from(cut + 1 >= text.len());
            assert_eq!((got.ops.len(), got.notes.len()), (whole, 1), "cut at {cut}: {:?}", got.notes);
        }
    }

    #[test]
    fn errors_name_line_column_and_what_was_expected() {
        let ok = "{:process 3, :type :ok, :f :read, :value 1}";
        let cases = [
            format!("[{ok}\n {ok}] {ok}"),
            format!("[{ok}\n  {{:process 3, :type :done, :f :read}}]"),
            format!("[{ok}\n  {{:process -3, :type :ok, :f :read}}]"),
            format!("[{ok}\n  {{:process 3, :type :ok}}]"),
            format!("[{ok}\n 7]"),
            format!("[{ok}\n  {{:process 3, :type :ok, :type :ok, :f :read}}]"),
            format!("[{ok}\n  {{:process 3, :type :ok, :f}}\n {ok}]"),
            format!("[{ok}\n  {{:process 3, :type :ok, :f :read, :value 1.5}}]"),
            format!("[{ok}\n  {{:process 3, :type :ok, :f :read, :value [1)}}]"),
        ];
        let said: Vec<String> = cases.iter().map(|c| read(c.as_bytes()).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
