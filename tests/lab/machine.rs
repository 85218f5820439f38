//! The state of this machine that a lab could leave behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What is there now, each thing as a line.
pub(crate) struct Machine(BTreeSet<String>);

impl Machine {
    pub(crate) fn now() -> Self {
        let mut all = BTreeSet::new();
        for line in std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines() {
            // Field 5 is the mount point; ids differ from one mount to the next.
            all.insert(format!("mount {}", line.split(' ').nth(4).unwrap()));
        }
        for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.bytes().all(|b| b.is_ascii_digit()) {
                // Kernel threads have no command line; they come and go by themselves.
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                if ["nspawn", "kube", "etcd", "containerd", "haproxy"].iter().any(|w| line.contains(w)) {
                    all.insert(format!("process {}", line.trim()));
                }
            }
        }
        for line in lines(&["ip", "-o", "link"]) {
            all.insert(format!("link {}", line.split(": ").nth(1).unwrap_or_default()));
        }
        for line in lines(&["ip", "netns", "list"]) {
            all.insert(format!("namespace {line}"));
        }
        for line in lines(&["losetup", "-n", "-O", "NAME,BACK-FILE"]) {
            all.insert(format!("loop device {line}"));
        }
        cgroups(Path::new("/sys/fs/cgroup"), 4, &mut all);
        Self(all)
    }

    /// What is in `after` and not here, and what is here and gone after.
    pub(crate) fn differences(&self, after: &Self) -> Vec<String> {
        let come = after.0.difference(&self.0).map(|l| format!("new: {l}"));
        let gone = self.0.difference(&after.0).map(|l| format!("gone: {l}"));
        come.chain(gone).collect()
    }
}

fn lines(command: &[&str]) -> Vec<String> {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn cgroups(folder: &Path, depth: usize, all: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            all.insert(format!("cgroup {}", entry.path().display()));
            if depth > 0 {
                cgroups(&entry.path(), depth - 1, all);
            }
        }
    }
}
