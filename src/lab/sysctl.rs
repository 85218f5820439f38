//! Kernel settings that eight machines need, and their values before.
//!
//! # Invariants
//! * A setting is recorded before it is changed, and only raised where a greater value serves as well.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::{During as _, Failure};

/// How a setting is judged.
enum Want {
    /// kubelet wants this value and no other, and would try to write it, which it cannot in a machine.
    Exactly(u64),
    /// Anything from here on.
    AtLeast(u64),
}

const WANTED: [(&str, Want); 7] = [
    ("vm/overcommit_memory", Want::Exactly(1)),
    ("kernel/panic", Want::Exactly(10)),
    ("kernel/panic_on_oops", Want::Exactly(1)),
    ("kernel/keys/root_maxkeys", Want::AtLeast(1_000_000)),
    ("kernel/keys/root_maxbytes", Want::AtLeast(25_000_000)),
    ("fs/inotify/max_user_instances", Want::AtLeast(8192)),
    ("fs/inotify/max_user_watches", Want::AtLeast(524_288)),
];

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}

fn value(name: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path(name)).during(|| format!("reading the kernel setting {name}"))?;
    Ok(text.trim().to_owned())
}

/// The settings that have to change: name → value now.
pub(super) fn to_change() -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for (name, want) in &WANTED {
        let now = value(name)?;
        if now != wanted(want, &now) {
            all.insert((*name).to_owned(), now);
        }
    }
    Ok(all)
}

/// The value that a setting should have, given the one it has.
fn wanted(want: &Want, now: &str) -> String {
    match want {
        Want::Exactly(v) => v.to_string(),
        Want::AtLeast(v) => now.parse().map_or(*v, |now: u64| now.max(*v)).to_string(),
    }
}

/// Sets all of them.
pub(super) fn set() -> Result<(), Failure> {
    for (name, want) in &WANTED {
        let now = value(name)?;
        let wanted = wanted(want, &now);
        if now != wanted {
            write(name, &wanted)?;
        }
    }
    Ok(())
}

/// Writes the recorded values back.
pub(super) fn restore(before: &BTreeMap<String, String>) -> Result<(), Failure> {
    before.iter().try_for_each(|(name, value)| write(name, value))
}

fn write(name: &str, value: &str) -> Result<(), Failure> {
    std::fs::write(path(name), value).during(|| format!("setting the kernel's {name} to {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greater_limit_is_left_alone() {
        assert_eq!(wanted(&Want::AtLeast(100), "5"), "100");
        assert_eq!(wanted(&Want::AtLeast(100), "500"), "500");
        assert_eq!(wanted(&Want::Exactly(1), "2"), "1");
    }
}
