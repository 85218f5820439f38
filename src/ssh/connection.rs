//! One SSH connection: dialled, the host's key checked, the user known. Everything with a time limit.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Algorithm, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::known_hosts::{KnownHosts, Standing, fingerprint};

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a host to accept a TCP connection.
    pub dial: Duration,
    /// For key exchange and authentication together.
    pub greet: Duration,
    /// For a living connection to open a channel.
    pub open: Duration,
    /// A silent host is asked so often whether it is there, ...
    pub keepalive: Duration,
    /// ... and its connection given up after so many unanswered questions.
    pub unanswered: u32,
}

impl Default for Patience {
    /// A dead host is given up after 20 s: longer than a switch needs to come back, and still within the time in
    /// which a fault's dead-man's switch is renewed.
    fn default() -> Self {
        Self {
            dial: Duration::from_secs(8),
            greet: Duration::from_secs(15),
            open: Duration::from_secs(10),
            keepalive: Duration::from_secs(5),
            unanswered: 3,
        }
    }
}

impl Patience {
    /// Longer than all keepalives together: ends a session whose key exchange or authentication hangs, which
    /// keepalives do not cover.
    fn inactive(&self) -> Duration {
        self.keepalive * (self.unanswered + 3)
    }
}

/// Most identities of an agent that are tried: newer servers lock out whoever tries many.
const IDENTITIES: usize = 3;

/// How a host is reached.
#[derive(Debug, Clone)]
pub struct Seat {
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
    /// How long to wait for what.
    pub patience: Patience,
}

impl std::fmt::Display for Seat {
    /// `address:port`, a v6 address in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, port, .. } = self;
        if address.contains(':') { write!(f, "[{address}]:{port}") } else { write!(f, "{address}:{port}") }
    }
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
            PublicKeyOrCertificate::PublicKey { key, .. } => match unfit(&self.seat, key) {
                None => return Ok(true),
                Some(reason) => reason,
            },
            PublicKeyOrCertificate::Certificate(_) => {
                "shows a host certificate, which is not read; let sshd offer its plain host key too"
                    .to_owned()
            }
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        Ok(false)
    }
}

/// Why a host's key is not the one that it should show; absent if it is.
fn unfit(seat: &Seat, key: &PublicKey) -> Option<String> {
    let Seat { address, port, known, .. } = seat;
    let file = known.path().display();
    let shows = format!("{} {}", key.algorithm(), fingerprint(key));
    match known.standing(address, *port, key) {
        Standing::Known => None,
        Standing::Unknown => Some(format!(
            "shows a host key that is not known, {shows}; compare that at the machine, then add it: \
             ssh-keyscan -p {port} {address} >> {file}"
        )),
        Standing::Changed(lines) => {
            let had: Vec<String> = lines.iter().map(|(n, print)| format!("{print} (line {n})")).collect();
            let name = if *port == 22 { address.clone() } else { format!("[{address}]:{port}") };
            Some(format!(
                "shows another host key than before: {file} has {}, it shows {shows}; if the machine was installed \
                 anew, take the old ones out (ssh-keygen -f {file} -R '{name}') and add the new one, else somebody \
                 stands between",
                had.join(" and ")
            ))
        }
        Standing::Revoked(line) => Some(format!(
            "shows the host key {shows}, which {file}, line {line}, revokes; give the machine a new key"
        )),
    }
}

/// Connects and logs in.
///
/// # Errors
/// A sentence that names address and what to do; nothing ran on the host.
pub async fn connect(seat: &Seat) -> Result<Session, String> {
    let Patience { dial, greet, .. } = seat.patience;
    let told = |what: String| format!("{seat} {what}");
    let socket = match timeout(dial, TcpStream::connect((seat.address.as_str(), seat.port))).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(e)) => return Err(told(format!("cannot be reached: {e}; is it on, and does sshd run?"))),
        Err(_) => {
            return Err(told(format!(
                "cannot be reached: no answer within {:.0} s; is it on, and the way to it open?",
                dial.as_secs_f64()
            )));
        }
    };
    // An exec is a few small packets: Nagle's algorithm would make each wait 40 ms for the peer's delayed ACK.
    socket.set_nodelay(true).map_err(|e| told(e.to_string()))?;
    let refused = Arc::new(Mutex::new(None));
    let door = Door { seat: seat.clone(), refused: Arc::clone(&refused) };
    let greeting = async {
        let mut session = client::connect_stream(config(seat), socket, door).await.map_err(|e| {
            let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            refused.unwrap_or_else(|| {
                format!("did not greet as an SSH server: {e}; is that sshd's port, and is sshd overloaded?")
            })
        })?;
        log_in(&mut session, seat).await?;
        Ok(session)
    };
    match timeout(greet, greeting).await {
        Ok(done) => done.map_err(told),
        Err(_) => Err(told(format!(
            "accepted the connection, but let nobody in within {:.0} s; is sshd overloaded?",
            greet.as_secs_f64()
        ))),
    }
}

fn config(seat: &Seat) -> Arc<client::Config> {
    let mut config = client::Config {
        inactivity_timeout: Some(seat.patience.inactive()),
        keepalive_interval: Some(seat.patience.keepalive),
        keepalive_max: seat.patience.unanswered as usize,
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
            Err("broke the connection while we logged in".to_owned())
        }
        Ok(AuthResult::Failure { .. }) => Err(format!(
            "does not let user {user} in with the key {file}; add its public half to the user's authorized_keys"
        )),
        Err(e) => Err(format!("broke the connection while we logged in: {e}")),
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
    let mut agent = AgentClient::connect_env()
        .await
        .map_err(|e| format!("needs a key, and there is no agent: {e}; {advice}"))?;
    let identities = agent
        .request_identities()
        .await
        .map_err(|e| format!("needs a key, and the agent does not answer: {e}; {advice}"))?;
    let mut tried = 0;
    for identity in identities.into_iter().take(IDENTITIES) {
        let AgentIdentity::PublicKey { key, .. } = identity else { continue };
        tried += 1;
        let hash = rsa_hash(session, &key.algorithm()).await;
        let done = session.authenticate_publickey_with(user, key, hash, &mut agent).await;
        if done.map_err(|e| format!("needs a key, and the agent does not sign: {e}; {advice}"))?.success() {
            return Ok(());
        }
    }
    Err(format!("does not let user {user} in with any of the agent's first {tried} keys; {advice}"))
}
