//! Go's notation of a duration, as Kubernetes flags and configuration files write it: `15s`, `1m30s`, `2h45m0.5s`.

/// Nanoseconds of a duration in Go's notation, or nothing if it is not one, negative, or beyond `u64`.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        total = total.checked_add(part(digits, unit)?)?;
        rest = after;
    }
    Some(total)
}

/// `1.5`, `s` in nanoseconds; digits beyond a nanosecond are dropped, as Go does.
fn part(digits: &str, unit: &str) -> Option<u64> {
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut ns = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        ns = ns.checked_add(u64::from(digit - b'0').checked_mul(place)?)?;
    }
    Some(ns)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn as_go_reads_them() {
        let s = 1_000_000_000;
        for (text, ns) in [
            ("15s", 15 * s),
            ("1m0s", 60 * s),
            ("1h2m3.5s", 3723 * s + s / 2),
            ("500ms", s / 2),
            ("0", 0),
            ("0s", 0),
            (".5s", s / 2),
            ("1.5m", 90 * s),
            ("10us", 10_000),
        ] {
            assert_eq!(parse(text), Some(ns), "{text}");
        }
        for bad in ["", "15", "s", "15 s", "-5s", "1.2.3s", "5x", "99999999999h", "1s2", "."] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_go_prints_is_read_back(h in 0_u64..1000, m in 0_u64..60, ms in 0_u64..60_000) {
            let text = format!("{h}h{m}m{}.{:03}s", ms / 1000, ms % 1000);
            prop_assert_eq!(parse(&text), Some(((h * 60 + m) * 60_000 + ms) * 1_000_000));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
