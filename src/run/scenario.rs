//! Scenarios and suites: YAML that says what is done and expected, never how.
//!
//! # Invariants
//! * A scenario names code by id and selectors; it contains no shell.
//! * Unknown fields, doubled fields and wrong types are refused with line and column.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schedule::{Random, Repeat, Schedule};
use super::shape::ShapeSpec;
use super::until::Until;
use crate::fault::flap::{self, Flap};
use crate::fault::kind::{Harm, What};
use crate::fault::packets::{self, Packets};
use crate::length::Length;

/// One experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// The scenario's id.
    pub scenario: String,
    /// What a pass proves.
    pub proves: String,
    /// What it cannot prove.
    pub cannot_prove: String,
    /// What must hold before the baseline.
    #[serde(default)]
    pub arrange: Arrange,
    /// What runs on the cluster.
    pub workloads: Workloads,
    /// How long to watch before the first fault.
    pub baseline: Length,
    /// The faults, one after the other.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// When they begin; without it, each once, at the end of the one before.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// Longest wait for convergence after the last heal; also the bound of the convergence check.
    pub settle: Length,
    /// How long to watch on after that: a process that was paused may need a while to notice what it lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linger: Option<Length>,
    /// What must be seen.
    #[serde(default)]
    pub expect: ExpectSpec,
}

/// What must hold before the baseline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arrange {
    /// Where leaders must be.
    #[serde(default)]
    pub leaders: Option<LeadersOn>,
}

/// Leases that must be held from given hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeadersOn {
    /// Elected components.
    pub components: Vec<String>,
    /// Hosts that may hold them, as a selector.
    pub on: String,
}

/// What runs on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workloads {
    /// Pods with heartbeats: Deployment, StatefulSet, DaemonSet, Job, bare Pod.
    #[serde(default)]
    pub pods: bool,
    /// Clients that contend for leases through each API server.
    #[serde(default)]
    pub leases: Option<Leases>,
}

/// The lease workload's numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Leases {
    /// Clients on each API server.
    pub clients: u32,
    /// Lease objects.
    pub keys: u32,
    /// Operations a second of each client.
    pub rate: u32,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum FaultSpec {
    /// Hosts no longer hear each other.
    Cut(CutSpec),
    /// Something is done to hosts themselves.
    Do(DoSpec),
}

/// Something that is done to hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DoSpec {
    /// Its name within the run.
    pub name: String,
    /// What is done.
    pub what: What,
    /// To which hosts, as a selector.
    pub on: String,
    /// How long it stays; with `until`, at most.
    pub hold: Length,
    /// The state that ends it.
    #[serde(default)]
    pub until: Option<Until>,
    /// Harm that is meant: without it, what would take so much is refused.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow: BTreeSet<Harm>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CutSpec {
    /// Its name within the run.
    pub name: String,
    /// Who no longer hears whom.
    pub shape: ShapeSpec,
    /// Whose packets are meant.
    #[serde(default, skip_serializing_if = "Scope::is_all")]
    pub scope: Scope,
    /// Which packets are taken, and how; without it, all of them, silently.
    #[serde(default, deserialize_with = "packets::checked", skip_serializing_if = "Packets::is_all")]
    pub packets: Packets,
    /// It comes and goes for as long as it holds.
    #[serde(default, deserialize_with = "flap::checked", skip_serializing_if = "Option::is_none")]
    pub flap: Option<Flap>,
    /// How long it stays; with `until`, at most.
    pub hold: Length,
    /// The state that ends it.
    #[serde(default)]
    pub until: Option<Until>,
}

/// Whose packets a partition takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Scope {
    /// Those of hosts and of the pods behind them.
    #[default]
    #[serde(rename = "hosts+pods")]
    HostsAndPods,
    /// Those of hosts alone: pods whose addresses the network routes still hear each other.
    #[serde(rename = "hosts")]
    Hosts,
}

impl Scope {
    fn is_all(&self) -> bool {
        *self == Self::HostsAndPods
    }
}

impl FaultSpec {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cut(spec) => &spec.name,
            Self::Do(spec) => &spec.name,
        }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(&self, name: String) -> Self {
        match self.clone() {
            Self::Cut(spec) => Self::Cut(CutSpec { name, ..spec }),
            Self::Do(spec) => Self::Do(DoSpec { name, ..spec }),
        }
    }

    /// How long it stays at most.
    #[must_use]
    pub const fn hold(&self) -> Length {
        match self {
            Self::Cut(spec) => spec.hold,
            Self::Do(spec) => spec.hold,
        }
    }

    /// The state that ends it, if one does.
    #[must_use]
    pub const fn until(&self) -> Option<&Until> {
        match self {
            Self::Cut(spec) => spec.until.as_ref(),
            Self::Do(spec) => spec.until.as_ref(),
        }
    }
}

/// What must be seen; what is not listed is not expected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExpectSpec {
    /// Components whose lease must move off the hosts that the first fault isolates.
    #[serde(default)]
    pub takeovers: Vec<String>,
    /// Components whose lease must not move.
    #[serde(default)]
    pub steady: Vec<String>,
    /// Nodes that must become Unknown, as a selector.
    #[serde(default)]
    pub unknown_nodes: Option<String>,
    /// Owner kinds of which a duplicate window is expected.
    #[serde(default)]
    pub duplicates: Vec<String>,
    /// Whether the clients' operations are judged.
    #[serde(default)]
    pub lease_history: bool,
}

/// A list of scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The suite's id.
    pub suite: String,
    /// What it is for.
    pub about: String,
    /// Names of embedded scenarios, or files relative to the suite's.
    pub scenarios: Vec<String>,
}

impl Scenario {
    /// How long the scenario takes at most, without bringing workloads up.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let holds = || self.faults.iter().map(|f| f.hold().duration());
        let once: Duration = holds().sum();
        let faults = match &self.schedule {
            None => once,
            Some(Schedule::Repeat(Repeat { times, gap })) => {
                let gaps =
                    gap.duration().saturating_mul(u32::try_from(self.faults.len()).unwrap_or(u32::MAX));
                once.saturating_add(gaps).saturating_mul(*times)
            }
            Some(Schedule::Random(Random { times, gap, .. })) => {
                holds().max().unwrap_or_default().saturating_add(gap.1.duration()).saturating_mul(*times)
            }
        };
        let linger = self.linger.map_or(Duration::ZERO, Length::duration);
        let watched = self.baseline.duration().saturating_add(self.settle.duration()).saturating_add(linger);
        faults.saturating_add(watched)
    }
}
