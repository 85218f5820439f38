//! Clock arithmetic: what a host's monotonic clock says of the controller's, and of another host's.
//!
//! # The rule
//! A round trip asks a host for its clock: the controller's clock showed `sent` before and `received` after, the answer
//! is `mono`, read with a resolution `res`. So at *some* moment in `[sent, received]` the host's clock stood in
//! `[mono, mono + res)`. Between two moments the host's clock advances by the controller's advance times a rate in
//! `[1 - rho, 1 + rho]` ([`Drift`]). Each sample thus bounds the controller's time of every host time from below and
//! above by a line that bends at the sample, and the truth lies under all upper and over all lower lines:
//!
//! ```text
//!   controller     upper bounds  \__/ of each sample; their minimum counts
//!        |            \      ..--'/
//!        |          ___\_..-' ___/
//!        |       .-'  ..\.--'/
//!        +------------------------------> host clock
//! ```
//!
//! # Why it is exact
//! Given the samples and the drift bound, every value between the resulting bounds can be the true one, and none
//! outside: the bounds are the intersection of the constraints of the single samples, each of which is tight. Lines of
//! one slope are compared by their intercept, so the maximum over all samples on one side is a running maximum:
//! O(log n) a question after O(n log n) preparation. All arithmetic is in integers, rounded outwards.
//!
//! # Invariants
//! * Two boots of a host have unrelated clocks. A time of an unknown boot has no place on the controller's clock.
//! * Samples that contradict each other (a clock that stood still while the host slept, a drift beyond the bound) are
//!   an error where the contradiction shows, never a guess.
//! * The monotonic clock is the one that the samples read: if times come from another clock of the host
//!   (`CLOCK_BOOTTIME` against `CLOCK_MONOTONIC`), they need samples of their own.
//!
//! Source: Marzullo and Owicki 1983 (intersection of intervals); the envelope is our own.

use std::collections::BTreeMap;

use crate::history::{At, ClockSample, HostTime, Nanos};

/// How far the rate of a host's clock may differ from the controller's, in parts per billion of real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drift {
    ppb: i128,
}

/// Parts in a whole.
const WHOLE: i128 = 1_000_000_000;

impl Drift {
    /// So many parts per million; at most 100,000 (a tenth).
    #[must_use]
    pub const fn ppm(ppm: u32) -> Self {
        let capped = if ppm > 100_000 { 100_000 } else { ppm };
        Self { ppb: capped as i128 * 1000 }
    }

    /// The shortest real time in which a clock can advance by `length`: `length / (1 + rho)`, rounded down.
    #[must_use]
    pub fn shortest(self, length: Nanos) -> Nanos {
        (i128::from(length) * WHOLE / (WHOLE + self.ppb)) as Nanos
    }

    /// The longest real time in which a clock advances by `length`: `length / (1 - rho)`, rounded up.
    #[must_use]
    pub fn longest(self, length: Nanos) -> Nanos {
        let exact = i128::from(length) * WHOLE;
        Nanos::try_from(div_ceil(exact, WHOLE - self.ppb)).unwrap_or(Nanos::MAX)
    }

    /// By how much two clocks can drift apart over `length` of real time: `2 * rho * length`, rounded up.
    #[must_use]
    pub fn apart(self, length: Nanos) -> Nanos {
        Nanos::try_from(div_ceil(2 * self.ppb * i128::from(length), WHOLE)).unwrap_or(Nanos::MAX)
    }
}

/// Why a time cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// No round trip read this clock.
    #[error("no clock sample of host {host} in boot {boot}; its times cannot be compared with others")]
    NoSample {
        /// The host.
        host: String,
        /// The boot.
        boot: String,
    },
    /// Two samples cannot both be true.
    #[error(
        "clock samples of host {host} contradict each other by {by} ns near {at} ns of its clock; \
         its clock drifted by more than the bound, or stood still"
    )]
    Contradiction {
        /// The host.
        host: String,
        /// Where on the host's clock, ns since boot.
        at: u64,
        /// By how much the bounds cross, ns.
        by: Nanos,
    },
}

/// How far the clock of `b` is behind the clock of `a` in some span of time: `a's reading = b's reading + d`, where `d`
/// lies in `[lo, hi]` throughout and changes by at most `slack` within the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Smallest possible offset, ns.
    pub lo: i64,
    /// Largest possible offset, ns.
    pub hi: i64,
    /// How much the offset can change within the span, ns.
    pub slack: Nanos,
}

impl Offset {
    /// The offset of a clock against itself.
    pub const ZERO: Self = Self { lo: 0, hi: 0, slack: 0 };

    /// Nothing is known: any offset is possible. (A quarter of the range, so that sums do not overflow.)
    pub const UNKNOWN: Self = Self { lo: i64::MIN / 4, hi: i64::MAX / 4, slack: 0 };

