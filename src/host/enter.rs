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
    #[error("failed to enter the network namespace {path}: {error}; that needs root")]
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

/// Moves the calling thread into the namespace of that name.
///
/// # Errors
/// See [`EnterError`]; the thread is then where it was.
pub fn enter(name: &str) -> Result<Outside, EnterError> {
    let here = Path::new("/proc/thread-self/ns/net");
    let open =
        |path: &Path| File::open(path).map_err(|error| EnterError::Absent { path: path.to_owned(), error });
    let outside = Outside { namespace: open(here)? };
    let path = Path::new(NAMESPACES).join(name);
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
    fn a_namespace_that_is_not_there_is_told() {
        let error = enter("rackrift-none").unwrap_err().to_string();
        assert!(error.contains("/run/netns/rackrift-none is not there"), "{error}");
    }
}
