//! Which faults are on hosts now, and when the hosts would undo them by themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::plan::RUN_DIR;
use super::script::{self, quoted};
use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;

const STATUS: &str = include_str!("sh/status.sh");

/// A fault as a host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The fault's id.
    pub fault: String,
    /// `in force` or `prepared`.
    pub state: String,
    /// Seconds until the host undoes it unless its controller speaks; absent: no dead-man's switch runs.
    pub left: Option<i64>,
}

/// What a host has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnHost {
    /// Faults with their files.
    pub faults: Vec<Standing>,
    /// Chains that belong to none of them.
    pub strays: Vec<String>,
}

/// What there is, host by host; for a host that could not be asked, why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Each host.
    pub hosts: BTreeMap<String, Result<OnHost, String>>,
}

impl OnHost {
    fn parse(output: &str) -> Result<Self, String> {
        if script::value(output, "end") != Some("status") {
            return Err("its answer was not whole".to_owned());
        }
        let mut on = Self::default();
        for (key, value) in script::pairs(output) {
            let mut words = value.splitn(3, ' ');
            match (key, words.next(), words.next(), words.next()) {
                ("fault", Some(fault), Some(left), Some(state)) => on.faults.push(Standing {
                    fault: fault.to_owned(),
                    state: state.to_owned(),
                    left: left.parse().ok(),
                }),
                ("chain", Some(chain), _, _)
                    if !on.faults.iter().any(|f| chain.contains(&format!("-{}-", f.fault))) =>
                {
                    on.strays.push(value.to_owned());
                }
                _ => {}
            }
        }
        Ok(on)
    }

    fn none(&self) -> bool {
        self.faults.is_empty() && self.strays.is_empty()
    }
}

impl Status {
    /// Whether all hosts answered and none has anything.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.hosts.values().all(|h| h.as_ref().is_ok_and(OnHost::none))
    }

    /// Whether all hosts answered.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.hosts.values().all(Result::is_ok)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.hosts.keys().map(String::len).max().unwrap_or_default();
        for (i, (host, on)) in self.hosts.iter().enumerate() {
            let newline = if i > 0 { "\n" } else { "" };
            write!(f, "{newline}{host:<width$}  ")?;
            match on {
                Err(why) => write!(f, "not known: {why}")?,
                Ok(on) if on.none() => write!(f, "no fault")?,
                Ok(on) => {
                    let faults = on.faults.iter().map(|s| match s.left {
                        Some(left) => {
                            format!("fault {} {}; heals by itself in {} s", s.fault, s.state, left.max(0))
                        }
                        None => format!(
                            "fault {} {}, and NO dead-man's switch runs: rackrift heal",
                            s.fault, s.state
                        ),
                    });
                    let strays = on.strays.iter().map(|c| format!("stray chain {c}: rackrift heal"));
                    write!(f, "{}", faults.chain(strays).collect::<Vec<_>>().join("; "))?;
                }
            }
        }
        Ok(())
    }
}

/// Asks every host of an inventory, all at once.
pub async fn status(remote: &Arc<dyn Remote>, inventory: &Inventory) -> Status {
    let hosts: Vec<String> = inventory.hosts().map(|h| h.name.clone()).collect();
    status_of(remote, &hosts, RUN_DIR).await
}

/// Asks hosts whose faults keep their files below `run_dir`.
pub async fn status_of(remote: &Arc<dyn Remote>, hosts: &[String], run_dir: &str) -> Status {
    let script = Script::new(script::over_tools(&format!("root={}\n", quoted(run_dir)), STATUS));
    let scripts = hosts.iter().map(|h| (h.clone(), script.clone())).collect();
    let outcomes = script::on_each(remote, scripts).await;
    let hosts =
        outcomes.into_iter().map(|(host, o)| (host, o.ok().and_then(|text| OnHost::parse(&text)))).collect();
    Status { hosts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_told_host_by_host() {
        let answers = [
            ("e1", "end=status\n"),
            ("m1", "fault=k3x9a2bq-1 14 in force\nchain=RACKRIFT-k3x9a2bq-1-I iptables-nft\nend=status\n"),
            ("m2", "fault=k3x9a2bq-1 none in force\nend=status\n"),
            ("w1", "fault=k3x9a2bq-1 17 prepared\nend=status\n"),
            ("w2", "chain=RACKRIFT-k3x9a2bq-1-I iptables-nft\nend=status\n"),
            ("e3", "fault=k3x9"),
        ];
        let hosts = answers.iter().map(|(h, a)| ((*h).to_owned(), OnHost::parse(a))).collect();
        let status = Status { hosts };
        assert!(!status.clean() && !status.whole());
        insta::assert_snapshot!(status);
    }
}
