//! A length of time as people write it: `250ms`, `15s`, `2m`, `1h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time; whole milliseconds, at most 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(Duration);

const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Length {
    /// The length as a [`Duration`].
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a length of time: write 250ms, 15s, 2m or 1h");
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let length = Duration::from_millis(number.saturating_mul(factor));
        if length > LONGEST {
            return Err(format!("`{text}` is longer than 24h"));
        }
        Ok(Self(length))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        for (factor, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
            if ms >= factor && ms.is_multiple_of(factor) {
                return write!(f, "{}{unit}", ms / factor);
            }
        }
        write!(f, "{ms}ms")
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Length {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(ms in 0_u64..=86_400_000) {
            let length = Length(Duration::from_millis(ms));
            prop_assert_eq!(length.to_string().parse::<Length>(), Ok(length));
        }

        #[test]
        fn garbage_is_refused_and_never_panics(text in ".*") {
            if let Ok(l) = text.parse::<Length>() {
                prop_assert!(l.duration() <= LONGEST);
            }
        }
    }

    #[test]
    fn what_people_get_wrong_is_named() {
        for wrong in ["", "15", "s", "1.5s", "-1s", "15 s", "1d", "25h", "99999999999999999999s"] {
            assert!(wrong.parse::<Length>().is_err(), "{wrong}");
        }
    }
}
