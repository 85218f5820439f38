//! Which lab, and where it keeps its things: several may be up on one machine, each in a network namespace of its own.
//!
//! # Invariants
//! * All that a lab puts on a machine outside its state folder carries its name: the network namespace, the control
//!   groups, systemd-nspawn's machine names. Two labs share the shared tree, the binaries and the kernel's settings.

use std::path::{Path, PathBuf};

use super::error::LabError;
use super::record;
use super::topology::Machine;

/// Longest name: the host's end of a machine's link is `vb-NAME-m1`, and interface names end at 15 bytes.
const LONGEST: usize = 9;

/// A lab's name and folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    name: String,
    state: PathBuf,
}

impl Site {
    /// A lab's name if none is given.
    pub const NAME: &'static str = "lab";

    /// The lab of that name; `state` is the folder of its machines' disks, by default `/var/lib/rackrift/NAME`.
    ///
    /// # Errors
    /// If the name is not one to nine lower case letters and digits, the first a letter.
    pub fn new(name: &str, state: Option<&Path>) -> Result<Self, LabError> {
        let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !letters || name.len() > LONGEST || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(LabError::Name(name.to_owned()));
        }
        let usual = || Path::new("/var/lib/rackrift").join(name);
        let state = state.map_or_else(usual, |s| std::path::absolute(s).unwrap_or_else(|_| s.to_owned()));
        Ok(Self { name: name.to_owned(), state })
    }

    /// The lab of that name where it is, if it is up; else as [`Site::new`] has it.
    ///
    /// # Errors
    /// As [`Site::new`].
    pub fn find(name: &str, state: Option<&Path>) -> Result<Self, LabError> {
        let known = if state.is_none() { record::known_state(name) } else { None };
        Self::new(name, state.or(known.as_deref()))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of its machines' disks, keys, certificates and inventory.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The inventory that `up` writes.
    #[must_use]
    pub fn inventory(&self) -> PathBuf {
        self.state.join("inventory.yaml")
    }

    /// An administrator's kubeconfig, to the load balancer.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("admin.conf")
    }

    /// Its network namespace, core router and seat of the controller: a name under `/run/netns`.
    #[must_use]
    pub fn namespace(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// Where a process finds that namespace.
    #[must_use]
    pub fn namespace_path(&self) -> String {
        format!("/run/netns/{}", self.namespace())
    }

    /// Its control group in every hierarchy; the machines' lie below it.
    pub(super) fn group(&self) -> String {
        self.namespace()
    }

    /// A machine as systemd-nspawn names it on this box.
    pub(super) fn machine(&self, machine: Machine) -> String {
        format!("{}-{}", self.name, machine.name)
    }
}

/// What the names of all labs' namespaces begin with.
pub(super) const PREFIX: &str = "rackrift-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths() {
        let site = Site::new("lab", None).expect("a name");
        assert_eq!(site.namespace_path(), "/run/netns/rackrift-lab");
        assert_eq!(site.inventory(), Path::new("/var/lib/rackrift/lab/inventory.yaml"));
        assert!(Site::new("abcdefgh9", None).is_ok());
        for wrong in ["", "Lab", "9lab", "a-b", "../x", "abcdefghij", "ü"] {
            assert!(Site::new(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_longest_name_fits_into_an_interface_name() {
        let site = Site::new("abcdefgh9", None).expect("a name");
        for machine in super::super::topology::MACHINES {
            assert!(format!("vb-{}", site.machine(machine)).len() <= 15);
        }
    }
}
