//! How well the hosts' clocks are known on the controller's axis.

use rackrift_checkers::history::{At, Entry, Nanos};

/// What the clock samples and the mapped moments say of precision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Largest half-width of a moment that a host saw, ns; `None`: no host's moment is in the history.
    pub(crate) bound: Option<Nanos>,
    /// Number of clock samples.
    pub(crate) samples: usize,
}

impl Clocks {
    /// Looks at every mapped moment.
    pub(crate) fn new(entries: &[Entry]) -> Self {
        let mut clocks = Self::default();
        let mut wider = |at: At| {
            let half = at.hi.saturating_sub(at.lo).div_ceil(2);
            clocks.bound = Some(clocks.bound.map_or(half, |b| b.max(half)));
        };
        for entry in entries {
            match entry {
                Entry::Belief(b) => wider(b.at),
                Entry::Pod(p) if p.host_from.is_some() || p.host_to.is_some() => {
                    wider(p.from);
                    wider(p.to);
                }
                _ => {}
            }
        }
        clocks.samples = entries.iter().filter(|e| matches!(e, Entry::Clock(_))).count();
        clocks
    }
}
