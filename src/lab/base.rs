//! The tree that all machines share: Debian with systemd, sshd, iptables, containerd and haproxy, made once and cached.
//!
//! # Invariants
//! * The cached folder's name holds a hash of the recipe, so that another recipe is another tree.
//! * It is complete or absent: made beside its place, then moved there. debootstrap runs in process and mount
//!   namespaces of its own, so that it leaves neither processes nor mounts when we are killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::apt;
use super::call::Call;
use super::components::fingerprint;
use super::disk;
use super::error::{During as _, Failure};
use super::progress::{Stage, Track};

const SUITE: &str = "bookworm";
const PACKAGES: &str = include_str!("../../lab/base/packages");
/// What packages have switched on or left that no machine of a lab should have: one glob-free path a line.
const REMOVED: &str = include_str!("../../lab/base/removed");

/// Where the tree is, or is to be.
pub(super) fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("base-{SUITE}-{}", fingerprint(&[SUITE, PACKAGES, REMOVED])))
}

/// Makes the tree, if it is not there.
pub(super) fn make(cache: &Path, track: &Track<'_>) -> Result<PathBuf, Failure> {
    let done = folder(cache);
    if done.is_dir() {
        return Ok(done);
    }
    let mirror = apt::mirror(Path::new("/etc/apt"), SUITE)
        .ok_or("no mirror of Debian is named in /etc/apt/sources.list or /etc/apt/sources.list.d")
        .during(|| "finding a Debian mirror".to_owned())?;
    let partial = done.with_extension("partial");
    disk::remove(&partial)?;
    track.note(Stage::Base, None, format!("debootstrap of {SUITE} from {mirror}"));
    let include = PACKAGES.lines().collect::<Vec<_>>().join(",");
    let args = [
        "--variant=minbase".to_owned(),
        format!("--include={include}"),
        SUITE.to_owned(),
        partial.display().to_string(),
        mirror,
    ];
    Call::tied("debootstrap", args).limit(Duration::from_secs(1200)).run().map_err(|e| {
        let log = std::fs::read_to_string(partial.join("debootstrap/debootstrap.log")).unwrap_or_default();
        let lines: Vec<String> = log.lines().map(str::to_owned).collect();
        Failure::new("making the shared tree", e)
            .with_log("debootstrap.log", lines[lines.len().saturating_sub(15)..].to_vec())
    })?;
    for path in REMOVED.lines() {
        disk::remove(&partial.join(path.trim_start_matches('/')))?;
    }
    for folder in ["etc/ssh", "var/cache/apt/archives"] {
        let inner = std::fs::read_dir(partial.join(folder)).during(|| format!("reading {folder}"))?;
        for entry in inner.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Host keys would be shared by all machines.
            if name.starts_with("ssh_host_") || name.ends_with(".deb") {
                disk::remove(&entry.path())?;
            }
        }
    }
    disk::write(&partial.join("etc/machine-id"), "", 0o444)?;
    disk::rename(&partial, &done)?;
    Ok(done)
}
