//! From a scenario, an inventory and the flags in force to the facts of a run. Pure.
//!
//! # Invariants
//! * Every selector of the scenario is resolved here, before anything is touched; one that matches nobody is an
//!   error of the scenario.

use std::time::Duration;

use rackrift_checkers::facts::{
    ClientFacts, Expect, Facts, FaultFacts, PodsFacts, RackFacts, Takeover, UntilFacts,
};
use rackrift_checkers::generate::Chance;

use super::scenario::{CutSpec, FaultSpec, Scenario};
use super::schedule;
use super::until::Until;
use crate::fault::shape::{Edges, Shape};
use crate::inventory::Inventory;
use crate::inventory::selector::Selector;
use crate::kube::flags::InForce;

/// Why a scenario does not fit an inventory.
#[derive(Debug, thiserror::Error)]
#[error("scenario `{scenario}`, {place}: {reason}")]
pub struct Misfit {
    /// The scenario.
    pub scenario: String,
    /// Which field.
    pub place: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// A fault that is to begin, with its selectors resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCut {
    /// As written, with the name that it has within the run.
    pub spec: CutSpec,
    /// How long to wait before it.
    pub wait: Duration,
    /// What its selectors draw from.
    pub chance: Chance,
    /// Components whose leaders its selectors name: who that is is asked when it begins, and the sets here are only
    /// an example.
    pub leaders: Vec<String>,
    /// Nodes of the state that ends it, if it is one of nodes.
    pub until_nodes: Vec<String>,
    /// The two sets of hosts.
    pub sets: (Vec<String>, Vec<String>),
    /// What is cut.
    pub edges: Edges,
}

/// A scenario with its selectors resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Hosts that may lead before the baseline, if the scenario asks for it.
    pub leaders_on: Vec<String>,
    /// Hosts whose nodes must become Unknown.
    pub unknown: Vec<String>,
    /// The faults.
    pub cuts: Vec<PlannedCut>,
}

/// In `between`, the second set: whoever is not in the first.
const OTHERS: &str = "others";

impl PlannedCut {
    /// Resolves the selectors of a cut. `leader` says on which host the leader of a component is.
    ///
    /// # Errors
    /// Why they do not fit.
    fn resolve(
        spec: CutSpec,
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
        let first = hosts(&spec.between.0)?;
        let second = if spec.between.1 == OTHERS {
            inventory.hosts().map(|h| h.name.clone()).filter(|h| !first.contains(h)).collect()
        } else {
            hosts(&spec.between.1)?
        };
        let until_nodes = match &spec.until {
            Some(Until::NodesUnknown(text) | Until::NodesReady(text)) => {
                let of =
                    |h: String| inventory.host(&h).map_or_else(|| h.clone(), |h| h.node_name().to_owned());
                hosts(text)?.into_iter().map(of).collect()
            }
            Some(Until::LeaseMoved(_)) | None => Vec::new(),
        };
        let sets = (first, second);
        let shape = if spec.one_way {
            Shape::OneWay { from: sets.0.clone(), to: sets.1.clone() }
        } else {
            Shape::RackSplit { a: sets.0.clone(), b: sets.1.clone() }
        };
        let edges = shape.edges().map_err(|e| e.to_string())?;
        Ok(Self { spec, wait, chance, leaders, until_nodes, sets, edges })
    }

    /// The same cut, drawn again from the same chance, now that it is known who leads.
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
        let (kind, sign) = if self.spec.one_way {
            ("partition/one-way", "→ ✂")
        } else {
            ("partition/rack-split", "✂")
        };
        let (a, b) = (side_name(&self.sets.0, inventory), side_name(&self.sets.1, inventory));
        FaultFacts {
            id: self.spec.name.clone(),
            kind: kind.to_owned(),
            summary: format!("{a} {sign} {b}"),
            edges: self.edges.iter().map(|e| (e.from.clone(), e.to.clone())).collect(),
            isolated: isolated(self, inventory),
            until: self.spec.until.as_ref().map(|until| UntilFacts {
                state: until.to_string(),
                longest: u64::try_from(self.spec.hold.duration().as_nanos()).unwrap_or(u64::MAX),
            }),
        }
    }
}

