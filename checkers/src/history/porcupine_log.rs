//! Histories as lines of a Jepsen log, as Porcupine keeps them of etcd:
//!
//! ```text
//! INFO  jepsen.util - 4    :invoke    :cas    [1 2]
//! ```
//!
//! What stands before the process number is not looked at, so other levels and names do as well.

use clojure_reader::edn as clojure;

use super::foreign::{Format, Operations, text};
use super::jsonl::{ReadError, excerpt};
use super::{Op, OpType, Value, edn};

/// Reads a history.
///
/// # Errors
/// The first line that is wrong, with its column.
pub fn read(bytes: &[u8]) -> Result<Operations, ReadError> {
    let text = text(bytes)?;
    let mut operations = Operations::empty(Format::JepsenLog);
    let mut others = 0u64;
    let whole = text.ends_with('\n');
    let mut lines = text.lines().zip(1u32..).peekable();
    while let Some((line, number)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        match operation(line) {
            Ok(Some(op)) => operations.push(op, number),
            Ok(None) => others += 1,
            Err(_) if !whole && lines.peek().is_none() => {
                operations.notes.push(format!("line {number} is cut off and was left out"));
            }
            Err((column, message)) => {
                let excerpt = excerpt(line.as_bytes(), column);
                return Err(ReadError { line: number as usize, column, message, excerpt });
            }
        }
    }
    if others > 0 {
        operations.notes.push(format!("{others} events are not of clients and were left out"));
    }
    Ok(operations)
}

/// The operation of a line, nothing if it is not of a client; or the column of what is wrong.
fn operation(line: &str) -> Result<Option<Op>, (usize, String)> {
    let column = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize + 1;
    let Some((_, rest)) = line.split_once(" - ") else {
        return Err((1, "expected `INFO  jepsen.util - PROCESS :TYPE :FUNCTION VALUE`".to_owned()));
    };
    let (process, rest) = word(rest);
    let (kind, rest) = word(rest);
    let (f, rest) = word(rest);
    let kind = match kind {
        ":invoke" => OpType::Invoke,
        ":ok" => OpType::Ok,
        ":fail" => OpType::Fail,
        ":info" => OpType::Info,
        _ => return Err((column(kind), "expected :invoke, :ok, :fail or :info".to_owned())),
    };
    let Some(f) = f.strip_prefix(':') else {
        return Err((column(f), "expected a function such as :read".to_owned()));
    };
    if process.starts_with(':') {
        return Ok(None);
    }
    let process =
        process.parse().map_err(|_| (column(process), "expected the number of a process".to_owned()))?;
    let rest = rest.trim();
    let value = if rest.is_empty() {
        Value::Nil
    } else {
        clojure::read(rest)
            .map_err(|_| "expected a value in EDN".to_owned())
            .and_then(|(form, _)| edn::value(form))
            .map_err(|message| (column(rest), message))?
    };
    // These logs put the reason where the value was.
    let (value, error) = match (kind, value) {
        (OpType::Fail | OpType::Info, Value::Str(reason)) => (Value::Nil, Some(reason)),
        (_, value) => (value, None),
    };
    Ok(Some(Op { index: 0, time: 0, process, kind, f: f.to_owned(), key: None, client: None, value, error }))
}

fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_operations() {
        let log = "INFO  jepsen.util - 4\t:invoke\t:cas\t[1 2]\n\nINFO  jepsen.util - 4 :info :cas :timed-out\n\
                   INFO jepsen.util - :nemesis :info :start nil\nINFO  jepsen.util - 5\t:ok\t:read\tni";
        let read = read(log.as_bytes()).unwrap();
        assert_eq!(read.lines, [1, 3, 5]);
        assert_eq!(read.ops[0].value, Value::List(vec![Value::Int(1), Value::Int(2)]));
        assert_eq!((read.ops[1].kind, read.ops[1].error.as_deref()), (OpType::Info, Some("timed-out")));
        assert_eq!(read.notes, ["1 events are not of clients and were left out"]);
    }

    #[test]
    fn errors_name_line_column_and_what_was_expected() {
        let said: Vec<String> = [
            "hello\n",
            "INFO x - 4 :done :read 1\n",
            "INFO x - 4 :ok read 1\n",
            "INFO x - x :ok :read 1\n",
            "INFO x - 4 :ok :read [1\n",
        ]
        .iter()
        .map(|log| read(log.as_bytes()).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(said.join("\n"));
        assert_eq!(read(b"INFO x - 4 :ok :re").unwrap().ops.len(), 1);
        assert_eq!(read(b"INFO x - 4 :o").unwrap().notes, ["line 1 is cut off and was left out"]);
    }
}
