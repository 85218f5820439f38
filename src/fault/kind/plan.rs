//! A fault of hosts, planned: every command and its undo, on each host, before anything happens.
//!
//! # Invariants
//! * A plan that exists could be undone with what the hosts have; all reasons against one are told at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Ground, Harm, Machine, No, What};
use crate::fault::id::FaultId;
use crate::fault::life::Planned;
use crate::fault::plan::LEAST_TTL;
use crate::fault::script::{self, Envelope, HostPart};
use crate::fault::survey::{HostFacts, Supervisor, survey};
use crate::host::remote::{Remote, Script};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The fault's id.
    pub id: FaultId,
    /// Its name within the run.
    pub name: String,
    /// What is done.
    pub what: What,
    /// To which hosts, with the folder where each keeps the files of faults.
    pub hosts: BTreeMap<String, String>,
    /// Data addresses of the hosts towards which it acts, by host; empty: towards all.
    pub peers: BTreeMap<String, Vec<IpAddr>>,
    /// The inventory's protected addresses.
    pub protected: Vec<IpAddr>,
    /// Roles of every host of the lab.
    pub roles: BTreeMap<String, Vec<String>>,
    /// Harm that the scenario names.
    pub allow: BTreeSet<Harm>,
    /// Dead-man's time.
    pub ttl: Duration,
}

/// A host's share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDeed {
    /// What is done and undone.
    pub part: HostPart,
    /// The boot it was surveyed in.
    pub boot: String,
    /// From where the controller may come, as SSH tells it.
    pub clients: Vec<String>,
    /// What keeps the dead-man's switch running.
    pub supervisor: Supervisor,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A fault of hosts, planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeedPlan {
    /// The fault's id.
    pub id: FaultId,
    /// Its name within the run.
    pub name: String,
    /// What is done.
    pub what: What,
    /// Dead-man's time, s.
    pub ttl_s: u64,
    /// The hosts.
    pub hosts: BTreeMap<String, HostDeed>,
}

/// Why a fault is not planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It must not be done on this host.
    #[error("{host}: {reason}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// The host lacks what the kind needs.
    #[error("{host} lacks what this needs: {reason}")]
    Missing {
        /// The host.
        host: String,
        /// What.
        reason: String,
    },
    /// More harm than the scenario names.
    #[error("{reason}; if that is meant, write `allow: [{harm}]`")]
    Harm {
        /// The word to write.
        harm: Harm,
        /// What would be lost.
        reason: String,
    },
    /// Too short a time.
    #[error("a dead-man's time of {0:?} is too short: at least {LEAST_TTL:?}, in whole seconds")]
    Ttl(Duration),
    /// Nobody to do it to.
    #[error("there is no host to do it to")]
    Nobody,
}

/// All reasons at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Refused(pub Vec<Refusal>);

impl Refused {
    /// Whether nothing is wrong but that hosts lack something: the fault can be skipped.
    #[must_use]
    pub fn only_missing(&self) -> bool {
        self.0.iter().all(|r| matches!(r, Refusal::Missing { .. }))
    }
}

impl DeedPlan {
    /// Asks the hosts what the kind must know of them and plans. Hosts are only looked at.
    ///
    /// # Errors
    /// All reasons why not, at once.
    pub async fn build(remote: &Arc<dyn Remote>, request: &Request) -> Result<Self, Refused> {
        let names: Vec<String> = request.hosts.keys().cloned().collect();
        let mut refusals = request.limits();
        if !refusals.is_empty() {
            return Err(Refused(refusals));
        }
        let facts = survey(remote, &names).await;
        let scripts = names.iter().map(|h| (h.clone(), request.scout(h))).collect();
        let mut scouted = script::on_each(remote, scripts).await;
        let mut hosts = BTreeMap::new();
        for (host, facts) in facts {
            let told = scouted.remove(&host).map_or_else(|| Err("nobody asked it".to_owned()), |o| o.ok());
            let deed = facts.and_then(|f| Ok((f, whole(told?)?))).map_err(No::Refused);
            match deed.and_then(|(facts, told)| request.deed(&host, &facts, &told)) {
                Ok(deed) => {
                    hosts.insert(host, deed);
                }
                Err(No::Refused(reason)) => refusals.push(Refusal::Host { host, reason }),
                Err(No::Missing(reason)) => refusals.push(Refusal::Missing { host, reason }),
            }
        }
        if !refusals.is_empty() {
            return Err(Refused(refusals));
        }
        Ok(Self {
            id: request.id.clone(),
            name: request.name.clone(),
            what: request.what.clone(),
            ttl_s: request.ttl.as_secs(),
            hosts,
        })
    }
}