/// Resolves a scenario's selectors and draws its faults; the same seed draws the same.
///
/// # Errors
/// The first field that does not fit.
pub fn resolve(scenario: &Scenario, inventory: &Inventory, seed: u64) -> Result<Resolved, Misfit> {
    let misfit = |place: &str, reason: String| Misfit {
        scenario: scenario.scenario.clone(),
        place: place.to_owned(),
        reason,
    };
    let hosts = |place: &str, text: &str| -> Result<Vec<String>, Misfit> {
        let selector: Selector = text.parse().map_err(|e| misfit(place, format!("{e}")))?;
        let found = selector.resolve(inventory, &|_| None).map_err(|e| misfit(place, format!("{e}")))?;
        Ok(found.into_iter().map(|h| h.name.clone()).collect())
    };
    let names: Vec<&str> = scenario.faults.iter().map(FaultSpec::name).collect();
    let firings =
        schedule::firings(scenario.schedule.as_ref(), &names, seed).map_err(|e| misfit(e.place, e.reason))?;
    // Any leader serves as an example: what is wrong with a selector is wrong before the first fault.
    let example = inventory.hosts().find(|h| h.has_role("control-plane")).map(|h| h.name.clone());
    let mut cuts = Vec::new();
    for firing in firings {
        let FaultSpec::Cut(spec) = &scenario.faults[firing.fault];
        let place = format!("faults, cut {}", spec.name);
        let spec = CutSpec { name: firing.name, ..spec.clone() };
        let cut = PlannedCut::resolve(spec, firing.wait, firing.chance, inventory, &|_| example.clone());
        cuts.push(cut.map_err(|reason| misfit(&place, reason))?);
    }
    let leaders_on = match &scenario.arrange.leaders {
        Some(l) => hosts("arrange, leaders, on", &l.on)?,
        None => Vec::new(),
    };
    let unknown = match &scenario.expect.unknown_nodes {
        Some(text) => hosts("expect, unknown-nodes", text)?,
        None => Vec::new(),
    };
    if !scenario.expect.takeovers.is_empty() && (cuts.is_empty() || leaders_on.is_empty()) {
        let reason = "a takeover needs a fault, and `arrange: leaders:` to say who led before".to_owned();
        return Err(misfit("expect, takeovers", reason));
    }
    Ok(Resolved { leaders_on, unknown, cuts })
}

/// Hosts of a cut that end up on the side without a majority of etcd: those of both sides if none has it.
#[must_use]
pub fn isolated(cut: &PlannedCut, inventory: &Inventory) -> Vec<String> {
    let etcd: Vec<&str> = inventory.hosts().filter(|h| h.has_role("etcd")).map(|h| h.name.as_str()).collect();
    let members = |side: &[String]| etcd.iter().filter(|e| side.iter().any(|h| h == *e)).count();
    // A member outside both sets is heard by both.
    let outside = etcd.len() - members(&cut.sets.0) - members(&cut.sets.1);
    let majority = etcd.len() / 2 + 1;
    let mut lost = Vec::new();
    for side in [&cut.sets.0, &cut.sets.1] {
        if !etcd.is_empty() && members(side) + outside < majority {
            lost.extend(side.iter().cloned());
        }
    }
    lost
}

/// What is known of a run before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The run's id.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// Wall-clock start, RFC 3339.
    pub started: String,
    /// The pods workload.
    pub pods: Vec<PodsFacts>,
    /// The clients of the lease workload.
    pub clients: Vec<ClientFacts>,
}

