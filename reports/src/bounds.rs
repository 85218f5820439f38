//! Where a measured length lies in its bounds, as the words of a check tell it.
//!
//! # Invariants
//! - No number is drawn that the words beside it do not say: bounds come from the check's own sentence, the measured
//!   number from its value.
//!
//! # Read from words, not from a second field
//! A bound is promised to its reader in words; reading the same words keeps picture and text from parting. Words that
//! do not start with a length have no bar.

use rackrift_checkers::verdict::CheckResult;

/// A measured length and its bounds, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    /// Not less than this; `None`: any.
    pub(crate) low: Option<f64>,
    /// Not more than this.
    pub(crate) high: f64,
    /// What was measured.
    pub(crate) value: f64,
}

impl Bounds {
    /// Reads `15.0 to 23.8 s …`, `60.0 s …`, `at most 60 s …`; `None` for every other kind of bound.
    pub(crate) fn of(check: &CheckResult) -> Option<Self> {
        let value = check.value.filter(|v| *v >= 0)? as f64;
        // A count has no place on an axis of time: only a measured length is drawn.
        length(&check.measured)?;
        let (low, high) = range(&check.bound)?;
        (high > 0.0 && low.is_none_or(|low| low <= high)).then_some(Self { low, high, value })
    }

    /// Whether the value lies within.
    pub(crate) fn holds(&self) -> bool {
        self.low.is_none_or(|low| low <= self.value) && self.value <= self.high
    }

    /// The end of an axis on which bound and value both are seen.
    pub(crate) fn axis(&self) -> f64 {
        (self.high * 1.25).max(self.value * 1.1)
    }
}

fn range(words: &str) -> Option<(Option<f64>, f64)> {
    let words = words.strip_prefix("at most ").unwrap_or(words);
    let mut parts = words.split_whitespace();
    let first = number(parts.next()?)?;
    match parts.next()? {
        "to" => {
            let second = number(parts.next()?)?;
            let unit = unit(parts.next()?)?;
            Some((Some(first * unit), second * unit))
        }
        word => Some((None, first * unit(word)?)),
    }
}

fn length(words: &str) -> Option<f64> {
    let mut parts = words.split_whitespace();
    Some(number(parts.next()?)? * unit(parts.next()?)?)
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

fn unit(word: &str) -> Option<f64> {
    match word.trim_end_matches([',', ';', '.', ')']) {
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_words() {
        assert_eq!(range("15.0 to 23.8 s after the last renewal"), Some((Some(15e9), 23.8e9)));
        assert_eq!(range("60 s"), Some((None, 60e9)));
        assert_eq!(range("at most 250 ms"), Some((None, 250e6)));
        for other in ["", "no overlap", "measured", "30 of 30 directed edges", "0", "to s", "NaN s", "-1 s"] {
            assert_eq!(range(other), None, "{other}");
        }
    }
}
