//! The seam between what is to be done on hosts and how it gets there.
//!
//! Everything that acts on a host is a POSIX sh script on standard input to `exec /bin/sh -s`: no agent, no
//! quoting on a command line, no dependence on the login shell. Over SSH ([`crate::ssh`]) in a lab, by a plain
//! child process in tests over network namespaces.
//!
//! # Invariants
//! * A lost answer is its own outcome ([`Outcome::Lost`]): the script may have run, and may run on. Observe,
//!   never blindly repeat.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A boxed future, so that [`Remote`] can be used as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A script for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// POSIX sh. `PATH` and `LC_ALL=C` are set by the transport; nothing else may be assumed.
    pub body: String,
    /// How long to wait for its end.
    pub limit: Duration,
    /// How many bytes of each of stdout and stderr to keep; the rest is read and dropped.
    pub cap: usize,
}

impl Script {
    /// A script with the limits that suit a short command: 20 s, 4 MiB.
    #[must_use]
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into(), limit: Duration::from_secs(20), cap: 4 << 20 }
    }

    /// The same with another time limit.
    #[must_use]
    pub const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same with another output cap, bytes.
    #[must_use]
    pub const fn cap(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end.
    Done(Finished),
    /// It, or its shell, was killed by a signal.
    Signalled {
        /// The signal's name without `SIG`.
        signal: String,
        /// What it wrote before.
        output: Finished,
    },
    /// It did not end in time. It may still run.
    TimedOut {
        /// The limit that passed.
        after: Duration,
        /// What it had written by then.
        output: Finished,
    },
    /// The connection broke before the end marker came: it may have run or not, and may run on.
    Lost {
        /// What was seen.
        reason: String,
    },
    /// It certainly did not run: no connection, key refused, no session.
    Refused {
        /// Why, and what to do. It names the address, not the host, which whoever asked puts before it.
        reason: String,
    },
}

/// What a script wrote, and its exit status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Exit status; -1 if it did not come.
    pub status: i32,
    /// Standard output between the markers, lossy UTF-8.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Some output was dropped over the cap.
    pub truncated: bool,
}

impl Outcome {
    /// Standard output of a script that ended with status 0.
    ///
    /// # Errors
    /// A sentence that says how it ended otherwise, with the last line of standard error.
    pub fn ok(self) -> Result<String, String> {
        match self {
            Self::Done(f) if f.status == 0 => Ok(f.stdout),
            other => Err(other.to_string()),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = |t: &str| t.trim_end().lines().last().unwrap_or("").to_owned();
        match self {
            Self::Done(d) if d.status == 0 => write!(f, "done"),
            Self::Done(d) => write!(f, "exit status {}: {}", d.status, last(&d.stderr)),
            Self::Signalled { signal, output } => {
                write!(f, "killed by SIG{signal}: {}", last(&output.stderr))
            }
            Self::TimedOut { after, .. } => {
                write!(f, "no end within {:.1} s; it may still run", after.as_secs_f64())
            }
            Self::Lost { reason } => write!(f, "answer lost ({reason}); it may have run"),
            Self::Refused { reason } => write!(f, "{reason}"),
        }
    }
}

/// A line of a long-running script's standard output.
pub type Lines = tokio::sync::mpsc::Receiver<String>;

/// Runs scripts on hosts, named as in the inventory.
pub trait Remote: Send + Sync {
    /// Runs a script to its end.
    fn run<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome>;

    /// Starts a script and hands out its standard output line by line until it ends or the receiver is dropped
    /// (which ends the script). Each stream has a connection of its own, so that a slow reader harms nobody.
    ///
    /// # Errors
    /// A sentence, if the script could not be started.
    fn stream<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Result<Lines, String>>;
}
