//! What a machine holds that a lab could leave behind, for comparison before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;

use super::call::Call;
use super::process;

/// Mounts, links, routes, network namespaces, control groups, kernel settings, and processes in namespaces other than
/// ours, one phrase each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint(BTreeSet<String>);

impl Footprint {
    /// What is there now.
    #[must_use]
    pub fn take() -> Self {
        let mut all = BTreeSet::new();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        all.extend(mounts.lines().map(|l| format!("mount {l}")));
        for (what, args) in [
            ("link", &["-o", "link"][..]),
            ("route", &["-4", "route", "show", "table", "all"]),
            ("route", &["-6", "route", "show", "table", "all"]),
        ] {
            let text = Call::new("ip", args).run().unwrap_or_default();
            // Up to the attributes, which change by themselves.
            let name = |l: &str| l.split(" mtu ").next().unwrap_or(l).trim().to_owned();
            all.extend(text.lines().map(|l| format!("{what} {}", name(l))));
        }
        all.extend(names("/run/netns").map(|n| format!("network namespace {n}")));
        all.extend(names("/run/systemd/nspawn/propagate").map(|n| format!("nspawn folder {n}")));
        for hierarchy in names("/sys/fs/cgroup") {
            let folder = Path::new("/sys/fs/cgroup").join(&hierarchy);
            let groups = fs::read_dir(&folder).into_iter().flatten().flatten();
            let groups = groups.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            all.extend(groups.map(|e| format!("control group {}", e.path().display())));
        }
        for name in super::sysctl::names() {
            let value = fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
            all.insert(format!("kernel setting {name} = {}", value.trim()));
        }
        let own = std::process::id();
        let namespace =
            |pid: u32, kind: &str| fs::metadata(format!("/proc/{pid}/ns/{kind}")).map(|m| m.st_ino()).ok();
        for p in process::all() {
            let elsewhere = |kind| namespace(p.pid, kind).is_some_and(|n| Some(n) != namespace(own, kind));
            if ["net", "pid", "mnt"].into_iter().any(elsewhere) {
                all.insert(format!("process {} ({})", p.pid, p.name()));
            }
        }
        Self(all)
    }

    /// What is in `self` and was not in `before`, and the reverse.
    #[must_use]
    pub fn difference(&self, before: &Self) -> Vec<String> {
        let new = self.0.difference(&before.0).map(|s| format!("new: {s}"));
        new.chain(before.0.difference(&self.0).map(|s| format!("gone: {s}"))).collect()
    }
}

fn names(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_both_ways() {
        let set = |all: &[&str]| Footprint(all.iter().map(|s| (*s).to_owned()).collect());
        assert_eq!(set(&["a", "b"]).difference(&set(&["b", "c"])), ["new: a", "gone: c"]);
        assert!(Footprint::take().0.iter().any(|s| s.starts_with("mount ")));
    }
}