fn whole(told: String) -> Result<String, String> {
    match script::value(&told, "end") {
        Some("scout") => Ok(told),
        _ => Err("what it told of itself is not whole".to_owned()),
    }
}

impl Request {
    fn limits(&self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        if self.hosts.is_empty() {
            refusals.push(Refusal::Nobody);
        }
        if self.ttl < LEAST_TTL || self.ttl.subsec_nanos() != 0 {
            refusals.push(Refusal::Ttl(self.ttl));
        }
        let hosts: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
        for (harm, reason) in self.what.harm(&hosts, &self.roles) {
            if !self.allow.contains(&harm) {
                refusals.push(Refusal::Harm { harm, reason });
            }
        }
        refusals
    }

    fn scout(&self, host: &str) -> Script {
        let lines = self.what.scout(&self.peers_of(host), &self.protected);
        Script::new(script::over_host(&(lines + "echo end=scout\n")))
    }

    /// Addresses of the other hosts towards which it acts.
    fn peers_of(&self, host: &str) -> Vec<IpAddr> {
        let others = self.peers.iter().filter(|(peer, _)| peer.as_str() != host);
        others.flat_map(|(_, all)| all).copied().collect()
    }

    fn deed(&self, host: &str, facts: &HostFacts, scouted: &str) -> Result<HostDeed, No> {
        if !facts.root {
            return Err(No::Refused(
                "scripts do not run as root there; log in as root or set `sudo: true`".to_owned(),
            ));
        }
        let Some(supervisor) = facts.supervisor else {
            return Err(No::Missing(
                "neither systemd-run nor setsid: the dead-man's switch would die with the session".to_owned(),
            ));
        };
        let mut protected = self.protected.clone();
        protected.extend(facts.controller());
        let peers = self.peers_of(host);
        if self.what.peers().is_some() && peers.is_empty() {
            return Err(No::Refused("nobody is left towards whom it would act".to_owned()));
        }
        let ground = Ground { id: &self.id, scouted, protected: &protected, peers: &peers };
        let lines = self.what.lines(&ground)?;
        let mut clients: Vec<String> = self.protected.iter().map(ToString::to_string).collect();
        clients.extend(facts.client.clone());
        Ok(HostDeed {
            part: HostPart {
                host: host.to_owned(),
                run_dir: self.hosts[host].clone(),
                stage: lines.stage,
                commit: lines.commit,
                undo: lines.undo,
                left: lines.left,
                look: lines.look,
            },
            boot: facts.boot.clone(),
            clients,
            supervisor,
            notes: lines.notes,
        })
    }
}

impl Planned for DeedPlan {
    fn id(&self) -> &FaultId {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn ttl_s(&self) -> u64 {
        self.ttl_s
    }

    fn hosts(&self) -> Vec<&str> {
        self.hosts.keys().map(String::as_str).collect()
    }

    fn envelope(&self, host: &str) -> Envelope<'_> {
        let deed = &self.hosts[host];
        Envelope {
            id: &self.id,
            part: &deed.part,
            ttl: self.ttl_s,
            boot: &deed.boot,
            clients: &deed.clients,
            supervisor: deed.supervisor.word(),
        }
    }

    fn patience(&self) -> Duration {
        match self.what {
            // Servers take minutes to come through their firmware.
            What::Machine(Machine::Reboot | Machine::Crash) => Duration::from_secs(600),
            _ => Duration::from_secs(20),
        }
    }
}

impl fmt::Display for DeedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
        writeln!(f, "fault {} ({}): {} on {}", self.name, self.id, self.what.summary(), names.join(", "))?;
        writeln!(f, "a host that hears nothing of its controller for {} s undoes it by itself", self.ttl_s)?;
        for (host, deed) in &self.hosts {
            for note in &deed.notes {
                writeln!(f, "note: {host}: {note}")?;
            }
        }
        for (host, deed) in &self.hosts {
            for (when, script) in [
                ("staged (nothing acts yet)", &deed.part.stage),
                ("committed", &deed.part.commit),
                ("undone", &deed.part.undo),
            ] {
                if !script.is_empty() {
                    writeln!(f, "\n{host}: {when}")?;
                    script.lines().try_for_each(|line| writeln!(f, "    {line}"))?;
                }
            }
        }
        Ok(())
    }
}
