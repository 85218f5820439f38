//! Processes of the kernel, named so that a number that was given to another process meanwhile is not taken for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process and when it started, in clock ticks since boot: the pair is unique until the machine reboots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    start: u64,
}

/// The fields of `/proc/PID/stat` after the name, which may hold spaces and brackets itself: state, parent ...
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

impl Process {
    /// The process that a file `PID START` names, if it still lives.
    pub(super) fn recorded(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<u64>);
        let (pid, start) = (words.next()?.ok()?, words.next()?.ok()?);
        let process = Self { pid: u32::try_from(pid).ok()?, start };
        process.lives().then_some(process)
    }

    /// The process of that number now.
    pub(super) fn now(pid: u32) -> Option<Self> {
        // proc(5): starttime is field 22, the 20th after the name.
        let start = stat(pid)?.get(19)?.parse().ok()?;
        Some(Self { pid, start })
    }

    /// Whether it still lives; a zombie does not.
    pub(super) fn lives(self) -> bool {
        let fields = stat(self.pid);
        fields.is_some_and(|f| f[0] != "Z" && f.get(19).and_then(|s| s.parse().ok()) == Some(self.start))
    }

    /// Its children.
    pub(super) fn children(self) -> Vec<Self> {
        let parent = self.pid.to_string();
        let is_child = |p: &Self| stat(p.pid).is_some_and(|f| f.get(1) == Some(&parent));
        all().into_iter().filter(is_child).collect()
    }

    /// Those above it: its parent, its parent's parent, and so on.
    pub(super) fn ancestors(self) -> Vec<Self> {
        let parent = |p: Self| Self::now(stat(p.pid)?.get(1)?.parse().ok()?);
        std::iter::successors(parent(self), |p| parent(*p)).collect()
    }

    /// How long it has lived. Start times are in hundredths of a second on every Linux (`USER_HZ`, proc(5)).
    pub(super) fn age(self) -> Duration {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let now: f64 = uptime.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or_default();
        let start = Duration::from_millis(self.start * 10);
        Duration::from_secs_f64(now).saturating_sub(start)
    }

    /// Its name, as the kernel has it: at most 15 bytes.
    pub(super) fn name(self) -> String {
        fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default().trim().to_owned()
    }

    /// Sends a signal, if it still lives.
    pub(super) fn signal(self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw).filter(|_| self.lives()) {
            // It may end at this moment: then there is nothing left to signal.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Every process.
pub(super) fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(Process::now).collect()
}

/// Kills processes, and waits for their end. Returns those that live on after the limit.
pub(super) fn kill(processes: &[Process], limit: Duration) -> Vec<Process> {
    let start = Instant::now();
    loop {
        let left: Vec<Process> = processes.iter().copied().filter(|p| p.lives()).collect();
        if left.is_empty() || start.elapsed() > limit {
            return left;
        }
        left.iter().for_each(|p| p.signal(Signal::KILL));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes in a network namespace, apart from ourselves and those above us.
pub(super) fn in_network_namespace(path: &str) -> Vec<Process> {
    use std::os::linux::fs::MetadataExt as _;
    let identity = |p: &str| fs::metadata(p).ok().map(|m| (m.st_dev(), m.st_ino()));
    let Some(wanted) = identity(path) else { return Vec::new() };
    let Some(own) = Process::now(std::process::id()) else { return Vec::new() };
    let above = own.ancestors();
    let inside = |p: &Process| identity(&format!("/proc/{}/ns/net", p.pid)) == Some(wanted);
    all().into_iter().filter(|p| *p != own && !above.contains(p) && inside(p)).collect()
}

/// The mount points at or below a folder, deepest first.
pub(super) fn mounts_below(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut order = BTreeMap::new();
    for (i, line) in table.lines().enumerate() {
        let point = line.split_whitespace().nth(1).map(unescape).unwrap_or_default();
        if Path::new(&point).starts_with(folder) {
            order.insert(std::cmp::Reverse((point.len(), i)), point);
        }
    }
    order.into_values().collect()
}

/// The kernel writes space, tab, newline and backslash in a mount table as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).and_then(|o| u8::from_str_radix(o, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                out.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => out.extend_from_slice(format!("\\{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let me = Process::now(std::process::id()).expect("we live");
        assert!(me.lives());
        assert!(!Process { start: me.start + 1, ..me }.lives());
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("pid");
        fs::write(&file, format!("{} {}\n", me.pid, me.start)).expect("written");
        assert_eq!(Process::recorded(&file), Some(me));
        fs::write(&file, format!("{} {}\n", me.pid, me.start + 1)).expect("written");
        assert_eq!(Process::recorded(&file), None);
        fs::write(&file, "").expect("written");
        assert_eq!(Process::recorded(&file), None);
    }

    #[test]
    fn a_child_is_found_and_killed() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("started");
        let me = Process::now(std::process::id()).expect("we live");
        let found: Vec<Process> = me.children().into_iter().filter(|p| p.pid == child.id()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(kill(&found, Duration::from_secs(5)), []);
        child.wait().expect("reaped");
    }

    #[test]
    fn mount_points_are_unescaped() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\x"), r"/a\x");
    }
}
