//! Names and amounts in scenarios: checked where they are read, so that an error has its line and column.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a program, a unit, a pod, a device: it needs no quoting in sh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Bytes, written `64MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

/// A share, written `2.5%`; kept in thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

/// Bits a second, written `10mbit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(u64);

/// A folder or device, written as an absolute path without `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(String);

impl Name {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Place {
    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Bytes {
    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Percent {
    /// In thousandths of a percent.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// So many of `n`, rounded to the nearest.
    #[must_use]
    pub const fn of(self, n: usize) -> usize {
        (n * self.0 as usize + 50_000) / 100_000
    }
}

impl BitRate {
    /// Bits a second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let right = |c: char| c.is_ascii_alphanumeric() || "._@:-".contains(c);
        if text.is_empty() || text.len() > 64 || text.starts_with('-') || !text.chars().all(right) {
            return Err(format!("`{text}` is not a name: 1 to 64 of letters, digits and . _ @ : -"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let right = |c: char| c.is_ascii_alphanumeric() || "/._@:+-".contains(c);
        if !text.starts_with('/') || !text.chars().all(right) || text.split('/').any(|part| part == "..") {
            return Err(format!(
                "`{text}` is not a path: it begins with /, has no .., and only letters, digits and / . _ @ : + -"
            ));
        }
        let trimmed = text.trim_end_matches('/');
        Ok(Self(if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() }))
    }
}

const BYTE_UNITS: [(u64, &str); 4] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
const BIT_UNITS: [(u64, &str); 4] =
    [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];

/// A whole number with one of the units, above 0.
fn in_units(text: &str, units: &[(u64, &str)], example: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not an amount: write {example}");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(_, u)| *u == unit).ok_or_else(wrong)?.0;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|n| *n > 0).ok_or_else(wrong)
}

fn with_unit(n: u64, units: &[(u64, &str)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (factor, unit) = units.iter().find(|(factor, _)| n.is_multiple_of(*factor)).unwrap_or(&(1, ""));
    write!(f, "{}{unit}", n / factor)
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        in_units(text, &BYTE_UNITS, "512KiB, 64MiB or 2GiB").map(Self)
    }
}

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        in_units(text, &BIT_UNITS, "256kbit, 10mbit or 1gbit").map(Self)
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a share: write 5% or 0.1%, above 0 and up to 100%");
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
        if whole.is_empty() || part.len() > 3 || !digits(whole) || !digits(part) {
            return Err(wrong());
        }
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let part: u32 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
        match whole.checked_mul(1_000).and_then(|w| w.checked_add(part)) {
            Some(n) if (1..=100_000).contains(&n) => Ok(Self(n)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_unit(self.0, &BYTE_UNITS, f)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_unit(self.0, &BIT_UNITS, f)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:03}", self.0 % 1_000);
        match part.trim_end_matches('0') {
            "" => write!(f, "{}%", self.0 / 1_000),
            part => write!(f, "{}.{part}%", self.0 / 1_000),
        }
    }
}

/// Read from and written as text, with a pattern in the schema.
macro_rules! as_text {
    ($type:ident, $pattern:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

as_text!(Name, "^[A-Za-z0-9._@:][A-Za-z0-9._@:-]{0,63}$");
as_text!(Place, "^/[A-Za-z0-9/._@:+-]*$");
as_text!(Bytes, "^[0-9]+(B|KiB|MiB|GiB)$");
as_text!(BitRate, "^[0-9]+(bit|kbit|mbit|gbit)$");
as_text!(Percent, "^[0-9]+(\\.[0-9]{1,3})?%$");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(n in 1_u64..u64::MAX / 2, share in 1_u32..=100_000) {
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            prop_assert_eq!(BitRate(n).to_string().parse(), Ok(BitRate(n)));
            prop_assert_eq!(Percent(share).to_string().parse(), Ok(Percent(share)));
        }

        #[test]
        fn no_text_makes_it_panic_and_no_name_needs_quoting(text in ".{0,80}") {
            let _ = (text.parse::<Bytes>(), text.parse::<BitRate>(), text.parse::<Percent>());
            let names = [
                text.parse::<Name>().map(|n| n.to_string()),
                text.parse::<Place>().map(|p| p.to_string()),
            ];
            for read in names.into_iter().flatten() {
                prop_assert!(!read.contains(|c: char| " '\"$`\\;&|<>()*?[]#~=%!{}".contains(c)), "{read}");
            }
        }
    }

    #[test]
    fn messages() {
        let wrong = [
            "-rf".parse::<Name>().unwrap_err(),
            "a b".parse::<Name>().unwrap_err(),
            "etc".parse::<Place>().unwrap_err(),
            "/a/../b".parse::<Place>().unwrap_err(),
            "0MiB".parse::<Bytes>().unwrap_err(),
            "99999999999GiB".parse::<Bytes>().unwrap_err(),
            "10Mbit".parse::<BitRate>().unwrap_err(),
            "0%".parse::<Percent>().unwrap_err(),
            "101%".parse::<Percent>().unwrap_err(),
            "5".parse::<Percent>().unwrap_err(),
        ];
        insta::assert_snapshot!(wrong.join("\n"));
    }
}