    /// The bound as one figure: no reading is off by more than this from the middle, ns.
    #[must_use]
    pub const fn bound(self) -> Nanos {
        self.hi.abs_diff(self.lo).div_ceil(2)
    }
}

/// The clocks of all hosts, by host and boot.
#[derive(Debug, Clone)]
pub struct Clocks {
    tracks: BTreeMap<(String, String), Track>,
    drift: Drift,
}

impl Clocks {
    /// Prepares the bounds from all samples of a run, in any order.
    pub fn from_samples<'a>(samples: impl IntoIterator<Item = &'a ClockSample>, drift: Drift) -> Self {
        let mut by_boot: BTreeMap<(String, String), Vec<Sample>> = BTreeMap::new();
        for s in samples {
            let boot = (s.host.clone(), s.host_time.boot.clone());
            let (lo, hi) = (s.sent.min(s.received), s.sent.max(s.received));
            let mono = s.host_time.mono;
            by_boot.entry(boot).or_default().push(Sample {
                sent: lo,
                received: hi,
                mono,
                mono_end: mono.saturating_add(s.resolution),
            });
        }
        let tracks = by_boot.into_iter().map(|(boot, s)| (boot, Track::new(&s, drift))).collect();
        Self { tracks, drift }
    }

    /// The drift bound in force.
    #[must_use]
    pub const fn drift(&self) -> Drift {
        self.drift
    }

    /// Hosts and boots with samples.
    pub fn boots(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tracks.keys().map(|(host, boot)| (host.as_str(), boot.as_str()))
    }

    fn track(&self, host: &str, boot: &str) -> Result<&Track, ClockError> {
        let key = (host.to_owned(), boot.to_owned());
        self.tracks.get(&key).ok_or(ClockError::NoSample { host: key.0, boot: key.1 })
    }

    /// When, on the controller's clock, `host` saw `time` on its own.
    ///
    /// Moments before the run's origin are cut off at 0: they stay before everything that happened in the run.
    ///
    /// # Errors
    /// If no sample read that clock, or samples contradict each other there.
    pub fn at(&self, host: &str, time: &HostTime) -> Result<At, ClockError> {
        let (lo, hi) = self.track(host, &time.boot)?.controller_at(time.mono);
        if lo > hi {
            let by = Nanos::try_from(lo - hi).unwrap_or(Nanos::MAX);
            return Err(ClockError::Contradiction { host: host.to_owned(), at: time.mono, by });
        }
        Ok(At { lo: to_nanos(lo), hi: to_nanos(hi) })
    }

    /// What `host`'s clock showed at moment `t` of the controller's: the least and the greatest possible reading.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn reading(&self, host: &str, boot: &str, t: Nanos) -> Result<(i128, i128), ClockError> {
        let (lo, hi) = self.track(host, boot)?.host_at(t);
        if lo > hi {
            let by = Nanos::try_from(lo - hi).unwrap_or(Nanos::MAX);
            return Err(ClockError::Contradiction { host: host.to_owned(), at: to_nanos(lo), by });
        }
        Ok((lo, hi))
    }

    /// The offset of the clock of `b` against the clock of `a` (each a host and a boot), valid during `[from, to]` of the
    /// controller's clock.
    ///
    /// Every moment at which both clocks are well known bounds the offset throughout the span, give or take the drift in
    /// between: the bounds of up to 65 moments are intersected.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn offset(
        &self,
        a: (&str, &str),
        b: (&str, &str),
        from: Nanos,
        to: Nanos,
    ) -> Result<Offset, ClockError> {
        if a == b {
            return Ok(Offset::ZERO);
        }
        const STEPS: u64 = 64;
        let to = to.max(from);
        let (mut lo, mut hi) = (i128::MIN, i128::MAX);
        for step in 0..=STEPS {
            let t = from + ((to - from) / STEPS * step + (to - from) % STEPS * step / STEPS);
            let (a_lo, a_hi) = self.reading(a.0, a.1, t)?;
            let (b_lo, b_hi) = self.reading(b.0, b.1, t)?;
            let drifted = i128::from(self.drift.apart((t - from).max(to - t)));
            lo = lo.max(a_lo - b_hi - drifted);
            hi = hi.min(a_hi - b_lo + drifted);
        }
        let narrow = |x: i128| x.clamp(Offset::UNKNOWN.lo.into(), Offset::UNKNOWN.hi.into()) as i64;
        Ok(Offset { lo: narrow(lo), hi: narrow(hi), slack: self.drift.apart(to - from) })
    }
}

struct Sample {
    sent: Nanos,
    received: Nanos,
    mono: u64,
    mono_end: u64,
}

