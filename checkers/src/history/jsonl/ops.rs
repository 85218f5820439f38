//! Lines of operations, read the short way.
//!
//! Nearly all lines of a long history are operations that our own writer wrote: fields in one order, no blanks, few
//! escapes. They are read here in one pass, the end of the line included. Whatever else a line may be, the answer is
//! "not here", and the general reader takes it from its start: so this can only be faster, never different.

use crate::history::{Op, OpType, Value};

/// Values nested deeper are left to the general reader, which has its own limit.
const DEPTH: u32 = 32;

/// The operation on the line that `bytes` begin with, and how many bytes the line takes, its end included.
pub(super) fn op(bytes: &[u8]) -> Option<(Op, usize)> {
    let mut c = Cursor { bytes, at: 0 };
    c.literal(b"{\"op\":{\"index\":")?;
    let index = c.number()?;
    c.literal(b",\"time\":")?;
    let time = c.number()?;
    c.literal(b",\"process\":")?;
    let process = c.number()?;
    c.literal(b",\"type\":")?;
    let kind = match c.string()? {
        "invoke" => OpType::Invoke,
        "ok" => OpType::Ok,
        "fail" => OpType::Fail,
        "info" => OpType::Info,
        _ => return None,
    };
    c.literal(b",\"f\":")?;
    let f = c.string()?.to_owned();
    let key = c.optional(b",\"key\":")?;
    let client = c.optional(b",\"client\":")?;
    c.literal(b",\"value\":")?;
    let value = c.value(0)?;
    let error = c.optional(b",\"error\":")?;
    c.literal(b"}}\n")?;
    Some((Op { index, time, process, kind, f, key, client, value, error }, c.at))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(text).then(|| self.at += text.len())
    }

    /// A string after a name, if the name is there; nothing at all if the string is not a plain one.
    fn optional(&mut self, name: &[u8]) -> Option<Option<String>> {
        match self.literal(name) {
            Some(()) => Some(Some(self.string()?.to_owned())),
            None => Some(None),
        }
    }

    /// A whole number without sign, as JSON writes it.
    fn number(&mut self) -> Option<u64> {
        let start = self.at;
        let mut number = 0u64;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        let digits = &self.bytes[start..self.at];
        (!digits.is_empty() && (digits.len() == 1 || digits[0] != b'0')).then_some(number)
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'a str> {
        self.literal(b"\"")?;
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20)?;
        self.at += length + 1;
        if rest[length] != b'"' {
            return None;
        }
        std::str::from_utf8(&rest[..length]).ok()
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        Some(match self.peek()? {
            b'n' => self.literal(b"null").map(|()| Value::Nil)?,
            b't' => self.literal(b"true").map(|()| Value::Bool(true))?,
            b'f' => self.literal(b"false").map(|()| Value::Bool(false))?,
            b'"' => Value::Str(self.string()?.to_owned()),
            b'[' => Value::List(self.items(b']', |c| c.value(depth + 1))?),
            b'{' => Value::Map(self.items(b'}', |c| {
                let name = c.string()?.to_owned();
                c.literal(b":")?;
                Some((name, c.value(depth + 1)?))
            })?),
            b'-' => {
                self.at += 1;
                // Minus zero is a fraction to the general reader.
                let number = self.number().filter(|&n| n != 0)?;
                Value::Int(0i64.checked_sub_unsigned(number)?)
            }
            _ => Value::Int(i64::try_from(self.number()?).ok()?),
        })
    }

    /// What stands between brackets, the opening one of which comes next.
    fn items<T>(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek()? == close {
            self.at += 1;
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            let next = self.peek()?;
            self.at += 1;
            match next {
                b',' => {}
                _ if next == close => return Some(items),
                _ => return None,
            }
        }
    }
}
