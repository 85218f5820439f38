//! One SSH connection: dialled, the host's key checked, the user known. Everything with a time limit.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Algorithm, PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::known_hosts::{KnownHosts, Standing, fingerprint};

/// How long a host may take to accept a TCP connection.
const DIAL: Duration = Duration::from_secs(8);

/// How long key exchange and authentication may take together.
const GREET: Duration = Duration::from_secs(15);

/// A silent host is asked so often, ...
const KEEPALIVE: Duration = Duration::from_secs(5);

/// ... and given up after so many unanswered questions.
const UNANSWERED: usize = 3;

/// Longer than all keepalives together: ends a session whose key exchange or authentication hangs, which
/// keepalives do not cover.
const INACTIVE: Duration = Duration::from_secs(30);

/// Most identities of an agent that are tried: newer servers lock out whoever tries many.
const IDENTITIES: usize = 3;

/// How a host is reached.
#[derive(Debug, Clone)]
pub struct Seat {
    /// Its name in the inventory.
    pub host: String,
    /// Address or name.
    pub address: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// The key and the file it is from; absent: the agent's.
    pub key: Option<(Arc<PrivateKey>, String)>,
    /// The keys that hosts may show.
    pub known: Arc<KnownHosts>,
}

/// A live session.
pub type Session = Handle<Door>;

/// Checks the host's key, and keeps why it was refused.
#[derive(Debug)]
pub struct Door {
    seat: Seat,
    refused: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Door {
    type Error = russh::Error;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let reason = match offered {
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                let Seat { address, port, known, .. } = &self.seat;
                let file = known.path().display();
                let kind = key.algorithm();
                let print = fingerprint(key);
                match known.standing(address, *port, key) {
                    Standing::Known => return Ok(true),
                    Standing::Unknown => format!(
                        "its host key is not known: it shows {kind} {print}; compare that at the machine, then add it: \
                         ssh-keyscan -p {port} {address} >> {file}"
                    ),
                    Standing::Changed(lines) => {
                        let had: Vec<String> =
                            lines.iter().map(|(line, print)| format!("{print} (line {line})")).collect();
                        format!(
                            "its host key has changed: {file} has {}, it shows {kind} {print}; if the machine was \
                             installed anew, take the old lines out, else somebody stands between",
                            had.join(" and ")
                        )
                    }
                    Standing::Revoked(line) => {
                        format!("its host key {kind} {print} is revoked by {file}, line {line}")
                    }
                }
            }
            PublicKeyOrCertificate::Certificate(_) => {
                "it shows a host certificate, which is not read".to_owned()
            }
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        Ok(false)
    }
}

/// Connects and logs in.
///
/// # Errors
/// A sentence that names host, address and what to do; nothing ran on the host.
pub async fn connect(seat: &Seat) -> Result<Session, String> {
    let Seat { host, address, port, .. } = seat;
    let told = |what: String| format!("{host} ({address}:{port}): {what}");
    let dial = timeout(DIAL, TcpStream::connect((address.as_str(), *port)));
    let socket = match dial.await {
        Ok(Ok(socket)) => socket,
        Ok(Err(e)) => return Err(told(format!("cannot be reached: {e}; is it on, and does sshd run?"))),
        Err(_) => {
            return Err(told(format!("cannot be reached: no answer within {} s; is it on?", DIAL.as_secs())));
        }
    };
    // An exec is a few small packets: Nagle's algorithm would make each wait 40 ms for the peer's delayed ACK.
    socket.set_nodelay(true).map_err(|e| told(e.to_string()))?;
    let refused = Arc::new(Mutex::new(None));
    let door = Door { seat: seat.clone(), refused: Arc::clone(&refused) };
    let greeting = async {
        let mut session = client::connect_stream(config(seat), socket, door).await.map_err(|e| {
            let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            refused.unwrap_or_else(|| format!("the SSH greeting failed: {e}"))
        })?;
        log_in(&mut session, seat).await?;
        Ok(session)
    };
    match timeout(GREET, greeting).await {
        Ok(done) => done.map_err(told),
        Err(_) => Err(told(format!("sshd accepted, but did not let us in within {} s", GREET.as_secs()))),
    }
}

fn config(seat: &Seat) -> Arc<client::Config> {
    let mut config = client::Config {
        inactivity_timeout: Some(INACTIVE),
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: UNANSWERED,
        nodelay: true,
        ..client::Config::default()
    };
    let mut keys = seat.known.algorithms(&seat.address, seat.port);
    if !keys.is_empty() {
        keys.extend(config.preferred.key.iter().filter(|k| !keys.contains(k)).cloned().collect::<Vec<_>>());
        config.preferred.key = Cow::Owned(keys);
    }
    Arc::new(config)
}

async fn log_in(session: &mut Session, seat: &Seat) -> Result<(), String> {
    let user = &seat.user;
    let Some((key, file)) = &seat.key else { return with_agent(session, user).await };
    let hash = rsa_hash(session, &key.algorithm()).await;
    let with = PrivateKeyWithHashAlg::new(Arc::clone(key), hash);
    match session.authenticate_publickey(user, with).await {
        Ok(AuthResult::Success) => Ok(()),
        // An empty list of further methods is what a broken connection looks like.
        Ok(AuthResult::Failure { remaining_methods, .. }) if remaining_methods.is_empty() => {
            Err("the connection broke while logging in".to_owned())
        }
        Ok(AuthResult::Failure { .. }) => Err(format!(
            "user {user} is not let in with the key {file}; add its public half to the user's authorized_keys"
        )),
        Err(e) => Err(format!("the connection broke while logging in: {e}")),
    }
}

async fn rsa_hash(session: &Session, algorithm: &Algorithm) -> Option<russh::keys::HashAlg> {
    // Only RSA signs with a choice of hashes, and asking costs up to a second.
    match algorithm {
        Algorithm::Rsa { .. } => session.best_supported_rsa_hash().await.ok().flatten().flatten(),
        _ => None,
    }
}

async fn with_agent(session: &mut Session, user: &str) -> Result<(), String> {
    let advice = "give the host an `ssh: {key: FILE}` in the inventory, or start an agent and add a key";
    let mut agent =
        AgentClient::connect_env().await.map_err(|e| format!("no key, and no agent: {e}; {advice}"))?;
    let identities =
        agent.request_identities().await.map_err(|e| format!("the agent does not answer: {e}"))?;
    let mut tried = 0;
    for identity in identities.into_iter().take(IDENTITIES) {
        let AgentIdentity::PublicKey { key, .. } = identity else { continue };
        tried += 1;
        let hash = rsa_hash(session, &key.algorithm()).await;
        let done = session.authenticate_publickey_with(user, key, hash, &mut agent).await;
        if done.map_err(|e| format!("the agent failed to sign: {e}"))?.success() {
            return Ok(());
        }
    }
    Err(format!("user {user} is not let in with any of the agent's first {tried} keys; {advice}"))
}
