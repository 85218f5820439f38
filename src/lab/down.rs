//! `lab down`: ends a lab and whatever is left of one, found by its name and not by what `up` remembers.
//!
//! # Invariants
//! * A power cut, not a shutdown, because nothing of a lab is kept, and API servers take ten seconds to say good-bye.
//! * Removed are only processes in the lab's control groups or network namespace, mounts below its state folder, and
//!   files in that folder that `up` makes: a folder named by mistake loses nothing else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::call::Call;
use super::error::{During as _, Failure, LabError};
use super::machine::Place;
use super::process::{self, Process};
use super::record::{self, Lock};
use super::site::Site;
use super::topology::MACHINES;
use super::up::each;
use super::{cgroup, disk, network};

/// What `up` makes in a state folder; the record comes last, so that remains are recognised as a lab's to their end.
const MADE: [&str; 10] = [
    "machines",
    "pki",
    "pki.partial",
    "kubeconfigs",
    "inventory.yaml",
    "known_hosts",
    "admin.conf",
    "id_ed25519",
    "id_ed25519.pub",
    "lab.partial",
];
/// How long killed processes may take to be gone.
const END: Duration = Duration::from_secs(10);

/// Takes a lab down. Returns whether there was anything of it.
///
/// # Errors
/// [`LabError`]: which step failed on which machine, or what is left behind.
pub fn down(site: &Site) -> Result<bool, LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let _lock = Lock::take()?;
    let there = !remains(site).is_empty();
    remove(site)?;
    let left = remains(site);
    if left.is_empty() { Ok(there) } else { Err(LabError::Left(left)) }
}

/// Removes all of a lab; the caller holds the lock.
pub(super) fn remove(site: &Site) -> Result<(), LabError> {
    let places: Vec<Place> = MACHINES.into_iter().map(|m| Place::new(site, m)).collect();
    let mut failures = each(&places, Place::kill);
    if !failures.is_empty() {
        return Err(failures.swap_remove(0).into());
    }
    // Who is in the namespace still, came from outside: a proxy whose controller was killed, a shell.
    let strangers = [processes(site), process::in_network_namespace(&site.namespace_path())].concat();
    if let Some(p) = process::kill(&strangers, END).first() {
        let cause = format!("process {} ({}) does not end", p.pid, p.name());
        return Err(Failure::new("ending processes in the lab's network", cause).into());
    }
    unmount(site.state())?;
    network::remove(site)?;
    cgroup::remove_all(site)?;
    for folder in nspawn_folders(site) {
        disk::remove(&folder)?;
    }
    for name in MADE {
        disk::remove(&site.state().join(name))?;
    }
    disk::remove(&record::file(site))?;
    // With a file of somebody else in it, the folder stays.
    let _ = std::fs::remove_dir(site.state());
    record::forget(site)?;
    record::restore()?;
    Ok(())
}

/// Unmounts all below a folder.
pub(super) fn unmount(folder: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        let mut failed = None;
        for point in &process::mounts_below(folder) {
            failed = Call::new("umount", [point]).run().err().or(failed);
        }
        match failed {
            None => return Ok(()),
            // A dead machine's own mounts go a moment after its last process.
            Some(_) if start.elapsed() < END => std::thread::sleep(Duration::from_millis(50)),
            Some(e) => return Err(e).during(|| format!("unmounting what is below {}", folder.display())),
        }
    }
}

/// The processes in the lab's control groups.
fn processes(site: &Site) -> Vec<Process> {
    cgroup::members(site, "").into_iter().filter_map(Process::now).collect()
}

/// The folders that systemd-nspawn keeps for machines of the lab under `/run`, which stay when it is killed.
fn nspawn_folders(site: &Site) -> Vec<PathBuf> {
    let kinds = std::fs::read_dir("/run/systemd/nspawn").into_iter().flatten().flatten();
    let all = kinds.flat_map(|kind| MACHINES.map(|m| kind.path().join(site.machine(m))));
    all.filter(|path| path.exists()).collect()
}

/// What there is of a lab on this machine, one phrase each: processes, mounts, namespace, control groups, files.
#[must_use]
pub fn remains(site: &Site) -> Vec<String> {
    let mut all = Vec::new();
    let own = std::process::id();
    let supervisors = MACHINES.into_iter().filter_map(|m| Place::new(site, m).supervisor());
    let inside = processes(site).into_iter().chain(process::in_network_namespace(&site.namespace_path()));
    let mut processes: Vec<Process> = supervisors.chain(inside).filter(|p| p.pid != own).collect();
    processes.sort_by_key(|p| p.pid);
    processes.dedup();
    all.extend(processes.into_iter().map(|p| format!("process {} ({})", p.pid, p.name())));
    all.extend(process::mounts_below(site.state()).into_iter().map(|m| format!("mount {m}")));
    if std::fs::exists(site.namespace_path()).unwrap_or(false) {
        all.push(format!("network namespace {}", site.namespace()));
    }
    all.extend(cgroup::lab_folders(site).into_iter().map(|f| format!("control group {}", f.display())));
    all.extend(nspawn_folders(site).into_iter().map(|f| format!("folder {}", f.display())));
    let files = MADE.iter().map(|name| site.state().join(name)).chain([record::file(site)]);
    all.extend(files.filter(|f| f.exists()).map(|f| f.display().to_string()));
    all
}
