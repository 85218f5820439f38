//! A fault of a scenario with its selectors resolved: who is meant, and what readers of the history must know of it.

use std::time::Duration;

use rackrift_checkers::facts::{FaultFacts, UntilFacts};
use rackrift_checkers::generate::Chance;

use super::scenario::{CutSpec, FaultSpec};
use super::until::Until;
use crate::fault::shape::{Edges, Shape};
use crate::inventory::Inventory;
use crate::inventory::selector::Selector;

/// A fault that is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFault {
    /// As written, with the name that it has within the run.
    pub spec: FaultSpec,
    /// How long to wait before it.
    pub wait: Duration,
    /// What its selectors draw from.
    pub chance: Chance,
    /// Components whose leaders its selectors name: who that is is asked when it begins, and the hosts here are only
    /// an example.
    pub leaders: Vec<String>,
    /// Nodes of the state that ends it, if it is one of nodes.
    pub until_nodes: Vec<String>,
    /// Who is meant.
    pub act: Act,
}

/// Who is meant by a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Two sets of hosts.
    Cut {
        /// The sets.
        sets: (Vec<String>, Vec<String>),
        /// What is cut.
        edges: Edges,
    },
    /// Hosts to which something is done.
    Do {
        /// The hosts.
        on: Vec<String>,
        /// The hosts towards which it acts, if it does not act towards all.
        towards: Vec<String>,
    },
}

/// In `between`, the second set: whoever is not in the first.
const OTHERS: &str = "others";

impl PlannedFault {
    /// Resolves the selectors of a fault. `leader` says on which host the leader of a component is.
    ///
    /// # Errors
    /// Why they do not fit.
    pub(super) fn resolve(
        spec: FaultSpec,
        wait: Duration,
        chance: Chance,
        inventory: &Inventory,
        leader: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut draws = chance.clone();
        let mut leaders = Vec::new();
        let mut hosts = |text: &str| -> Result<Vec<String>, String> {
            let selector: Selector = text.parse().map_err(|e| format!("{e}"))?;
            leaders.extend(selector.leaders().map(str::to_owned));
            let drawn = selector.draw(inventory, leader, &mut draws).map_err(|e| format!("{e}"))?;
            Ok(drawn.into_iter().map(|h| h.name.clone()).collect())
        };
        let act = match &spec {
            FaultSpec::Cut(cut) => {
                let first = hosts(&cut.between.0)?;
                let second = if cut.between.1 == OTHERS {
                    inventory.hosts().map(|h| h.name.clone()).filter(|h| !first.contains(h)).collect()
                } else {
                    hosts(&cut.between.1)?
                };
                let shape = if cut.one_way {
                    Shape::OneWay { from: first.clone(), to: second.clone() }
                } else {
                    Shape::RackSplit { a: first.clone(), b: second.clone() }
                };
                let edges = shape.edges().map_err(|e| e.to_string())?;
                Act::Cut { sets: (first, second), edges }
            }
            FaultSpec::Do(deed) => {
                let on = hosts(&deed.on)?;
                let towards = deed.what.peers().map(&mut hosts).transpose()?.unwrap_or_default();
                Act::Do { on, towards }
            }
        };
        let until_nodes = match spec.until() {
            Some(Until::NodesUnknown(text) | Until::NodesReady(text)) => {
                let of =
                    |h: String| inventory.host(&h).map_or_else(|| h.clone(), |h| h.node_name().to_owned());
                hosts(text)?.into_iter().map(of).collect()
            }
            Some(Until::LeaseMoved(_)) | None => Vec::new(),
        };
        Ok(Self { spec, wait, chance, leaders, until_nodes, act })
    }

    /// The same fault, drawn again from the same chance, now that it is known who leads.
    ///
    /// # Errors
    /// Why its selectors no longer fit.
    pub fn with_leaders(
        &self,
        inventory: &Inventory,
        leader: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        Self::resolve(self.spec.clone(), self.wait, self.chance.clone(), inventory, leader)
    }

    /// What the history's readers need to know of it.
    #[must_use]
    pub fn facts(&self, inventory: &Inventory) -> FaultFacts {
        let (kind, summary, edges) = match (&self.spec, &self.act) {
            (FaultSpec::Do(deed), Act::Do { on, .. }) => (
                deed.what.kind(),
                format!("{}: {}", side_name(on, inventory), deed.what.summary()),
                on.iter().map(|h| (h.clone(), h.clone())).collect(),
            ),
            (FaultSpec::Cut(CutSpec { one_way, .. }), Act::Cut { sets, edges }) => {
                let (kind, sign) =
                    if *one_way { ("partition/one-way", "→ ✂") } else { ("partition/rack-split", "✂") };
                let (a, b) = (side_name(&sets.0, inventory), side_name(&sets.1, inventory));
                let edges = edges.iter().map(|e| (e.from.clone(), e.to.clone())).collect();
                (kind, format!("{a} {sign} {b}"), edges)
            }
            (FaultSpec::Cut(_), Act::Do { .. }) | (FaultSpec::Do(_), Act::Cut { .. }) => {
                unreachable!("a fault is resolved into what it is written as")
            }
        };
        FaultFacts {
            id: self.spec.name().to_owned(),
            kind: kind.to_owned(),
            summary,
            edges,
            isolated: self.isolated(inventory),
            until: self.spec.until().map(|until| UntilFacts {
                state: until.to_string(),
                longest: u64::try_from(self.spec.hold().duration().as_nanos()).unwrap_or(u64::MAX),
            }),
            skipped: None,
        }
    }

    /// Hosts of a cut that end up on the side without a majority of etcd: those of both sides if none has it.
    #[must_use]
    pub fn isolated(&self, inventory: &Inventory) -> Vec<String> {
        let Act::Cut { sets, .. } = &self.act else { return Vec::new() };
        let etcd: Vec<&str> =
            inventory.hosts().filter(|h| h.has_role("etcd")).map(|h| h.name.as_str()).collect();
        let members = |side: &[String]| etcd.iter().filter(|e| side.iter().any(|h| h == *e)).count();
        // A member outside both sets is heard by both.
        let outside = etcd.len() - members(&sets.0) - members(&sets.1);
        let majority = etcd.len() / 2 + 1;
        let mut lost = Vec::new();
        for side in [&sets.0, &sets.1] {
            if !etcd.is_empty() && members(side) + outside < majority {
                lost.extend(side.iter().cloned());
            }
        }
        lost
    }
}

/// A set of hosts in a few words: `rack a`, `rack b and rack witness`, or the hosts' names.
fn side_name(hosts: &[String], inventory: &Inventory) -> String {
    let mut left: Vec<&String> = hosts.iter().collect();
    let mut words = Vec::new();
    for rack in &inventory.racks {
        if !rack.hosts.is_empty() && rack.hosts.iter().all(|h| hosts.contains(&h.name)) {
            words.push(format!("rack {}", rack.name));
            left.retain(|h| !rack.hosts.iter().any(|r| r.name == **h));
        }
    }
    words.extend(left.into_iter().cloned());
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
