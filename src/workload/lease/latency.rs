//! Latencies of operations, by API server, operation and outcome.
//!
//! Two figures each: from when the operation was *sent*, and from when it was *due*. Only the second shows what
//! callers of a stalled server feel: while a client waits, the operations that were due wait with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency that is told apart, µs: ten minutes. Longer ones count as this.
const LONGEST: u64 = 600_000_000;

/// Quantiles, µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Quantiles {
    /// Half were at most this.
    pub p50: u64,
    /// 90 % were at most this.
    pub p90: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Latencies of one kind of operation with one outcome at one API server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LatencyLine {
    /// The API server's host.
    pub server: String,
    /// `read`, `cas`, `create`.
    pub f: &'static str,
    /// `ok`, `fail`, `info`.
    pub outcome: &'static str,
    /// How many.
    pub count: u64,
    /// From sent to ended.
    pub sent: Quantiles,
    /// From due to ended.
    pub due: Quantiles,
}

/// Gathers latencies from all clients.
#[derive(Debug, Default)]
pub struct Latencies {
    kinds: Mutex<BTreeMap<Kind, Pair>>,
}

/// API server, operation, outcome.
type Kind = (String, &'static str, &'static str);

#[derive(Debug)]
struct Pair {
    sent: Histogram<u64>,
    due: Histogram<u64>,
}

impl Latencies {
    /// Adds one operation.
    pub fn add(&self, server: &str, f: &'static str, outcome: &'static str, sent: Duration, due: Duration) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = kinds
            .entry((server.to_owned(), f, outcome))
            .or_insert_with(|| Pair { sent: histogram(), due: histogram() });
        pair.sent.saturating_record(micros(sent));
        pair.due.saturating_record(micros(due));
    }

    /// What was gathered, in order of API server, operation and outcome.
    #[must_use]
    pub fn lines(&self) -> Vec<LatencyLine> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds
            .iter()
            .map(|((server, f, outcome), pair)| LatencyLine {
                server: server.clone(),
                f,
                outcome,
                count: pair.sent.len(),
                sent: quantiles(&pair.sent),
                due: quantiles(&pair.due),
            })
            .collect()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("1 to ten minutes with 3 digits are bounds that exist")
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

fn quantiles(h: &Histogram<u64>) -> Quantiles {
    let at = |q| h.value_at_quantile(q);
    Quantiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: h.max() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_and_sent_are_told_apart() {
        let l = Latencies::default();
        for ms in 1..=100 {
            l.add("m1", "read", "ok", Duration::from_millis(ms), Duration::from_millis(ms + 1000));
        }
        l.add("m1", "cas", "info", Duration::from_secs(1000), Duration::from_secs(1000));
        let lines = l.lines();
        let kinds: Vec<_> = lines.iter().map(|l| (l.f, l.outcome, l.count)).collect();
        assert_eq!(kinds, [("cas", "info", 1), ("read", "ok", 100)]);
        // Three digits: within a thousandth.
        assert!((50_000..=50_050).contains(&lines[1].sent.p50), "{lines:?}");
        assert!((1_099_000..=1_100_400).contains(&lines[1].due.p99), "{lines:?}");
        // Rounded up within its bucket, not ten times the bound.
        assert!(lines[0].sent.max < LONGEST + LONGEST / 1000, "{lines:?}");
    }
}
