//! Finding and removing faults that are left on hosts, whoever put them there and whatever became of him.
//!
//! # Invariants
//! * No run, journal or plan is needed: the undo script lies on the host, and chains carry our name.
//! * Rules are removed by their own text, chains by name; what is foreign is never touched.
//! * A host is clean only if it said so at the end of the script, and could read its rules.
//! * A fault's folder, and with it the dead-man's switch, goes only when no rule of ours may stand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::plan::RUN_DIR;
use super::script::{self, quoted};
use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;

const HEAL: &str = include_str!("sh/heal.sh");
const HEAL_HOSTS: &str = include_str!("sh/heal-hosts.sh");

/// How long a host may take: each of several undo scripts may wait for the lock of iptables.
const LIMIT: Duration = Duration::from_secs(60);

/// What healing found and did on a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Healed {
    /// What was there.
    pub found: Vec<String>,
    /// What is still there, or why nobody knows; empty: clean.
    pub left: Vec<String>,
}

/// What healing came to, host by host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Each host.
    pub hosts: BTreeMap<String, Healed>,
}

impl Report {
    /// Whether anything was there to remove.
    #[must_use]
    pub fn removed_something(&self) -> bool {
        self.hosts.values().any(|h| !h.found.is_empty())
    }

    /// Hosts that are not verified clean, each with why.
    pub fn not_clean(&self) -> impl Iterator<Item = (&str, String)> {
        let dirty = self.hosts.iter().filter(|(_, healed)| !healed.left.is_empty());
        dirty.map(|(host, healed)| (host.as_str(), healed.left.join("; ")))
    }

    /// Whether all hosts are verified clean.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.not_clean().next().is_none()
    }
}

impl Healed {
    fn parse(output: &str) -> Self {
        let of = |key: &str| -> Vec<String> {
            script::pairs(output).filter(|(k, _)| *k == key).map(|(_, v)| v.to_owned()).collect()
        };
        let mut healed = Self { found: of("found"), left: of("left") };
        if script::value(output, "end") != Some("heal") {
            healed.left.push("its answer was not whole".to_owned());
        }
        healed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.hosts.keys().map(String::len).max().unwrap_or_default();
        for (i, (host, healed)) in self.hosts.iter().enumerate() {
            let newline = if i > 0 { "\n" } else { "" };
            write!(f, "{newline}{host:<width$}  ")?;
            match (healed.found.is_empty(), healed.left.is_empty()) {
                (true, true) => write!(f, "clean")?,
                (false, true) => write!(f, "clean now; removed {}", healed.found.join(", "))?,
                (_, false) => write!(f, "NOT verified clean: {}", healed.left.join("; "))?,
            }
        }
        Ok(())
    }
}

/// Heals every host of an inventory, all at once.
pub async fn heal(remote: &Arc<dyn Remote>, inventory: &Inventory) -> Report {
    let hosts: Vec<String> = inventory.hosts().map(|h| h.name.clone()).collect();
    heal_hosts(remote, &hosts, RUN_DIR).await
}

/// Heals hosts whose faults keep their files below `run_dir`.
pub async fn heal_hosts(remote: &Arc<dyn Remote>, hosts: &[String], run_dir: &str) -> Report {
    let heal = HEAL.replace("@HOSTS@\n", HEAL_HOSTS);
    let body = script::over_tools(&format!("root={}\n", quoted(run_dir)), &heal);
    let scripts = hosts.iter().map(|h| (h.clone(), Script::new(body.clone()).limit(LIMIT))).collect();
    let outcomes = script::on_each(remote, scripts).await;
    let hosts = outcomes
        .into_iter()
        .map(|(host, outcome)| {
            let healed = match outcome.ok() {
                Ok(output) => Healed::parse(&output),
                Err(why) => Healed { found: Vec::new(), left: vec![why] },
            };
            (host, healed)
        })
        .collect();
    Report { hosts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_name_each_host() {
        let answers = [
            ("e1", "end=heal\n"),
            ("m1", "found=fault k3x9a2bq-1\nfound=chain RACKRIFT-k3x9a2bq-1-I (iptables-nft)\nend=heal\n"),
            ("w1", "found=fault k3x9a2bq-1\nleft=/run/rackrift/k3x9a2bq-1\nend=heal\n"),
            ("w2", "found=fault k3x9a2bq-1\n"),
        ];
        let hosts = answers.iter().map(|(h, a)| ((*h).to_owned(), Healed::parse(a))).collect();
        let report = Report { hosts };
        assert!(report.removed_something() && !report.clean());
        insta::assert_snapshot!(report);
    }
}
