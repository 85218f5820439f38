//! Steps of a fault as they happen, for the history.

use std::time::Instant;

use rackrift_checkers::history::{FaultMark, FaultPhase};

use super::shape::Edge;

/// A step in a fault's life, on the controller's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Instant,
    /// The fault's name within the run.
    pub fault: String,
    /// What happened.
    pub phase: FaultPhase,
    /// To which edge; absent: to the whole fault.
    pub edge: Option<Edge>,
    /// More, in words.
    pub detail: Option<String>,
}

impl Mark {
    /// The line of the history, with times counted from the run's origin.
    #[must_use]
    pub fn on_clock(self, origin: Instant) -> FaultMark {
        let since = self.at.saturating_duration_since(origin).as_nanos();
        FaultMark {
            // 584 years fit into 64 bits of nanoseconds.
            time: u64::try_from(since).unwrap_or(u64::MAX),
            fault: self.fault,
            phase: self.phase,
            edge: self.edge.map(|e| (e.from, e.to)),
            detail: self.detail,
        }
    }
}

/// Where marks go. A receiver that is gone loses them and harms nobody.
pub type Marks = tokio::sync::mpsc::UnboundedSender<Mark>;
