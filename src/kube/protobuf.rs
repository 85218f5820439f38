//! Reads the protobuf wire format: fields of a message, nothing more.
//!
//! A reader of our own, not a code generator, because we need two messages with a dozen fields, and what cannot be
//! understood must be skipped, not refused.

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// Wire types 0, 1 and 5: a number.
    Number(u64),
    /// Wire type 2: bytes, a string, or a message.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The number, if it is one.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Number(n) => Some(n),
            Self::Bytes(_) => None,
        }
    }

    /// The bytes, if it has some.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Number(_) => None,
            Self::Bytes(b) => Some(b),
        }
    }

    /// The string, if it has bytes; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(self) -> Option<String> {
        self.bytes().map(|b| String::from_utf8_lossy(b).into_owned())
    }
}

/// The fields of a message in order, as (number, value); ends with an error at the first byte that cannot be read.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// The message is cut short or is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a protobuf message, or cut short")]
pub struct Malformed;

/// The fields of `message`.
#[must_use]
pub const fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    /// Seven bits a byte, least first, at most ten bytes.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wire_types() {
        // The encodings that the format's own documentation shows: 150 in field 1, "testing" in field 2.
        let all = |m: &'static [u8]| fields(m).collect::<Vec<_>>();
        assert_eq!(all(b"\x08\x96\x01"), [Ok((1, Field::Number(150)))]);
        assert_eq!(all(b"\x12\x07testing"), [Ok((2, Field::Bytes(b"testing")))]);
        assert_eq!(all(b"\x0d\x01\x00\x00\x00"), [Ok((1, Field::Number(1)))]);
        assert_eq!(all(b"\x12\x07test"), [Err(Malformed)]);
        assert_eq!(all(b"\x0b"), [Err(Malformed)]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_all_end(bytes: Vec<u8>) {
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }

        #[test]
        fn a_number_is_read_back(n: u64) {
            let mut m = vec![0x08];
            let mut rest = n;
            while rest >= 0x80 {
                m.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            m.push(rest as u8);
            prop_assert_eq!(fields(&m).collect::<Vec<_>>(), vec![Ok((1, Field::Number(n)))]);
        }
    }
}