/// The facts of a run as they stand before it starts; length, hosts and ending are filled in at its end.
#[must_use]
pub fn facts(
    scenario: &Scenario,
    resolved: &Resolved,
    inventory: &Inventory,
    in_force: &InForce,
    opening: Opening,
) -> Facts {
    let faults: Vec<FaultFacts> = resolved.cuts.iter().map(|cut| cut.facts(inventory)).collect();
    let lost: Vec<&String> = faults.iter().flat_map(|f| &f.isolated).collect();
    let control: Vec<&str> =
        inventory.hosts().filter(|h| h.has_role("control-plane")).map(|h| h.name.as_str()).collect();
    let from =
        control.iter().find(|h| resolved.leaders_on.iter().any(|l| l == *h)).copied().unwrap_or_default();
    let to: Vec<String> =
        control.iter().filter(|h| !lost.iter().any(|l| l == *h)).map(|h| (*h).to_owned()).collect();
    let duplicates = opening
        .pods
        .iter()
        .filter(|p| scenario.expect.duplicates.contains(&p.owner_kind))
        .map(|p| p.identity.clone())
        .collect();
    Facts {
        rackrift_run: 1,
        run: opening.run,
        scenario: scenario.scenario.clone(),
        purpose: scenario.proves.clone(),
        seed: opening.seed,
        started: opening.started,
        length: 0,
        lab: inventory.lab.clone(),
        versions: in_force.versions.clone(),
        racks: inventory
            .racks
            .iter()
            .map(|r| RackFacts {
                name: r.name.clone(),
                hosts: r.hosts.iter().map(|h| (h.name.clone(), h.roles.clone())).collect(),
            })
            .collect(),
        leases: in_force.leases.clone(),
        nodes: in_force.nodes,
        faults,
        pods: opening.pods,
        clients: opening.clients,
        expect: Expect {
            takeovers: scenario
                .expect
                .takeovers
                .iter()
                .map(|c| Takeover { component: c.clone(), from: from.to_owned(), to: to.clone() })
                .collect(),
            steady: scenario.expect.steady.clone(),
            unknown_nodes: resolved
                .unknown
                .iter()
                .map(|h| inventory.host(h).map_or_else(|| h.clone(), |h| h.node_name().to_owned()))
                .collect(),
            duplicates,
            lease_history: scenario.expect.lease_history,
        },
        hosts: Vec::new(),
        converge_s: u32::try_from(scenario.settle.duration().as_secs()).unwrap_or(u32::MAX),
        cut_short: None,
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::inventory::parse;
    use crate::yaml::Source;

    fn lab() -> Inventory {
        parse::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/two-rack.yaml")).unwrap()
    }

    fn scenario(faults: &str) -> Scenario {
        let text = format!(
            "scenario: s\nproves: p\ncannot-prove: c\nworkloads: {{}}\nbaseline: 5s\nsettle: 60s\n{faults}"
        );
        Source { origin: "a scenario", text: &text }.parse().unwrap()
    }

    fn cuts(faults: &str, seed: u64) -> Vec<PlannedCut> {
        resolve(&scenario(faults), &lab(), seed).unwrap().cuts
    }

    #[test]
    fn a_seed_draws_the_same_hosts_again_and_others_are_all_the_rest() {
        let faults = "faults: [{cut: {name: lost, between: [one of role:etcd, others], hold: 5s}}]\n\
                      schedule: {random: {times: 30, gap: [1s, 2s]}}";
        let drawn = cuts(faults, 3);
        assert_eq!(drawn, cuts(faults, 3));
        let alone: std::collections::BTreeSet<&String> = drawn.iter().map(|c| &c.sets.0[0]).collect();
        assert_eq!(alone.len(), 3, "each member is drawn at some time: {alone:?}");
        for cut in &drawn {
            assert_eq!((cut.sets.0.len(), cut.sets.1.len()), (1, 7));
            assert_eq!(cut.edges.len(), 14);
        }
    }

    #[test]
    fn who_leads_is_filled_in_when_the_fault_begins() {
        let cut =
            &cuts("faults: [{cut: {name: c, between: ['leader:kube-scheduler', others], hold: 5s}}]", 1)[0];
        assert_eq!(cut.leaders, ["kube-scheduler"]);
        let now = cut.with_leaders(&lab(), &|c| (c == "kube-scheduler").then(|| "m2".to_owned())).unwrap();
        assert_eq!(now.sets.0, ["m2"]);
        assert!(!now.sets.1.contains(&"m2".to_owned()));
        let nobody = cut.with_leaders(&lab(), &|_| None).unwrap_err();
        assert!(nobody.contains("nobody is known to lead kube-scheduler"), "{nobody}");
    }

    #[test]
    fn nodes_of_a_state_are_named_as_the_cluster_names_them() {
        let faults = "faults: [{cut: {name: c, between: [rack:a, others], hold: 90s, until: {nodes-unknown: rack:a & role:worker}}}]";
        assert_eq!(cuts(faults, 1)[0].until_nodes, ["w1"]);
    }

    #[test]
    fn misfits_name_the_scenario_and_the_field() {
        let wrong = [
            "faults: [{cut: {name: c, between: [rack:a, rack:z], hold: 5s}}]",
            "faults: [{cut: {name: c, between: [all, others], hold: 5s}}]",
            "faults: [{cut: {name: c, between: [others, rack:a], hold: 5s}}]",
            "faults: [{cut: {name: c, between: [minority of role:control-plane, others], hold: 5s}}]",
            "faults: [{cut: {name: c, between: [rack:a, others], hold: 5s, until: {nodes-ready: rack:q}}}]",
            "schedule: {repeat: {times: 2, gap: 5s}}",
            "faults: [{cut: {name: c, between: [rack:a, others], hold: 5s}}]\nexpect: {takeovers: [kube-scheduler]}",
        ];
        let said: Vec<String> =
            wrong.iter().map(|w| resolve(&scenario(w), &lab(), 1).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
