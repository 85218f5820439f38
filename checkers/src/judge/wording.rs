//! Lengths, counts and lists as a reader at three in the morning wants them.
//!
//! # Invariants
//! - A length keeps at most three figures that matter; what is under a millisecond says so.

use crate::history::{At, Nanos};

/// `20.1 s`, `300 ms`, `under 1 ms`.
pub(super) fn length(ns: Nanos) -> String {
    const MS: Nanos = 1_000_000;
    match ns {
        0 => "0 s".to_owned(),
        1..MS => "under 1 ms".to_owned(),
        MS..999_500_000 => format!("{} ms", (ns + MS / 2) / MS),
        _ => seconds(ns),
    }
}

/// `15.0 s`: always in seconds, for bounds.
pub(super) fn seconds(ns: Nanos) -> String {
    format!("{} s", bare_seconds(ns))
}

/// `15.0`: without the unit, for ranges.
pub(super) fn bare_seconds(ns: Nanos) -> String {
    let tenths = ns.saturating_add(50_000_000) / 100_000_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// `2,345`.
pub(super) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 lease`, `10 leases`.
pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `m1, w1 and e1`; `nobody` of an empty list.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => "nobody".to_owned(),
        [only] => only.as_ref().to_owned(),
        [head @ .., last] => {
            let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", head.join(", "), last.as_ref())
        }
    }
}

/// `a, b, c and 7 more`: a list that a line can hold.
pub(super) fn short_list<T: AsRef<str>>(items: &[T], most: usize) -> String {
    if items.len() <= most {
        return list(items);
    }
    let head: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    format!("{} and {} more", head.join(", "), count(items.len() - most))
}

/// The middle of an interval.
pub(super) const fn middle(at: At) -> Nanos {
    at.lo + (at.hi.saturating_sub(at.lo)) / 2
}

/// Half the width of an interval: the `±` of its middle.
pub(super) const fn half_width(at: At) -> Nanos {
    at.hi.saturating_sub(at.lo).div_ceil(2)
}

/// The first characters of a UID, enough to tell pods apart.
pub(super) fn short_uid(uid: &str) -> &str {
    uid.char_indices().nth(8).map_or(uid, |(end, _)| &uid[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_well_at_every_size() {
        let said: Vec<String> = [
            0,
            400,
            3_800_000,
            999_400_000,
            999_600_000,
            1_000_000_000,
            3_849_000_000,
            25_900_000_000,
            u64::MAX,
        ]
        .into_iter()
        .map(length)
        .collect();
        assert_eq!(
            said,
            ["0 s", "under 1 ms", "4 ms", "999 ms", "1.0 s", "1.0 s", "3.8 s", "25.9 s", "18446744073.7 s"]
        );
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "lease", "leases"), "1 lease");
    }

    #[test]
    fn lists_end_in_and() {
        assert_eq!(list::<&str>(&[]), "nobody");
        assert_eq!(list(&["m1"]), "m1");
        assert_eq!(list(&["m1", "w1", "e1"]), "m1, w1 and e1");
        assert_eq!(short_list(&["a", "b", "c"], 2), "a, b and 1 more");
    }

    #[test]
    fn short_uids_never_split_a_character() {
        assert_eq!(short_uid("3f8d2b66-1111"), "3f8d2b66");
        assert_eq!(short_uid("ééééééééé"), "éééééééé");
        assert_eq!(short_uid("ab"), "ab");
    }
}
