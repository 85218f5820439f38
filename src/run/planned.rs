//! A fault of a scenario with its selectors resolved: who is meant, and what readers of the history must know of it.

use std::time::Duration;

use rackrift_checkers::facts::{FaultFacts, UntilFacts};
use rackrift_checkers::generate::Chance;

use super::scenario::FaultSpec;
use super::shape::summary;
use super::until::Until;
use crate::fault::shape::{Edge, Edges, Shape};
use crate::inventory::Inventory;
use crate::inventory::selector::Selector;

/// Where etcd's clients reach it.
const ETCD_PORT: u16 = 2379;

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
    /// Hosts that are cut apart.
    Cut {
        /// How.
        shape: Shape,
        /// Who no longer hears whom.
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
        // Another stream than the selectors', however often they draw.
        let pairs = Chance::seeded(chance.clone().next());
        let mut leaders = Vec::new();
        let mut hosts = |text: &str| -> Result<Vec<String>, String> {
            let selector: Selector = text.parse().map_err(|e| format!("{e}"))?;
            leaders.extend(selector.leaders().map(str::to_owned));
            let drawn = selector.draw(inventory, leader, &mut draws).map_err(|e| format!("{e}"))?;
            Ok(drawn.into_iter().map(|h| h.name.clone()).collect())
        };
        let act = match &spec {
            FaultSpec::Cut(cut) => {
                let shape = cut.shape.resolve(inventory, &mut hosts, pairs)?;
                let edges = shape.edges().map_err(|e| e.to_string())?;
                Act::Cut { shape, edges }
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
                deed.what.kind().to_owned(),
                format!("{}: {}", side_name(on, inventory), deed.what.summary()),
                on.iter().map(|h| (h.clone(), h.clone())).collect(),
            ),
            (FaultSpec::Cut(cut), Act::Cut { shape, edges }) => {
                let edges = edges.iter().map(|e| (e.from.clone(), e.to.clone())).collect();
                let flap = cut.flap.map(|f| f.words());
                let more: Vec<String> = cut.packets.words().into_iter().chain(flap).collect();
                let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
                (format!("partition/{}", shape.name()), summary(shape, inventory) + &more, edges)
            }
            (FaultSpec::Cut(_), Act::Do { .. }) | (FaultSpec::Do(_), Act::Cut { .. }) => {
                unreachable!("a fault is resolved into what it is written as")
            }
        };
        FaultFacts {
            id: self.spec.name().to_owned(),
            kind,
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

    /// Hosts of a cut that no longer hear, and are heard by, a majority of etcd's members, themselves included. A cut
    /// that comes and goes, or that leaves etcd's port to clients alone, isolates nobody.
    #[must_use]
    pub fn isolated(&self, inventory: &Inventory) -> Vec<String> {
        let (FaultSpec::Cut(spec), Act::Cut { edges, .. }) = (&self.spec, &self.act) else {
            return Vec::new();
        };
        if spec.flap.is_some() || !spec.packets.cuts_port(ETCD_PORT) {
            return Vec::new();
        }
        let etcd: Vec<&str> =
            inventory.hosts().filter(|h| h.has_role("etcd")).map(|h| h.name.as_str()).collect();
        let talk = |a: &str, b: &str| !edges.contains(&Edge::new(a, b)) && !edges.contains(&Edge::new(b, a));
        let involved = inventory.hosts().filter(|h| edges.iter().any(|e| e.from == h.name || e.to == h.name));
        involved
            .filter(|h| {
                !etcd.is_empty() && etcd.iter().filter(|e| talk(&h.name, e)).count() <= etcd.len() / 2
            })
            .map(|h| h.name.clone())
            .collect()
    }
}

/// A set of hosts in a few words: `rack a`, `rack b and rack witness`, or the hosts' names.
pub(super) fn side_name(hosts: &[String], inventory: &Inventory) -> String {
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
