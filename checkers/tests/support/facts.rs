//! run.json of a synthetic run.

use rackrift_checkers::facts::{
    ClientFacts, Expect, Facts, FaultFacts, HostFacts, LeaseFacts, LeaseFlags, NodeFlags, PodsFacts,
    RackFacts, Takeover,
};

use super::{Plan, s};

/// Hosts of rack a.
pub(crate) const RACK_A: [&str; 3] = ["m1", "w1", "e1"];
/// Everybody else.
pub(crate) const OTHERS: [&str; 5] = ["m2", "w2", "e2", "e3", "lb"];

/// Each directed edge between rack a and everybody else.
pub(crate) fn edges() -> Vec<(String, String)> {
    let pair = |a: &str, b: &str| [(a.to_owned(), b.to_owned()), (b.to_owned(), a.to_owned())];
    RACK_A.iter().flat_map(|a| OTHERS.iter().flat_map(move |b| pair(a, b))).collect()
}

fn role(host: &str) -> Vec<String> {
    let role = match host.as_bytes()[0] {
        b'm' => "control-plane",
        b'w' => "worker",
        b'e' => "etcd",
        _ => "load-balancer",
    };
    vec![role.to_owned()]
}

fn rack(name: &str, hosts: &[&str]) -> RackFacts {
    RackFacts { name: name.to_owned(), hosts: hosts.iter().map(|h| ((*h).to_owned(), role(h))).collect() }
}

fn lease(component: &str, releases: bool) -> LeaseFacts {
    let flags = LeaseFlags { lease_duration: s(15.0), renew_deadline: s(10.0), retry_period: s(2.0) };
    LeaseFacts {
        lease: format!("kube-system/{component}"),
        component: component.to_owned(),
        flags,
        exits_on_loss: true,
        releases,
    }
}

fn pods(identity: &str, owner_kind: &str, wanted: u32) -> PodsFacts {
    PodsFacts { identity: identity.to_owned(), owner_kind: owner_kind.to_owned(), wanted, grace_s: 5 }
}

fn takeover(component: &str) -> Takeover {
    Takeover { component: component.to_owned(), from: "m1".to_owned(), to: vec!["m2".to_owned()] }
}

/// run.json of `plan`.
pub(crate) fn facts(plan: &Plan) -> Facts {
    let version = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    let client = |client: &str, host: &str, rack: &str| ClientFacts {
        client: client.to_owned(),
        host: host.to_owned(),
        rack: rack.to_owned(),
    };
    Facts {
        rackrift_run: 1,
        run: "2026-11-30T21-20-07Z-rack-split-7f3a91".to_owned(),
        scenario: "rack-split".to_owned(),
        purpose: "Leaders in the cut-off rack step down before the others lead; what may run twice does, \
                  what must not does not."
            .to_owned(),
        seed: plan.seed,
        started: "2026-11-30T21:20:07Z".to_owned(),
        length: s(plan.end),
        lab: "two-rack".to_owned(),
        versions: vec![
            version("rackrift", "0.1.0"),
            version("kubernetes", "1.34.4"),
            version("etcd", "3.6.16"),
            version("containerd", "1.6.20"),
            version("kernel", "6.18.0"),
            version("iptables", "1.8.9 (nf_tables)"),
        ],
        racks: vec![rack("a", &RACK_A), rack("b", &OTHERS[..3]), rack("witness", &OTHERS[3..])],
        leases: vec![lease("kube-controller-manager", false), lease("kube-scheduler", true)],
        nodes: NodeFlags {
            monitor_period: s(5.0),
            grace_period: s(50.0),
            heartbeat: s(10.0),
            toleration: s(10.0),
        },
        faults: vec![FaultFacts {
            id: "rack-split-1".to_owned(),
            kind: "partition/rack-split".to_owned(),
            summary: "rack a ⇹ everything else".to_owned(),
            edges: edges(),
            isolated: RACK_A.iter().map(|h| (*h).to_owned()).collect(),
            until: None,
            skipped: None,
        }],
        pods: vec![
            pods("lab/web", "Deployment", 2),
            pods("lab/db-0", "StatefulSet", 1),
            pods("lab/agent@w1", "DaemonSet", 1),
            pods("lab/agent@w2", "DaemonSet", 1),
            pods("lab/batch", "Job", 1),
            pods("lab/bare", "Pod", 1),
        ],
        clients: vec![
            client("a1", "m1", "a"),
            client("a2", "m1", "a"),
            client("b1", "m2", "b"),
            client("b2", "m2", "b"),
        ],
        expect: Expect {
            takeovers: vec![takeover("kube-controller-manager"), takeover("kube-scheduler")],
            steady: Vec::new(),
            unknown_nodes: vec!["w1".to_owned()],
            duplicates: vec!["lab/web".to_owned()],
            lease_history: true,
        },
        hosts: RACK_A
            .iter()
            .chain(&OTHERS)
            .map(|host| HostFacts {
                host: (*host).to_owned(),
                rules_before: format!("sha256:5f2b{}", host),
                rules_after: format!("sha256:5f2b{}", host),
                clean: None,
                dead_man: "armed, disarmed".to_owned(),
            })
            .collect(),
        converge_s: 60,
        cut_short: None,
    }
}