/// One boot of one host.
#[derive(Debug, Clone)]
struct Track {
    earliest: Envelope,
    latest: Envelope,
    least: Envelope,
    greatest: Envelope,
}

impl Track {
    fn new(samples: &[Sample], drift: Drift) -> Self {
        let slow = Slope { rise: WHOLE, run: WHOLE + drift.ppb };
        let fast = Slope { rise: WHOLE, run: WHOLE - drift.ppb };
        let behind = Slope { rise: WHOLE - drift.ppb, run: WHOLE };
        let ahead = Slope { rise: WHOLE + drift.ppb, run: WHOLE };
        let points = |x: fn(&Sample) -> u64, y: fn(&Sample) -> u64| samples.iter().map(move |s| (x(s), y(s)));
        Self {
            earliest: Envelope::greatest(points(|s| s.mono_end, |s| s.sent), fast, slow),
            latest: Envelope::least(points(|s| s.mono, |s| s.received), slow, fast),
            least: Envelope::greatest(points(|s| s.received, |s| s.mono), ahead, behind),
            greatest: Envelope::least(points(|s| s.sent, |s| s.mono_end), behind, ahead),
        }
    }

    fn controller_at(&self, mono: u64) -> (i128, i128) {
        (self.earliest.at(mono), self.latest.at(mono))
    }

    fn host_at(&self, t: Nanos) -> (i128, i128) {
        (self.least.at(t), self.greatest.at(t))
    }
}

#[derive(Debug, Clone, Copy)]
struct Slope {
    rise: i128,
    run: i128,
}

/// The greatest (or least) of many lines, each through one point `(x, y)` with slope `before` to its left and `after` to
/// its right. Intercepts are kept multiplied by the slope's `run`.
#[derive(Debug, Clone)]
struct Envelope {
    xs: Vec<u64>,
    /// Best intercept of the points up to each, for `after`.
    up_to: Vec<i128>,
    /// Best intercept of the points from each on, for `before`.
    from: Vec<i128>,
    before: Slope,
    after: Slope,
    greatest: bool,
}

impl Envelope {
    fn greatest(points: impl Iterator<Item = (u64, u64)>, before: Slope, after: Slope) -> Self {
        Self::new(points, before, after, true)
    }

    fn least(points: impl Iterator<Item = (u64, u64)>, before: Slope, after: Slope) -> Self {
        Self::new(points, before, after, false)
    }

    fn new(points: impl Iterator<Item = (u64, u64)>, before: Slope, after: Slope, greatest: bool) -> Self {
        let mut points: Vec<(u64, u64)> = points.collect();
        points.sort_unstable();
        let better = |a: i128, b: i128| if greatest { a.max(b) } else { a.min(b) };
        let intercept = |&(x, y): &(u64, u64), s: Slope| i128::from(y) * s.run - i128::from(x) * s.rise;
        let mut up_to: Vec<i128> = points.iter().map(|p| intercept(p, after)).collect();
        let mut from: Vec<i128> = points.iter().map(|p| intercept(p, before)).collect();
        for i in 1..points.len() {
            up_to[i] = better(up_to[i], up_to[i - 1]);
        }
        for i in (1..points.len()).rev() {
            from[i - 1] = better(from[i - 1], from[i]);
        }
        Self { xs: points.into_iter().map(|p| p.0).collect(), up_to, from, before, after, greatest }
    }

    /// The value at `x`, rounded towards the loose side.
    fn at(&self, x: u64) -> i128 {
        let left = self.xs.partition_point(|&p| p <= x);
        let value = |intercept: i128, s: Slope| {
            let exact = intercept + i128::from(x) * s.rise;
            if self.greatest { exact.div_euclid(s.run) } else { div_ceil(exact, s.run) }
        };
        let after = left.checked_sub(1).map(|i| value(self.up_to[i], self.after));
        let before = self.from.get(left).map(|&i| value(i, self.before));
        match (after, before) {
            (Some(a), Some(b)) if self.greatest => a.max(b),
            (Some(a), Some(b)) => a.min(b),
            (Some(v), None) | (None, Some(v)) => v,
            (None, None) => 0,
        }
    }
}

/// Division rounded up; `by` is positive.
const fn div_ceil(n: i128, by: i128) -> i128 {
    -((-n).div_euclid(by))
}

