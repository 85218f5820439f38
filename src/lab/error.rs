//! What can go wrong with a lab, in sentences that say where and what to do.

use std::path::PathBuf;

use super::prerequisites::{self, Package};

/// A lab verb failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Programs that the lab needs are not installed.
    #[error("missing on this machine: {}\n{}", prerequisites::list(.0), prerequisites::advice(.0))]
    Missing(Vec<Package>),
    /// Namespaces, mounts and cgroups need root.
    #[error("the lab needs root: it makes network namespaces, mounts and cgroups")]
    NotRoot,
    /// The state folder cannot hold the machines' disks.
    #[error(
        "{} lies on {kind}, which cannot hold the machines' disks; give a folder on ext4, xfs or btrfs: --state DIR",
        path.display()
    )]
    Filesystem {
        /// The folder.
        path: PathBuf,
        /// Its file system.
        kind: String,
    },
    /// A lab's name that will not do.
    #[error("`{0}` cannot be a lab's name: one to nine lower case letters and digits, the first a letter")]
    Name(String),
    /// Another process works on a lab.
    #[error("another `rackrift lab up` or `lab down` is at work on this machine; wait for it to end")]
    Busy,
    /// The lab of that name is up with another state folder.
    #[error(
        "the lab `{name}` is up already, with its state in {}; take it down first: rackrift lab down --name {name}",
        state.display()
    )]
    Elsewhere {
        /// The lab.
        name: String,
        /// Its state folder.
        state: PathBuf,
    },
    /// The lab is up with other settings.
    #[error(
        "the lab `{name}` is there with other settings ({what}); take it down first: rackrift lab down --name {name}"
    )]
    Differs {
        /// The lab.
        name: String,
        /// How they differ.
        what: String,
    },
    /// The lab is not up.
    #[error("there is no lab `{0}`; start it: rackrift lab up --name {0}")]
    Down(String),
    /// The machine is switched off.
    #[error("{machine} is off; start it again: rackrift lab up --name {name}")]
    Off {
        /// The lab.
        name: String,
        /// The machine.
        machine: &'static str,
    },
    /// No such machine.
    #[error("the lab has no machine `{0}`; it has: m1 w1 e1 m2 w2 e2 e3 lb")]
    NoMachine(String),
    /// The folder given with `--components` lacks something.
    #[error("--components {}: {what}", folder.display())]
    Components {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A step failed.
    #[error("{0}")]
    Step(Box<Failure>),
    /// Something of the lab is still there after `down`.
    #[error("left behind: {}", .0.join("; "))]
    Left(Vec<String>),
}

/// A step that failed, on which machine, and the last lines of the log that may say why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The machine; absent for what concerns the whole lab.
    pub machine: Option<&'static str>,
    /// What was being done.
    pub step: String,
    /// What happened.
    pub cause: String,
    /// Where the lines below come from.
    pub source: String,
    /// The last lines of a log, oldest first.
    pub log: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(m) = self.machine {
            write!(f, "{m}: ")?;
        }
        write!(f, "{} failed: {}", self.step, self.cause)?;
        if !self.log.is_empty() {
            write!(f, "\n  the last lines of {}:", self.source)?;
            for line in &self.log {
                write!(f, "\n  | {line}")?;
            }
        }
        Ok(())
    }
}

impl Failure {
    /// A failure without a log.
    pub(super) fn new(step: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self {
            machine: None,
            step: step.into(),
            cause: cause.to_string(),
            source: String::new(),
            log: Vec::new(),
        }
    }

    /// The same, on a machine.
    pub(super) const fn on(mut self, machine: &'static str) -> Self {
        self.machine = Some(machine);
        self
    }

    /// The same, with a log's last lines.
    pub(super) fn with_log(mut self, source: impl Into<String>, log: Vec<String>) -> Self {
        self.source = source.into();
        self.log = log;
        self
    }
}

impl From<Failure> for LabError {
    fn from(f: Failure) -> Self {
        Self::Step(Box::new(f))
    }
}

/// Puts a step's name to an error.
pub(super) trait During<T> {
    /// `step` is what was being done, as a noun phrase.
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: std::fmt::Display> During<T> for Result<T, E> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(step(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_step_machine_and_log() {
        let f = Failure::new("waiting for kube-apiserver", "no answer within 60 s")
            .on("m1")
            .with_log("journalctl -u kube-apiserver", vec!["one".into(), "two".into()]);
        insta::assert_snapshot!(f);
    }

    #[test]
    fn sentences() {
        let all = [
            LabError::NotRoot,
            LabError::Filesystem { path: "/tmp/x".into(), kind: "tmpfs".into() },
            LabError::Busy,
            LabError::Name("My Lab".into()),
            LabError::Elsewhere { name: "lab".into(), state: "/srv/lab".into() },
            LabError::Differs { name: "lab".into(), what: "single-homed: no, asked: yes".into() },
            LabError::Down("lab".into()),
            LabError::Off { name: "lab".into(), machine: "w1" },
            LabError::NoMachine("w9".into()),
            LabError::Components { folder: "/opt/bin".into(), what: "it has no kubelet".into() },
            LabError::Left(vec!["mount /a".into(), "process 5 (etcd)".into()]),
        ];
        insta::assert_snapshot!(all.map(|e| e.to_string()).join("\n"));
    }
}
