//! Hosts over SSH. The only room that knows russh.
//!
//! # Invariants
//! * A script is sent once. If its answer is lost, that is said ([`Outcome::Lost`]); it is never sent again.
//! * At most [`CHANNELS`] scripts at a time on one host, over one connection that is kept open.
//! * Every stream has a connection of its own: russh's session stops reading for all of its channels when one is
//!   not drained.

pub mod connection;
pub mod known_hosts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, Disconnect};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::time::timeout;

use self::connection::{Seat, Session, connect};
use self::known_hosts::KnownHosts;
use crate::host::frame::{Ending, Mode, Sift, conclude, nonce, wrap};
use crate::host::lines::{QUEUE, Split};
use crate::host::remote::{BoxFuture, Lines, Outcome, Remote, Script};
use crate::inventory::Inventory;

/// Scripts at a time on one host; sshd's default `MaxSessions` is 10, and the refusal does not say why.
pub const CHANNELS: usize = 8;

/// Greetings at a time over all hosts: each costs a key exchange.
const GREETINGS: usize = 16;

/// How long a host may take to open a channel on a living connection.
const OPEN: Duration = Duration::from_secs(10);

/// How long the end of a script may come after its limit: `timeout` first sends SIGTERM, then SIGKILL.
const GRACE: Duration = Duration::from_secs(4);

/// The hosts of an inventory.
pub struct Fleet {
    hosts: BTreeMap<String, Place>,
    greetings: Semaphore,
}

struct Place {
    seat: Seat,
    /// The command that reads a script.
    shell: &'static str,
    /// Held while connecting, so that many scripts at once make one connection.
    session: Mutex<Option<Arc<Session>>>,
    channels: Semaphore,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("hosts", &self.hosts.keys()).finish_non_exhaustive()
    }
}

/// Why an inventory's hosts cannot even be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FleetError(String);

impl Fleet {
    /// Makes ready to reach the hosts of an inventory: reads keys and known hosts, connects to nobody.
    ///
    /// # Errors
    /// A file that can't be read or is not what it should be.
    pub fn new(inventory: &Inventory) -> Result<Self, FleetError> {
        let file = inventory.known_hosts.clone().unwrap_or_else(|| inventory.folder.join("known_hosts"));
        let known = Arc::new(KnownHosts::load(&file).map_err(|e| {
            FleetError(format!(
                "{e}; host keys are always checked: collect them with ssh-keyscan, compare, and name \
                                the file as `known_hosts:` in the inventory"
            ))
        })?);
        let mut keys = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for host in inventory.hosts() {
            let key = match &host.ssh.key {
                None => None,
                Some(path) => {
                    let name = path.display().to_string();
                    if !keys.contains_key(path) {
                        let key = russh::keys::load_secret_key(path, None).map_err(|e| {
                            FleetError(format!(
                                "{}: failed to read the key {name}: {e}; a key with a passphrase must come from an agent \
                                 (leave `key:` out)",
                                host.name
                            ))
                        })?;
                        keys.insert(path.clone(), Arc::new(key));
                    }
                    keys.get(path).map(|k| (Arc::clone(k), name))
                }
            };
            let seat = Seat {
                host: host.name.clone(),
                address: host.ssh.address.clone(),
                port: host.ssh.port,
                user: host.ssh.user.clone(),
                key,
                known: Arc::clone(&known),
            };
            let shell = if host.ssh.sudo {
                "exec sudo -n /bin/sh -s -- \"$SSH_CONNECTION\""
            } else {
                "exec /bin/sh -s"
            };
            let place = Place { seat, shell, session: Mutex::new(None), channels: Semaphore::new(CHANNELS) };
            hosts.insert(host.name.clone(), place);
        }
        Ok(Self { hosts, greetings: Semaphore::new(GREETINGS) })
    }

    fn place(&self, host: &str) -> Result<&Place, String> {
        self.hosts.get(host).ok_or_else(|| format!("{host}: no such host in the inventory"))
    }

    async fn dial(&self, seat: &Seat) -> Result<Session, String> {
        // The semaphore is never closed.
        let _greeting = self.greetings.acquire().await.map_err(|e| e.to_string())?;
        connect(seat).await
    }

    /// A channel on the host's kept connection; made anew if it has died. Nothing has run when this fails.
    async fn channel(&self, place: &Place) -> Result<Channel<Msg>, String> {
        let mut reason = String::new();
        for _ in 0..2 {
            let session = {
                let mut kept = place.session.lock().await;
                match kept.as_ref().filter(|s| !s.is_closed()) {
                    Some(session) => Arc::clone(session),
                    None => {
                        let session = Arc::new(self.dial(&place.seat).await?);
                        *kept = Some(Arc::clone(&session));
                        session
                    }
                }
            };
            reason = match timeout(OPEN, session.channel_open_session()).await {
                Ok(Ok(channel)) => return Ok(channel),
                Ok(Err(e)) => format!("{}: no channel could be opened: {e}", place.seat.host),
                Err(_) => format!("{}: no channel was opened within {} s", place.seat.host, OPEN.as_secs()),
            };
            // A connection that opens no channel is of no use to anyone.
            let mut kept = place.session.lock().await;
            if kept.as_ref().is_some_and(|k| Arc::ptr_eq(k, &session)) {
                *kept = None;
            }
        }
        Err(reason)
    }

