//! The two stops of a run: wind down (heal, then judge what there is), and leave at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Shared by the run and whoever listens to signals.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    wind_down: CancellationToken,
    faulted: Arc<Mutex<Vec<String>>>,
}

impl Stop {
    /// Asks the run to wind down: no further waiting, heal, judge. True for the first call.
    #[must_use]
    pub fn wind_down(&self) -> bool {
        let first = !self.wind_down.is_cancelled();
        self.wind_down.cancel();
        first
    }

    /// Whether the run was asked to wind down.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.wind_down.is_cancelled()
    }

    /// Waits so long, or until the run is asked to wind down, or until `failed` is cancelled.
    pub async fn wait(&self, length: Duration, failed: &CancellationToken) {
        tokio::select! {
            () = tokio::time::sleep(length) => {}
            () = self.wind_down.cancelled() => {}
            () = failed.cancelled() => {}
        }
    }

    /// Notes on which hosts a fault may be in force, for whoever has to leave at once.
    pub fn set_faulted(&self, hosts: Vec<String>) {
        *self.faulted.lock().unwrap_or_else(PoisonError::into_inner) = hosts;
    }

    /// The hosts on which a fault may be in force now.
    #[must_use]
    pub fn faulted(&self) -> Vec<String> {
        self.faulted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_ends_when_the_run_is_asked_to_wind_down() {
        let stop = Stop::default();
        assert!(stop.wind_down());
        assert!(!stop.wind_down());
        // Would outlive the test if the stop were not heard.
        stop.wait(Duration::from_secs(86_400), &CancellationToken::new()).await;
        assert!(stop.asked());
    }
}
