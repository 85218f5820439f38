//! What a run says while it goes on; whoever started it decides where that is shown.

use std::time::Duration;

/// A listener to a run's progress.
pub trait Tell: Send + Sync {
    /// Something that stays on the screen.
    fn say(&self, text: &str);

    /// What is being done now, and how long it will take at most.
    fn now(&self, what: &str, left: Option<Duration>);
}
