//! Times and lengths in words.

use crate::history::Nanos;

/// A moment of the run, in seconds to the millisecond: `12.401 s`.
#[must_use]
pub fn moment(t: Nanos) -> String {
    let ms = t / 1_000_000;
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// A length with the unit that suits it, to three figures: `83.0 ms`, `1.25 s`, `740 µs`, `12 ns`.
///
/// Rounded down, so that a margin is never overstated.
#[must_use]
pub fn length(ns: Nanos) -> String {
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let whole = ns / unit;
    let thousandths = (ns % unit) * 1000 / unit;
    match whole {
        0..10 => format!("{whole}.{:02} {name}", thousandths / 10),
        10..100 => format!("{whole}.{} {name}", thousandths / 100),
        _ => format!("{whole} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_keep_three_figures_and_never_round_up() {
        let said: Vec<String> =
            [0, 12, 999, 1_000, 83_049_999, 999_999_999, 1_259_999_999, 61_000_000_000, 300_400_000_000]
                .into_iter()
                .map(length)
                .collect();
        assert_eq!(
            said,
            ["0 ns", "12 ns", "999 ns", "1.00 µs", "83.0 ms", "999 ms", "1.25 s", "61.0 s", "300 s"]
        );
        assert_eq!(moment(12_401_999_999), "12.401 s");
    }
}
