//! Entering a network namespace of this machine, and coming back.
//!
//! # Invariants
//! * Only the calling thread moves; threads that it starts afterwards are where it is. So this is called while
//!   there is but one thread.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;

/// Where `ip netns` keeps namespaces by name.
const NAMESPACES: &str = "/run/netns";

/// Why a namespace was not entered.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// There is none of that name.
    #[error(
        "the inventory's network namespace {path} is not there: {error}; is the lab up? (`rackrift lab up`)"
    )]
    Absent {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The system refused.
    #[error("failed to enter the network namespace {path}: {error}; that needs root, and a namespace there")]
    Refused {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// The namespace in which the thread was before.
#[derive(Debug)]
pub struct Outside {
    namespace: File,
}

/// Moves the calling thread into the namespace of that name, or that path if there is a slash in it.
///
/// # Errors
/// See [`EnterError`]; the thread is then where it was.
pub fn enter(name: &str) -> Result<Outside, EnterError> {
    let here = Path::new("/proc/thread-self/ns/net");
    let open =
        |path: &Path| File::open(path).map_err(|error| EnterError::Absent { path: path.to_owned(), error });
    let outside = Outside { namespace: open(here)? };
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMESPACES).join(name) };
    let inside = open(&path)?;
    go(&inside, &path)?;
    Ok(outside)
}

impl Outside {
    /// Moves the calling thread back.
    ///
    /// # Errors
    /// [`EnterError::Refused`].
    pub fn back(self) -> Result<(), EnterError> {
        go(&self.namespace, Path::new("outside"))
    }
}

fn go(namespace: &File, path: &Path) -> Result<(), EnterError> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|e| EnterError::Refused { path: path.to_owned(), error: e.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_entered_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-namespace");
        std::fs::write(&file, "").unwrap();
        let said =
            [enter("rackrift-none"), enter(file.to_str().unwrap())].map(|e| e.unwrap_err().to_string());
        let said = said.join("\n").replace(folder.path().to_str().unwrap(), "FOLDER");
        insta::assert_snapshot!(said);
    }

    /// On a thread of its own: only that one moves.
    #[test]
    fn there_and_back_again() {
        let of = |path: &str| std::fs::read_link(path).unwrap();
        let before = of("/proc/thread-self/ns/net");
        let Ok(mut holder) = std::process::Command::new("unshare").args(["-n", "sleep", "60"]).spawn() else {
            return;
        };
        let path = format!("/proc/{}/ns/net", holder.id());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::fs::read_link(&path).is_ok_and(|n| n == before) && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let root = rustix::process::geteuid().is_root();
        let seen = std::thread::spawn({
            let path = path.clone();
            move || {
                let outside = enter(&path)?;
                let inside = of("/proc/thread-self/ns/net");
                outside.back()?;
                Ok::<_, EnterError>((inside, of("/proc/thread-self/ns/net")))
            }
        })
        .join()
        .unwrap();
        let there = of(&path);
        holder.kill().unwrap();
        holder.wait().unwrap();
        if root {
            assert_ne!(there, before, "unshare made a namespace");
            assert_eq!(seen.unwrap(), (there, before.clone()));
        }
        assert_eq!(of("/proc/thread-self/ns/net"), before);
    }
}
