//! How well the hosts' clocks are known on the controller's axis.

use rackrift_checkers::history::{At, Entry, Nanos};

use crate::words;

/// What the clock samples and the mapped moments say of precision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Half-width of moments that hosts saw, ns: of half of them at most this, and of all.
    pub(crate) bound: Option<(Nanos, Nanos)>,
    /// Number of clock samples.
    pub(crate) samples: usize,
}

impl Clocks {
    /// Looks at every mapped moment.
    pub(crate) fn new(entries: &[Entry]) -> Self {
        let mut halves: Vec<Nanos> = Vec::new();
        let mut add = |at: At| halves.push(at.hi.saturating_sub(at.lo).div_ceil(2));
        for entry in entries {
            match entry {
                Entry::Belief(b) => add(b.at),
                Entry::Pod(p) if p.host_from.is_some() || p.host_to.is_some() => {
                    add(p.from);
                    add(p.to);
                }
                _ => {}
            }
        }
        let worst = halves.iter().max().copied();
        let middle = halves.len() / 2;
        let bound = worst.map(|worst| (*halves.select_nth_unstable(middle).1, worst));
        let samples = entries.iter().filter(|e| matches!(e, Entry::Clock(_))).count();
        Self { bound, samples }
    }

    /// `± 15 ms`, with the worst where it is much more: `± 15 ms (worst 353 ms)`.
    pub(crate) fn words(&self) -> Option<String> {
        let (half, worst) = self.bound?;
        let typical = words::length(half);
        Some(if worst > half.saturating_mul(2) {
            format!("± {typical} (worst {})", words::length(worst))
        } else {
            format!("± {}", words::length(worst))
        })
    }
}
