//! The write-ahead journal of faults on the controller: JSON Lines, each on disk before what it announces happens.
//!
//! # Invariants
//! * A host that may be faulted is in the journal before it is: any prefix of a journal names at least the hosts
//!   that need a look ([`unclosed`]).
//! * A torn last line, as a crash leaves it, is not an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::id::FaultId;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The fault.
    pub fault: FaultId,
    /// What is about to happen, or has happened.
    #[serde(flatten)]
    pub step: Step,
}

/// A step of a fault's life.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// About to prepare: the undo of each host, in full.
    Prepare {
        /// The fault's name.
        name: String,
        /// Dead-man's time, s.
        ttl_s: u64,
        /// Host → undo script.
        undo: BTreeMap<String, String>,
    },
    /// About to make it act.
    Commit,
    /// What the commit said on a host: `committed`, or how it ended otherwise.
    Committed {
        /// The host.
        host: String,
        /// The answer.
        answer: String,
    },
    /// About to undo.
    Heal,
    /// A host is verified clean.
    Clean {
        /// The host.
        host: String,
        /// How it came clean.
        how: String,
    },
    /// A host could not be verified clean.
    Recover {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// All hosts are verified clean.
    Closed,
}

/// An open journal, shared by all faults of a run.
#[derive(Debug, Clone)]
pub struct Journal {
    file: Arc<Mutex<File>>,
}

impl Journal {
    /// Opens or creates the journal, so that lines are added.
    ///
    /// # Errors
    /// The file, or its entry in the folder, cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let torn = std::fs::read(path).is_ok_and(|old| old.last().is_some_and(|b| *b != b'\n'));
        let mut file = File::options().create(true).append(true).open(path)?;
        if torn {
            // What a crash left of a line must not swallow the next one.
            file.write_all(b"\n")?;
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(Self { file: Arc::new(Mutex::new(file)) })
    }

    /// Adds a line and waits until it is on disk.
    ///
    /// # Errors
    /// It could not be written: then what it announces must not happen.
    pub fn write(&self, fault: &FaultId, step: Step) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Record { fault: fault.clone(), step })?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line)?;
        file.sync_data()
    }
}

/// The faults of a journal that were not closed, each with the hosts that are not verified clean.
#[must_use]
pub fn unclosed(text: &str) -> BTreeMap<FaultId, BTreeSet<String>> {
    let mut open: BTreeMap<FaultId, BTreeSet<String>> = BTreeMap::new();
    let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
    for record in whole.filter_map(|l| serde_json::from_str::<Record>(l).ok()) {
        match record.step {
            Step::Prepare { undo, .. } => {
                open.entry(record.fault).or_default().extend(undo.into_keys());
            }
            Step::Clean { host, .. } => {
                if let Some(hosts) = open.get_mut(&record.fault) {
                    hosts.remove(&host);
                }
            }
            Step::Closed => {
                open.remove(&record.fault);
            }
            Step::Commit | Step::Committed { .. } | Step::Heal | Step::Recover { .. } => {}
        }
    }
    open.retain(|_, hosts| !hosts.is_empty());
    open
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn life(hosts: &[&str]) -> Vec<Step> {
        let undo = hosts.iter().map(|h| ((*h).to_owned(), "undo".to_owned())).collect();
        let mut steps =
            vec![Step::Prepare { name: "cut-1".into(), ttl_s: 60, undo }, Step::Commit, Step::Heal];
        steps.extend(hosts.iter().map(|h| Step::Clean { host: (*h).to_owned(), how: "undone".into() }));
        steps.push(Step::Closed);
        steps
    }

    proptest! {
        #[test]
        fn wherever_it_is_torn_it_names_each_host_that_is_not_clean(at in 0_usize..2000) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.jsonl");
            let id = FaultId::new("k3x9", 1).unwrap();
            let journal = Journal::open(&path).unwrap();
            for step in life(&["m1", "w1"]) {
                journal.write(&id, step).unwrap();
            }
            let whole = std::fs::read_to_string(&path).unwrap();
            let torn = &whole[..at.min(whole.len())];
            let lines: Vec<&str> = torn.split_inclusive('\n').filter(|l| l.ends_with('\n')).collect();
            let named = unclosed(torn).remove(&id).unwrap_or_default();
            for host in ["m1", "w1"] {
                let clean = lines.iter().any(|l| l.contains("\"clean\"") && l.contains(host));
                prop_assert_eq!(named.contains(host), !lines.is_empty() && !clean, "{}", torn);
            }
        }
    }

    #[test]
    fn two_faults_are_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        let (first, second) = (FaultId::new("k3x9", 1).unwrap(), FaultId::new("k3x9", 2).unwrap());
        for (id, step) in
            life(&["m1"]).into_iter().map(|s| (&first, s)).chain([(&second, life(&["m1"]).remove(0))])
        {
            journal.write(id, step).unwrap();
        }
        let open = unclosed(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(open.into_keys().collect::<Vec<_>>(), [second]);
    }
}