fn to_nanos(x: i128) -> Nanos {
    Nanos::try_from(x.max(0)).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(host: &str, sent: Nanos, received: Nanos, mono: u64, resolution: u64) -> ClockSample {
        let host_time = HostTime { boot: "b".to_owned(), mono };
        ClockSample { host: host.to_owned(), sent, received, host_time, resolution, wall: None }
    }

    fn at(clocks: &Clocks, mono: u64) -> At {
        clocks.at("h", &HostTime { boot: "b".to_owned(), mono }).unwrap()
    }

    #[test]
    fn one_round_trip_places_its_own_reading_within_itself() {
        let clocks = Clocks::from_samples(&[sample("h", 1_000, 1_400, 50, 0)], Drift::ppm(0));
        assert_eq!(at(&clocks, 50), At { lo: 1_000, hi: 1_400 });
        assert_eq!(at(&clocks, 150), At { lo: 1_100, hi: 1_500 });
    }

    #[test]
    fn resolution_widens_on_the_early_side() {
        // The true reading may have been 59.999: then the moment shown as 50 lay up to 10 ns earlier.
        let clocks = Clocks::from_samples(&[sample("h", 1_000, 1_400, 50, 10)], Drift::ppm(0));
        assert_eq!(at(&clocks, 50), At { lo: 990, hi: 1_400 });
    }

    #[test]
    fn drift_widens_with_distance_and_two_samples_meet_in_the_middle() {
        let far = 1_000_000_000;
        let one = [sample("h", 1_000, 1_000, 0, 0)];
        let clocks = Clocks::from_samples(&one, Drift::ppm(100));
        let alone = at(&clocks, far);
        assert_eq!((alone.lo, alone.hi), (999_901_009, 1_000_101_011));
        let two =
            [sample("h", 1_000, 1_000, 0, 0), sample("h", 2 * far + 1_000, 2 * far + 1_000, 2 * far, 0)];
        let clocks = Clocks::from_samples(&two, Drift::ppm(100));
        let both = at(&clocks, far);
        assert!(both.lo >= alone.lo && both.hi <= alone.hi);
        assert!(both.lo <= far + 1_000 && far + 1_000 <= both.hi);
    }

    #[test]
    fn a_clock_that_stood_still_is_a_contradiction() {
        let s = [sample("h", 0, 10, 0, 0), sample("h", 1_000_000, 1_000_010, 100, 0)];
        let clocks = Clocks::from_samples(&s, Drift::ppm(500));
        let time = HostTime { boot: "b".to_owned(), mono: 100 };
        assert!(matches!(clocks.at("h", &time), Err(ClockError::Contradiction { .. })));
        let other = HostTime { boot: "c".to_owned(), mono: 100 };
        assert!(matches!(clocks.at("h", &other), Err(ClockError::NoSample { .. })));
    }

    proptest! {
        /// Whatever the true clock does within the drift bound, the bounds hold, both ways and for pairs.
        #[test]
        fn the_truth_lies_within_the_bounds(
            start in 0u64..1_000_000_000_000,
            rates in prop::collection::vec(-500i64..=500, 8),
            trips in prop::collection::vec((0u64..10_000_000, 0u64..10_000_000, 0usize..8), 1..6),
            resolution in prop::sample::select(vec![1u64, 10_000_000]),
            asked in 0u64..8_000_000_000,
        ) {
            // The host's clock runs at a rate of its own in each of eight seconds.
            let truth = |t: u64| {
                let mut host = i128::from(start);
                for (second, rate) in rates.iter().enumerate() {
                    let from = second as u64 * 1_000_000_000;
                    let spent = t.saturating_sub(from).min(1_000_000_000);
                    host += i128::from(spent) * (1_000_000 + i128::from(*rate)) / 1_000_000;
                }
                host as u64
            };
            let samples: Vec<_> = trips.iter().map(|&(there, back, second)| {
                let read = second as u64 * 1_000_000_000 + 500_000_000;
                let shown = truth(read) / resolution * resolution;
                sample("h", read - there.min(read), read + back, shown, resolution)
            }).collect();
            // A few ns for the rounding of the truth itself.
            let clocks = Clocks::from_samples(&samples, Drift::ppm(501));
            let place = at(&clocks, truth(asked));
            prop_assert!(place.lo <= asked + 16 && asked <= place.hi + 16, "{place:?} {asked}");
            let (lo, hi) = clocks.reading("h", "b", asked).unwrap();
            let reading = i128::from(truth(asked));
            prop_assert!(lo <= reading + 16 && reading <= hi + 16);

            let own: Vec<_> = (0..8).map(|s| s * 1_000_000_000).map(|t| sample("a", t, t + 100, t + 50, 1)).collect();
            let both = Clocks::from_samples(own.iter().chain(&samples), Drift::ppm(501));
            let offset = both.offset(("a", "b"), ("h", "b"), 0, 7_999_999_999).unwrap();
            let true_offset = i128::from(asked) - reading;
            prop_assert!(i128::from(offset.lo) <= true_offset + 116 && true_offset <= i128::from(offset.hi) + 116);
        }
    }
}
