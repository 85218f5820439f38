//! One host: its kept connection, and how many may use it at once.
//!
//! # Invariants
//! * While one connects, others wait; if that fails, those who waited get its answer instead of trying again. A host
//!   that is off costs one time limit, not one for each script, and nobody is locked out for knocking too often.
//! * Nothing has run on the host when a channel could not be had.

use std::sync::Arc;
use std::time::Duration;

use russh::Channel;
use russh::client::Msg;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{Seat, Session, connect};

/// Scripts at a time on one host; sshd's default `MaxSessions` is 10, and the refusal does not say why.
pub const CHANNELS: usize = 8;

/// Greetings at a time on one host: from ten unauthenticated ones on, sshd drops some by chance (`MaxStartups`).
const KNOCKS: usize = 8;

/// How long to wait for a channel to be given back when sshd opens no more.
const FULL: Duration = Duration::from_millis(50);

/// A host of the fleet.
pub(super) struct Place {
    pub(super) seat: Seat,
    /// The command that reads a script.
    pub(super) shell: &'static str,
    kept: Mutex<Kept>,
    channels: Semaphore,
    knocks: Semaphore,
    greetings: Arc<Semaphore>,
}

#[derive(Default)]
struct Kept {
    session: Option<Arc<Session>>,
    /// When connecting failed last, and why.
    failed: Option<(Instant, String)>,
}

impl Place {
    pub(super) fn new(seat: Seat, sudo: bool, greetings: Arc<Semaphore>) -> Self {
        // sudo takes SSH_CONNECTION away, so it is handed on as an argument.
        let shell = if sudo { "exec sudo -n /bin/sh -s -- \"$SSH_CONNECTION\"" } else { "exec /bin/sh -s" };
        Self {
            seat,
            shell,
            kept: Mutex::default(),
            channels: Semaphore::new(CHANNELS),
            knocks: Semaphore::new(KNOCKS),
            greetings,
        }
    }

    /// The right to use one of the host's channels.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, String> {
        self.channels.acquire().await.map_err(|e| e.to_string())
    }

    /// A connection of its own.
    pub(super) async fn dial(&self) -> Result<Session, String> {
        let _knock = self.knocks.acquire().await.map_err(|e| e.to_string())?;
        let _greeting = self.greetings.acquire().await.map_err(|e| e.to_string())?;
        connect(&self.seat).await
    }

    /// The kept connection; made anew if it has died. A failure since `asked` is the answer.
    async fn session(&self, asked: Instant) -> Result<Arc<Session>, String> {
        let mut kept = self.kept.lock().await;
        if let Some(session) = kept.session.as_ref().filter(|s| !s.is_closed()) {
            return Ok(Arc::clone(session));
        }
        kept.session = None;
        if let Some((when, reason)) = &kept.failed
            && *when >= asked
        {
            return Err(reason.clone());
        }
        match self.dial().await {
            Ok(session) => {
                let session = Arc::new(session);
                kept.session = Some(Arc::clone(&session));
                Ok(session)
            }
            Err(reason) => {
                kept.failed = Some((Instant::now(), reason.clone()));
                Err(reason)
            }
        }
    }

    /// No longer uses that connection for new channels.
    async fn forget(&self, session: &Arc<Session>) {
        let mut kept = self.kept.lock().await;
        if kept.session.as_ref().is_some_and(|k| Arc::ptr_eq(k, session)) {
            kept.session = None;
        }
    }

    /// A channel on the kept connection, or on a new one if that turns out to be dead.
    pub(super) async fn channel(&self, asked: Instant) -> Result<Channel<Msg>, String> {
        match self.open(&self.session(asked).await?).await {
            Opened::Channel(channel) => Ok(channel),
            Opened::Full(reason) => Err(reason),
            Opened::Dead(_) => match self.open(&self.session(asked).await?).await {
                Opened::Channel(channel) => Ok(channel),
                Opened::Full(reason) | Opened::Dead(reason) => Err(reason),
            },
        }
    }

    async fn open(&self, session: &Arc<Session>) -> Opened {
        let patience = self.seat.patience.open;
        let end = Instant::now() + patience;
        let dead = loop {
            match timeout_at(end, session.channel_open_session()).await {
                Ok(Ok(channel)) => return Opened::Channel(channel),
                // The server answered, so the connection lives: a channel is free again when a script ends.
                Ok(Err(russh::Error::ChannelOpenFailure(_))) if Instant::now() + FULL < end => {
                    sleep(FULL).await
                }
                Ok(Err(russh::Error::ChannelOpenFailure(e))) => {
                    return Opened::Full(format!(
                        "{} opens no channel ({e:?}); does sshd's MaxSessions allow {CHANNELS}?",
                        self.seat
                    ));
                }
                Ok(Err(e)) => {
                    break format!("{} broke the connection when a channel was asked for: {e}", self.seat);
                }
                Err(_) => {
                    break format!("{} opened no channel within {:.0} s", self.seat, patience.as_secs_f64());
                }
            }
        };
        self.forget(session).await;
        Opened::Dead(dead)
    }

    /// Does something that must not be waited for longer than for a channel; a failure is of no interest any more.
    pub(super) async fn briefly<T>(&self, what: impl Future<Output = T>) {
        let _ = timeout(self.seat.patience.open, what).await;
    }
}

enum Opened {
    Channel(Channel<Msg>),
    /// The connection lives, but sshd opens no more channels.
    Full(String),
    /// The connection is of no use.
    Dead(String),
}
