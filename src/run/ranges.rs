//! Address ranges of the pods behind each host. Networks that route pods' addresses as they are carry their packets past
//! a cut of the hosts' own addresses; an overlay's packets bear those.
//!
//! # Invariants
//! * What the inventory says of a host is taken as it is; the cluster is asked about the others alone.
//! * What is not known is said in the plan, and cuts nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::planned::PlannedFault;
use super::scenario::{FaultSpec, Scope};
use crate::fault::address::Block;
use crate::inventory::{Host, Inventory};
use crate::kube::kubectl::Kubectl;
use crate::kube::objects::{List, Node};

const ASK: Duration = Duration::from_secs(10);

/// Ranges by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRanges {
    of: BTreeMap<String, Vec<Block>>,
    /// Why not, and of whom.
    unknown: BTreeMap<String, Vec<String>>,
}

impl PodRanges {
    /// Takes them from the inventory, and from the cluster where it says nothing; none if no fault has to do with pods.
    pub async fn read(inventory: &Inventory, faults: &[PlannedFault]) -> Self {
        let meant = |f: &PlannedFault| matches!(&f.spec, FaultSpec::Cut(c) if c.scope == Scope::HostsAndPods);
        if !faults.iter().any(meant) {
            return Self::default();
        }
        let silent = inventory.hosts().any(|h| h.pods.is_empty() && runs_pods(h));
        let asked = if silent { nodes(inventory).await } else { Ok(Vec::new()) };
        Self::of(inventory, &asked)
    }

    /// The same with the cluster's answer: its nodes, or why there is none.
    fn of(inventory: &Inventory, asked: &Result<Vec<Node>, String>) -> Self {
        let mut ranges = Self::default();
        for host in inventory.hosts() {
            let told = match asked {
                _ if !host.pods.is_empty() => Some(Ok(host.pods.clone())),
                // What is no node runs no pods.
                Ok(nodes) => nodes.iter().find(|n| n.metadata.name == host.node_name()).map(of_node),
                Err(why) => runs_pods(host).then(|| Err(why.clone())),
            };
            match told {
                Some(Ok(told)) => drop(ranges.of.insert(host.name.clone(), told)),
                Some(Err(why)) => ranges.unknown.entry(why).or_default().push(host.name.clone()),
                None => {}
            }
        }
        ranges
    }

    /// The ranges behind a host.
    #[must_use]
    pub fn behind(&self, host: &str) -> &[Block] {
        self.of.get(host).map_or(&[], Vec::as_slice)
    }

    /// What a plan about these hosts must say.
    #[must_use]
    pub fn notes(&self, hosts: &[String]) -> Vec<String> {
        let unknown = self.unknown.iter().filter_map(|(why, all)| {
            let named: Vec<&str> = all.iter().filter(|h| hosts.contains(h)).map(String::as_str).collect();
            (!named.is_empty()).then(|| (why, named.join(", ")))
        });
        let note = |(why, named): (&String, String)| {
            format!(
                "the addresses of pods behind {named} are not known ({why}): if the network routes them as they are, \
                 the cut leaves them open; list them as `pods` of the host in the inventory"
            )
        };
        unknown.map(note).collect()
    }
}

fn runs_pods(host: &Host) -> bool {
    host.has_role("worker") || host.has_role("control-plane")
}

fn of_node(node: &Node) -> Result<Vec<Block>, String> {
    match node.pod_ranges() {
        [] => Err("its node tells no podCIDRs".to_owned()),
        told => told.iter().map(|r| r.parse().map_err(|e| format!("{e}"))).collect(),
    }
}

async fn nodes(inventory: &Inventory) -> Result<Vec<Node>, String> {
    let kubectl = Kubectl::new(inventory).map_err(|e| e.to_string())?;
    let mut why = "the inventory names no API server".to_owned();
    for url in inventory.kubernetes.api_servers.values() {
        match kubectl.on(url).run(&["get", "nodes", "-o", "json"], None, ASK).await {
            Ok(text) => {
                let list: List<Node> =
                    serde_json::from_str(&text).map_err(|e| format!("kubectl get nodes: {e}"))?;
                return Ok(list.items());
            }
            Err(e) => why = e.to_string(),
        }
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::inventory::parse;

    fn lab() -> Inventory {
        let mut lab =
            parse::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/two-rack.yaml")).unwrap();
        let m2 = lab.racks.iter_mut().flat_map(|r| &mut r.hosts).find(|h| h.name == "m2").unwrap();
        m2.pods = vec!["10.9.0.0/24".parse().unwrap()];
        lab
    }

    fn node(name: &str, ranges: &[&str]) -> Node {
        serde_json::from_value(serde_json::json!({"metadata": {"name": name}, "spec": {"podCIDRs": ranges}}))
            .unwrap()
    }

    #[test]
    fn the_inventory_comes_first_then_the_nodes_and_what_nobody_tells_is_said() {
        let nodes = vec![
            node("m2", &["10.244.9.0/24"]),
            node("w1", &["10.244.1.0/24", "fd44:1::/64"]),
            node("w2", &[]),
        ];
        let ranges = PodRanges::of(&lab(), &Ok(nodes));
        let told = |host| ranges.behind(host).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(
            ["m2", "w1", "w2", "m1", "e1"].map(told),
            ["10.9.0.0/24", "10.244.1.0/24 fd44:1::/64", "", "", ""]
        );
        let hosts = ["m1", "m2", "w1", "e1"].map(str::to_owned);
        assert!(ranges.notes(&hosts).is_empty());
        let said = ranges.notes(&["w1", "w2"].map(str::to_owned)).join("\n");
        assert!(
            said.starts_with("the addresses of pods behind w2 are not known (its node tells no podCIDRs)"),
            "{said}"
        );
    }

    #[test]
    fn a_cluster_that_does_not_answer_leaves_what_the_inventory_says() {
        let ranges = PodRanges::of(&lab(), &Err("connection refused".to_owned()));
        assert_eq!(ranges.behind("m2").len(), 1);
        let said = ranges.notes(&["m1", "m2", "w1", "e1"].map(str::to_owned)).join("\n");
        assert!(said.contains("behind m1, w1 are not known (connection refused)"), "{said}");
    }

    #[test]
    fn a_range_that_is_none_is_said() {
        let ranges = PodRanges::of(&lab(), &Ok(vec![node("w1", &["10.244.1.0/99"]), node("w2", &[])]));
        let said = ranges.notes(&["w1", "w2"].map(str::to_owned));
        assert_eq!(said.len(), 2, "each reason with its own hosts: {said:?}");
        let said = said.join("\n");
        assert!(said.contains("`10.244.1.0/99` is not an address or a block"), "{said}");
    }
}
