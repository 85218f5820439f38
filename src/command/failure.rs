//! Why a verb could not do its work: one clear message and the exit code that goes with it.

use crate::exit::Exit;

/// A verb's failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What, where, and what to do.
    pub message: String,
}

impl Failure {
    /// Wrong usage or input: nothing was touched.
    pub fn usage(error: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: error.to_string() }
    }

    /// The harness could not do its work.
    pub fn harness(error: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Harness, message: error.to_string() }
    }
}
