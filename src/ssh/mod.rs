//! Hosts over SSH. The only room that knows russh.
//!
//! # Invariants
//! * A script is sent once. If its answer is lost, that is said ([`Outcome::Lost`]); it is never sent again.
//! * At most [`CHANNELS`] scripts at a time on one host, over one connection that is kept open.
//! * Every stream has a connection of its own: russh's session stops reading for all of its channels when one is
//!   not drained.
//! * Every wait has a limit ([`Patience`], and the script's own).
//! * Reasons name the address, not the host: who asked knows the host, and names it.

pub mod connection;
pub mod known_hosts;
mod place;
mod script;
mod stream;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::PrivateKey;
use tokio::sync::Semaphore;

use self::connection::Seat;
use self::known_hosts::KnownHosts;
use self::place::Place;
use crate::host::remote::{BoxFuture, Lines, Outcome, Remote, Script};
use crate::inventory::{Host, Inventory};

pub use self::connection::Patience;
pub use self::place::CHANNELS;

/// Greetings at a time over all hosts: each costs a key exchange.
const GREETINGS: usize = 16;

/// The hosts of an inventory.
pub struct Fleet {
    hosts: BTreeMap<String, Place>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("hosts", &self.hosts.keys()).finish_non_exhaustive()
    }
}

/// Why an inventory's hosts cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The known host keys.
    #[error(
        "{reason}; host keys are always checked: collect them with ssh-keyscan, compare them at the machines, and \
         name the file as `known_hosts:` in the inventory"
    )]
    KnownHosts {
        /// What is wrong, with file and line.
        reason: String,
    },
    /// A private key that needs a passphrase.
    #[error(
        "{host}: the key {path} has a passphrase, which is not asked for: `ssh-add {path}` and leave `key:` out"
    )]
    Encrypted {
        /// The first host that uses it.
        host: String,
        /// Its file.
        path: PathBuf,
    },
    /// A private key that can't be read.
    #[error("{host}: failed to read the key {path}: {reason}; `key:` must name a private key of OpenSSH")]
    Key {
        /// The first host that uses it.
        host: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Fleet {
    /// Makes ready to reach the hosts of an inventory: reads keys and known hosts, connects to nobody.
    ///
    /// # Errors
    /// A file that can't be read or is not what it should be.
    pub fn new(inventory: &Inventory) -> Result<Self, FleetError> {
        Self::with(inventory, Patience::default())
    }

    /// The same with other time limits.
    ///
    /// # Errors
    /// As [`Fleet::new`].
    pub fn with(inventory: &Inventory, patience: Patience) -> Result<Self, FleetError> {
        let file = inventory.known_hosts.clone().unwrap_or_else(|| inventory.folder.join("known_hosts"));
        let known = KnownHosts::load(&file).map_err(|reason| FleetError::KnownHosts { reason })?;
        let known = Arc::new(known);
        let greetings = Arc::new(Semaphore::new(GREETINGS));
        let mut keys = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for host in inventory.hosts() {
            let key = match &host.ssh.key {
                None => None,
                Some(path) => Some((key(&mut keys, host, path)?, path.display().to_string())),
            };
            let seat = Seat {
                address: host.ssh.address.clone(),
                port: host.ssh.port,
                user: host.ssh.user.clone(),
                key,
                known: Arc::clone(&known),
                patience,
            };
            hosts.insert(host.name.clone(), Place::new(seat, host.ssh.sudo, Arc::clone(&greetings)));
        }
        Ok(Self { hosts })
    }

    fn place(&self, host: &str) -> Result<&Place, String> {
        self.hosts.get(host).ok_or_else(|| "there is no such host in the inventory".to_owned())
    }
}

/// Reads a private key, once for all hosts that use it.
fn key<'a>(
    read: &mut BTreeMap<&'a Path, Arc<PrivateKey>>,
    host: &Host,
    path: &'a Path,
) -> Result<Arc<PrivateKey>, FleetError> {
    if let Some(key) = read.get(path) {
        return Ok(Arc::clone(key));
    }
    let key = russh::keys::load_secret_key(path, None).map_err(|e| {
        let (host, path) = (host.name.clone(), path.to_owned());
        match e {
            russh::keys::Error::KeyIsEncrypted => FleetError::Encrypted { host, path },
            other => FleetError::Key { host, path, reason: other.to_string() },
        }
    })?;
    let key = Arc::new(key);
    read.insert(path, Arc::clone(&key));
    Ok(key)
}

impl Remote for Fleet {
    fn run<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.place(host) {
                Ok(place) => place.run(script).await,
                Err(reason) => Outcome::Refused { reason },
            }
        })
    }

    fn stream<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Result<Lines, String>> {
        Box::pin(async move { self.place(host)?.stream(script).await })
    }
}
