//! From a scenario, an inventory and the flags in force to the facts of a run. Pure.
//!
//! # Invariants
//! * Every selector of the scenario is resolved here, before anything is touched; one that matches nobody is an
//!   error of the scenario.

use rackrift_checkers::facts::{ClientFacts, Expect, Facts, FaultFacts, PodsFacts, RackFacts, Takeover};

use super::scenario::{CutSpec, FaultSpec, Scenario};
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

/// A fault of a scenario with its selectors resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCut {
    /// As written.
    pub spec: CutSpec,
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

/// Resolves a scenario's selectors.
///
/// # Errors
/// The first field that does not fit.
pub fn resolve(scenario: &Scenario, inventory: &Inventory) -> Result<Resolved, Misfit> {
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
    let mut cuts = Vec::new();
    for FaultSpec::Cut(spec) in &scenario.faults {
        let place = format!("faults, cut {}, between", spec.name);
        let sets = (hosts(&place, &spec.between.0)?, hosts(&place, &spec.between.1)?);
        let shape = if spec.one_way {
            Shape::OneWay { from: sets.0.clone(), to: sets.1.clone() }
        } else {
            Shape::RackSplit { a: sets.0.clone(), b: sets.1.clone() }
        };
        let edges = shape.edges().map_err(|e| misfit(&place, e.to_string()))?;
        cuts.push(PlannedCut { spec: spec.clone(), sets, edges });
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
    let faults: Vec<FaultFacts> = resolved
        .cuts
        .iter()
        .map(|cut| FaultFacts {
            id: cut.spec.name.clone(),
            kind: format!("partition/{}", if cut.spec.one_way { "one-way" } else { "rack-split" }),
            summary: format!(
                "{} {} {}",
                side_name(&cut.sets.0, inventory),
                if cut.spec.one_way { "→ ✂" } else { "✂" },
                side_name(&cut.sets.1, inventory)
            ),
            edges: cut.edges.iter().map(|e| (e.from.clone(), e.to.clone())).collect(),
            isolated: isolated(cut, inventory),
        })
        .collect();
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
