//! From a scenario, an inventory and the flags in force to the facts of a run. Pure.
//!
//! # Invariants
//! * Every selector of the scenario is resolved here, before anything is touched; one that matches nobody is an
//!   error of the scenario.

use rackrift_checkers::facts::{ClientFacts, Expect, Facts, FaultFacts, PodsFacts, RackFacts, Takeover};

use super::planned::PlannedFault;
use super::scenario::{FaultSpec, Scenario};
use super::schedule;
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

/// A scenario with its selectors resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Hosts that may lead before the baseline, if the scenario asks for it.
    pub leaders_on: Vec<String>,
    /// Hosts whose nodes must become Unknown.
    pub unknown: Vec<String>,
    /// The faults.
    pub faults: Vec<PlannedFault>,
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
    let mut faults = Vec::new();
    for firing in firings {
        let spec = &scenario.faults[firing.fault];
        let word = match spec {
            FaultSpec::Cut(_) => "cut",
            FaultSpec::Do(_) => "do",
        };
        let place = format!("faults, {word} {}", spec.name());
        let spec = spec.named(firing.name);
        let fault = PlannedFault::resolve(spec, firing.wait, firing.chance, inventory, &|_| example.clone());
        faults.push(fault.map_err(|reason| misfit(&place, reason))?);
    }
    let leaders_on = match &scenario.arrange.leaders {
        Some(l) => hosts("arrange, leaders, on", &l.on)?,
        None => Vec::new(),
    };
    let unknown = match &scenario.expect.unknown_nodes {
        Some(text) => hosts("expect, unknown-nodes", text)?,
        None => Vec::new(),
    };
    if !scenario.expect.takeovers.is_empty() && (faults.is_empty() || leaders_on.is_empty()) {
        let reason = "a takeover needs a fault, and `arrange: leaders:` to say who led before".to_owned();
        return Err(misfit("expect, takeovers", reason));
    }
    Ok(Resolved { leaders_on, unknown, faults })
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
    let faults: Vec<FaultFacts> = resolved.faults.iter().map(|f| f.facts(inventory)).collect();
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::planned::Act;
    use super::*;
    use crate::fault::shape::Shape;
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

    /// Sets and edges of a cut.
    fn parts(fault: &PlannedFault) -> (&[String], &[String], usize) {
        match &fault.act {
            Act::Cut { shape: Shape::RackSplit { a, b }, edges } => (a, b, edges.len()),
            other => panic!("{other:?} is no split"),
        }
    }

    fn cuts(faults: &str, seed: u64) -> Vec<PlannedFault> {
        resolve(&scenario(faults), &lab(), seed).unwrap().faults
    }

    #[test]
    fn a_seed_draws_the_same_hosts_again_and_others_are_all_the_rest() {
        let faults = "faults: [{cut: {name: lost, shape: {rack-split: [one of role:etcd, others]}, hold: 5s}}]\n\
                      schedule: {random: {times: 30, gap: [1s, 2s]}}";
        let drawn = cuts(faults, 3);
        assert_eq!(drawn, cuts(faults, 3));
        let alone: std::collections::BTreeSet<&String> = drawn.iter().map(|c| &parts(c).0[0]).collect();
        assert_eq!(alone.len(), 3, "each member is drawn at some time: {alone:?}");
        for cut in &drawn {
            let (first, second, edges) = parts(cut);
            assert_eq!((first.len(), second.len(), edges), (1, 7, 14));
        }
    }

    #[test]
    fn who_leads_is_filled_in_when_the_fault_begins() {
        let cut = &cuts(
            "faults: [{cut: {name: c, shape: {rack-split: ['leader:kube-scheduler', others]}, hold: 5s}}]",
            1,
        )[0];
        assert_eq!(cut.leaders, ["kube-scheduler"]);
        let now = cut.with_leaders(&lab(), &|c| (c == "kube-scheduler").then(|| "m2".to_owned())).unwrap();
        assert_eq!(parts(&now).0, ["m2"]);
        assert!(!parts(&now).1.contains(&"m2".to_owned()));
        let nobody = cut.with_leaders(&lab(), &|_| None).unwrap_err();
        assert!(nobody.contains("nobody is known to lead kube-scheduler"), "{nobody}");
    }

    #[test]
    fn nodes_of_a_state_are_named_as_the_cluster_names_them() {
        let faults = "faults: [{cut: {name: c, shape: {rack-split: [rack:a, others]}, hold: 90s, until: {nodes-unknown: rack:a & role:worker}}}]";
        assert_eq!(cuts(faults, 1)[0].until_nodes, ["w1"]);
    }

    #[test]
    fn misfits_name_the_scenario_and_the_field() {
        let wrong = [
            "faults: [{cut: {name: c, shape: {rack-split: [rack:a, rack:z]}, hold: 5s}}]",
            "faults: [{cut: {name: c, shape: {rack-split: [all, others]}, hold: 5s}}]",
            "faults: [{cut: {name: c, shape: {rack-split: [others, rack:a]}, hold: 5s}}]",
            "faults: [{cut: {name: c, shape: {rack-split: [minority of role:control-plane, others]}, hold: 5s}}]",
            "faults: [{cut: {name: c, shape: {rack-split: [rack:a, others]}, hold: 5s, until: {nodes-ready: rack:q}}}]",
            "schedule: {repeat: {times: 2, gap: 5s}}",
            "faults: [{cut: {name: c, shape: {rack-split: [rack:a, others]}, hold: 5s}}]\nexpect: {takeovers: [kube-scheduler]}",
        ];
        let said: Vec<String> =
            wrong.iter().map(|w| resolve(&scenario(w), &lab(), 1).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
