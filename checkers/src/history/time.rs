//! Points and intervals on the controller's monotonic clock.

use serde::{Deserialize, Serialize};

/// Nanoseconds of the controller's monotonic clock since the run's origin.
pub type Nanos = u64;

/// A moment known only to lie in the closed interval `[lo, hi]` on the controller's clock (ns).
///
/// A moment that the controller itself saw has `lo == hi`. "A before B" may be claimed only if
/// `a.hi < b.lo`; equal times count as concurrent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// Earliest possible moment, ns.
    pub lo: Nanos,
    /// Latest possible moment, ns.
    pub hi: Nanos,
}

impl At {
    /// A moment seen by the controller itself.
    #[must_use]
    pub const fn exactly(t: Nanos) -> Self {
        Self { lo: t, hi: t }
    }

    /// Whether this moment certainly came before `other`.
    #[must_use]
    pub const fn surely_before(self, other: Self) -> bool {
        self.hi < other.lo
    }
}

/// A moment on a host's own monotonic clock; comparable only within one boot of one host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostTime {
    /// The kernel's boot id: two boots of a host have unrelated monotonic clocks.
    pub boot: String,
    /// Nanoseconds since that boot.
    pub mono: u64,
}
