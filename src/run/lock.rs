//! One run at a time on a lab: a lock of this machine, held while the file is open.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A held lab lock; released when dropped or when the process ends, however it ends.
#[derive(Debug)]
pub struct LabLock {
    _file: File,
}

/// Why the lock was not given.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("lab `{lab}` is in use by process {holder}; wait for it, or end it and run `rackrift heal`")]
    Held {
        /// The lab.
        lab: String,
        /// The pid written into the lock file.
        holder: String,
    },
    /// The system refused.
    #[error("failed to lock {path}: {error}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

fn path(lab: &str) -> PathBuf {
    let name: String = lab.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    std::env::temp_dir().join(format!("rackrift-{name}.lock"))
}

impl LabLock {
    /// The process that holds the lock of a lab, if one does. Only looks: a run that starts meanwhile is not refused.
    #[must_use]
    pub fn holder(lab: &str) -> Option<String> {
        let file = std::fs::metadata(path(lab)).ok()?.ino();
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`; what waits for a lock has `->` in the second place.
        locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, "FLOCK", _, "WRITE", pid, place, ..] = words.as_slice() else { return None };
            let inode = place.rsplit(':').next()?;
            (inode == file.to_string()).then(|| (*pid).to_owned())
        })
    }

    /// Takes the lock of a lab without waiting.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn take(lab: &str) -> Result<Self, LockError> {
        let path = path(lab);
        let io = |error| LockError::Io { path: path.clone(), error };
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(io)?;
        if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(io)?;
            return Err(LockError::Held { lab: lab.to_owned(), holder: holder.trim().to_owned() });
        }
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_on_the_same_lab_is_refused_and_names_the_first() {
        let name = format!("lock-test-{}", std::process::id());
        assert_eq!(LabLock::holder(&name), None);
        let held = LabLock::take(&name).unwrap();
        assert_eq!(LabLock::holder(&name), Some(std::process::id().to_string()));
        let message = LabLock::take(&name).unwrap_err().to_string();
        assert!(message.contains(&std::process::id().to_string()), "{message}");
        assert!(LabLock::take(&format!("{name}-other")).is_ok());
        drop(held);
        assert!(LabLock::take(&name).is_ok());
        for suffix in ["", "-other"] {
            std::fs::remove_file(std::env::temp_dir().join(format!("rackrift-{name}{suffix}.lock"))).unwrap();
        }
    }
}