    async fn run_script(&self, host: &str, script: &Script) -> Outcome {
        let place = match self.place(host) {
            Ok(place) => place,
            Err(reason) => return Outcome::Refused { reason },
        };
        let Ok(_permit) = place.channels.acquire().await else {
            return Outcome::Refused { reason: format!("{host}: shut down") };
        };
        let channel = match self.channel(place).await {
            Ok(channel) => channel,
            Err(reason) => return Outcome::Refused { reason },
        };
        let started = Instant::now();
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::ToItsEnd);
        let mut out = Sift::new(&nonce, script.cap);
        let mut err = Sift::new(&nonce, script.cap);
        if let Err(e) = channel.exec(false, place.shell).await {
            return Outcome::Lost { reason: e.to_string() };
        }
        let (mut reader, writer) = channel.split();
        // In a task of its own: what the host writes must be read while the script is still being sent.
        let sender = tokio::spawn(async move {
            let sent = writer.data_bytes(text.into_bytes()).await;
            if sent.is_ok() {
                let _ = writer.eof().await;
            }
            writer
        });
        let ending = match timeout(script.limit + GRACE, hear(&mut reader, &mut out, &mut err)).await {
            Ok(ending) => ending,
            Err(_) => Ending::Deadline,
        };
        // Whatever comes later is of no use; the channel is given back before the permit is.
        match sender.await {
            Ok(writer) => {
                let _ = timeout(OPEN, writer.close()).await;
            }
            Err(e) => return Outcome::Lost { reason: e.to_string() },
        }
        conclude(out, err, ending, started.elapsed(), script.limit)
    }

    async fn stream_script(&self, host: &str, script: &Script) -> Result<Lines, String> {
        let place = self.place(host)?;
        let session = self.dial(&place.seat).await?;
        let told = |e: russh::Error| format!("{host}: the script could not be started: {e}");
        let channel = timeout(OPEN, session.channel_open_session())
            .await
            .map_err(|_| format!("{host}: no channel was opened within {} s", OPEN.as_secs()))?
            .map_err(told)?;
        channel.exec(false, place.shell).await.map_err(told)?;
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::WhileHeard);
        let mut split = Split::new(&nonce, script.cap);
        let (lines, receiver) = mpsc::channel(QUEUE);
        let (mut reader, writer) = channel.split();
        let end = script.limit + GRACE;
        tokio::spawn(async move {
            let sending = tokio::spawn(async move {
                let _ = writer.data_bytes(text.into_bytes()).await;
                writer
            });
            let reading = async {
                loop {
                    let message = tokio::select! {
                        () = lines.closed() => return,
                        message = reader.wait() => message,
                    };
                    match message {
                        Some(ChannelMsg::Data { data }) => {
                            for line in split.feed(&data) {
                                if lines.send(line).await.is_err() {
                                    return;
                                }
                            }
                            if split.ended() {
                                return;
                            }
                        }
                        Some(_) => {}
                        None => return,
                    }
                }
            };
            let _ = timeout(end, reading).await;
            // The end of its standard input ends the script on the host.
            if let Ok(writer) = sending.await {
                let _ = timeout(OPEN, async {
                    let _ = writer.eof().await;
                    let _ = writer.close().await;
                })
                .await;
            }
            let _ = timeout(OPEN, session.disconnect(Disconnect::ByApplication, "", "")).await;
        });
        Ok(receiver)
    }
}

/// Reads a script's output to its end marks, or to the end of the channel.
async fn hear(reader: &mut ChannelReadHalf, out: &mut Sift, err: &mut Sift) -> Ending {
    // Status, signal, end of data and closing come in any order; the last word counts.
    let mut ending = Ending::Cut("the connection broke".to_owned());
    while let Some(message) = reader.wait().await {
        match message {
            ChannelMsg::Data { data } => out.feed(&data),
            ChannelMsg::ExtendedData { data, ext: 1 } => err.feed(&data),
            ChannelMsg::ExitStatus { exit_status } => {
                ending = Ending::Exit(i32::try_from(exit_status).unwrap_or(-1));
            }
            ChannelMsg::ExitSignal { signal_name, .. } => ending = Ending::Signal(format!("{signal_name:?}")),
            _ => {}
        }
        if out.ended() && err.ended() {
            return Ending::Marked;
        }
    }
    ending
}

impl Remote for Fleet {
    fn run<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run_script(host, script))
    }

    fn stream<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Result<Lines, String>> {
        Box::pin(self.stream_script(host, script))
    }
}
