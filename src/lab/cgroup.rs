//! One control group a machine, in every hierarchy of the kernel.
//!
//! systemd-nspawn roots a machine's view of the hierarchies at the group that it was started in: without groups of
//! their own, all machines' systemds would share, and fight over, the root. With them a machine's processes can be
//! listed, and so killed, whatever became of their parents.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{During as _, Failure};
use super::site::Site;

/// How long the kernel may take to let go of a dead process's group.
const RELEASE: Duration = Duration::from_secs(5);

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    root: PathBuf,
    /// Version 1 with the cpuset controller: no process can be put into a group before it has processors and memory.
    cpuset: bool,
    /// Version 2: controllers have to be handed down.
    unified: bool,
}

/// The hierarchies in a mount table.
fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    let parse = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (root, kind, options) = (words.next()?, words.next()?, words.next()?);
        let known = root.starts_with("/sys/fs/cgroup") && matches!(kind, "cgroup" | "cgroup2");
        known.then(|| Hierarchy {
            root: root.into(),
            cpuset: kind == "cgroup" && options.split(',').any(|o| o == "cpuset"),
            unified: kind == "cgroup2",
        })
    };
    mounts.lines().filter_map(parse).collect()
}

fn mounted() -> Vec<Hierarchy> {
    hierarchies(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// A machine's group in every hierarchy.
pub(super) fn folders(site: &Site, machine: &str) -> Vec<PathBuf> {
    let group = site.group();
    mounted().into_iter().map(|h| h.root.join(&group).join(machine)).collect()
}

/// Makes a machine's groups.
pub(super) fn make(site: &Site, machine: &str) -> Result<(), Failure> {
    let group = site.group();
    for h in mounted() {
        let mut folder = h.root.clone();
        for name in [group.as_str(), machine] {
            let above = folder.clone();
            folder.push(name);
            if h.unified {
                hand_down(&above);
            }
            let made = fs::create_dir_all(&folder).and_then(|()| {
                if h.cpuset {
                    for file in ["cpuset.cpus", "cpuset.mems"] {
                        fs::write(folder.join(file), fs::read(above.join(file))?)?;
                    }
                }
                Ok(())
            });
            made.during(|| format!("making the control group {}", folder.display()))?;
        }
    }
    Ok(())
}

/// Gives a version 2 group's children every controller that it has. One that cannot be given (the kernel says so
/// for real-time processes in the wrong place) is not needed to run pods.
fn hand_down(folder: &Path) {
    let controllers = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    for c in controllers.split_whitespace() {
        let _ = fs::write(folder.join("cgroup.subtree_control"), format!("+{c}"));
    }
}

/// The processes in a machine's groups.
pub(super) fn members(site: &Site, machine: &str) -> Vec<u32> {
    let mut all: Vec<u32> =
        folders(site, machine).iter().flat_map(|f| below(f)).flat_map(|f| processes(&f)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn processes(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|l| l.parse().ok()).collect()
}

/// A folder and all below it, deepest last.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if folder.is_dir() {
        all.push(folder.to_owned());
    }
    let mut next = 0;
    while let Some(at) = all.get(next).cloned() {
        let inner = fs::read_dir(&at).into_iter().flatten().flatten();
        all.extend(inner.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        next += 1;
    }
    all
}

/// Removes a machine's groups, whose processes are dead.
pub(super) fn remove(site: &Site, machine: &str) -> Result<(), Failure> {
    folders(site, machine).iter().try_for_each(|f| remove_tree(f))
}

/// Removes the lab's group, when no machine has one any more.
pub(super) fn remove_all(site: &Site) -> Result<(), Failure> {
    lab_folders(site).iter().try_for_each(|f| remove_tree(f))
}

/// The lab's group in every hierarchy that has one.
pub(super) fn lab_folders(site: &Site) -> Vec<PathBuf> {
    mounted().into_iter().map(|h| h.root.join(site.group())).filter(|f| f.is_dir()).collect()
}

/// Puts this process into a machine's groups, so that it ends with the machine.
pub(super) fn join(site: &Site, machine: &str) -> Result<(), Failure> {
    let own = std::process::id().to_string();
    folders(site, machine).iter().try_for_each(|f| {
        fs::write(f.join("cgroup.procs"), &own)
            .during(|| format!("joining the control group {}", f.display()))
    })
}

/// The memory that a machine's processes hold beside the page cache, bytes.
pub(super) fn memory(site: &Site, machine: &str) -> Option<u64> {
    folders(site, machine).iter().find_map(|f| {
        let text = fs::read_to_string(f.join("memory.stat")).ok()?;
        // Version 1 sums a group's tree in `total_rss`; version 2's `anon` is such a sum.
        let value = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        value("total_rss ").or_else(|| value("anon "))
    })
}

fn remove_tree(folder: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        let mut all = below(folder);
        all.reverse();
        // A group that is still being emptied says "busy" for a moment.
        let failed = all.iter().find_map(|f| fs::remove_dir(f).err().map(|e| (f.clone(), e)));
        match failed {
            None => return Ok(()),
            Some(_) if start.elapsed() < RELEASE => std::thread::sleep(Duration::from_millis(20)),
            Some((f, e)) => return Err(e).during(|| format!("removing the control group {}", f.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions() {
        let v1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                  cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                  cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                  cgroup /srv/jail/cgroup/pids cgroup rw,pids 0 0\n";
        let all = hierarchies(v1);
        assert_eq!(all.len(), 3);
        assert!(all[0].cpuset && !all[1].cpuset && all[2].unified);
        let v2 = hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n");
        assert_eq!(v2, [Hierarchy { root: "/sys/fs/cgroup".into(), cpuset: false, unified: true }]);
    }
}
