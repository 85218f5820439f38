//! The axis of time: where a moment lies, and which ticks are written.
//!
//! # Invariants
//! - Ticks count from the story's zero (the moment the first fault was in force), which is a tick itself.
//! - A moment beyond either end is drawn at that end, never outside the picture.

use rackrift_checkers::history::Nanos;

/// Steps between ticks, ns; the smallest that leaves room is taken.
const STEPS: [u64; 20] = [
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    20_000_000_000,
    30_000_000_000,
    60_000_000_000,
    120_000_000_000,
    300_000_000_000,
    600_000_000_000,
    1_800_000_000_000,
    3_600_000_000_000,
    14_400_000_000_000,
];

/// From nanoseconds to a picture's horizontal units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// Where the axis begins.
    pub(super) left: f64,
    /// Its length.
    pub(super) width: f64,
    /// Time at its end, ns; it begins at 0.
    pub(super) end: Nanos,
    /// The moment that ticks count from, ns.
    pub(super) zero: Nanos,
}

impl Axis {
    /// Where a moment lies.
    pub(super) fn x(&self, t: Nanos) -> f64 {
        self.left + self.width * (t.min(self.end) as f64 / self.end as f64)
    }

    /// The right end.
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Ticks at least `apart` units from each other: moment and label, `zero_name` at zero.
    pub(super) fn ticks(&self, apart: f64, zero_name: &str) -> Vec<(Nanos, String)> {
        let room = (self.width / apart).max(1.0);
        let step = STEPS
            .into_iter()
            .find(|step| self.end as f64 / *step as f64 <= room)
            .unwrap_or_else(|| (self.end / room as u64).max(1));
        let before = self.zero / step;
        let after = self.end.saturating_sub(self.zero) / step;
        let early = (1..=before).rev().map(|i| (self.zero - i * step, name(i * step, step, '−')));
        let late = (1..=after).map(|i| (self.zero + i * step, name(i * step, step, '+')));
        early.chain([(self.zero, zero_name.to_owned())]).chain(late).collect()
    }
}

fn name(distance: Nanos, step: Nanos, sign: char) -> String {
    const SECOND: u64 = 1_000_000_000;
    if step >= 3_600 * SECOND {
        format!("{sign}{} h", distance / (3_600 * SECOND))
    } else if step >= 60 * SECOND {
        format!("{sign}{} min", distance / (60 * SECOND))
    } else if step >= SECOND {
        format!("{sign}{} s", distance / SECOND)
    } else {
        format!("{sign}{} ms", distance / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_from_zero_and_keep_apart() {
        let axis = Axis { left: 200.0, width: 880.0, end: 155_000_000_000, zero: 20_000_000_000 };
        let ticks = axis.ticks(56.0, "cut");
        assert_eq!(ticks[0].1, "−20 s");
        assert_eq!(ticks[2], (20_000_000_000, "cut".to_owned()));
        assert_eq!(ticks.last().map(|t| t.1.as_str()), Some("+130 s"));
        assert!(ticks.windows(2).all(|w| axis.x(w[1].0) - axis.x(w[0].0) >= 56.0));
    }

    #[test]
    fn any_length_has_few_ticks() {
        for end in [1_000_000, 1, 999, 86_400_000_000_000, u64::MAX] {
            let axis = Axis { left: 0.0, width: 300.0, end, zero: end / 3 };
            let ticks = axis.ticks(56.0, "cut");
            assert!((1..=8).contains(&ticks.len()), "{end}: {ticks:?}");
        }
    }
}
