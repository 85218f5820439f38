//! What the judge must know beside the history: `run.json`.
//!
//! Bounds come from the flags in force (see [`LeaseFlags`] and [`NodeFlags`]); nothing here is a default that
//! a checker may assume.

use serde::{Deserialize, Serialize};

use crate::history::Nanos;

/// `run.json`: the facts of one run of one scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Facts {
    /// Version of the format; 1 today.
    pub rackrift_run: u32,
    /// The run's id, which is its folder's name.
    pub run: String,
    /// The scenario's id, such as `rack-split`.
    pub scenario: String,
    /// What the scenario proves, in a sentence.
    pub purpose: String,
    /// The seed.
    pub seed: u64,
    /// Wall-clock start, RFC 3339.
    pub started: String,
    /// Length of the run, ns; 0 while it runs.
    pub length: Nanos,
    /// The lab's name.
    pub lab: String,
    /// Versions by name: `rackrift`, `kubernetes`, `etcd`, `kernel`, `containerd`, `iptables` ...
    pub versions: Vec<(String, String)>,
    /// Racks and their hosts, in the order of the inventory.
    pub racks: Vec<RackFacts>,
    /// Each elected component's flags.
    pub leases: Vec<LeaseFacts>,
    /// The node controller's flags.
    pub nodes: NodeFlags,
    /// The faults planned.
    pub faults: Vec<FaultFacts>,
    /// The pods workload.
    pub pods: Vec<PodsFacts>,
    /// The clients of the lease workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientFacts>,
    /// Which checks the scenario asks for, and what it expects.
    pub expect: Expect,
    /// Host safety: before and after.
    pub hosts: Vec<HostFacts>,
    /// Largest number of seconds after heal within which all must have converged.
    pub converge_s: u32,
    /// How the run ended, if not by its plan: `interrupted`, `the lab did not settle: ...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

/// A rack and its hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RackFacts {
    /// The rack's name.
    pub name: String,
    /// Host names with their roles.
    pub hosts: Vec<(String, Vec<String>)>,
}

/// An elected component and its flags in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseFacts {
    /// `kube-system/kube-controller-manager`.
    pub lease: String,
    /// `kube-controller-manager`.
    pub component: String,
    /// Flags in force.
    pub flags: LeaseFlags,
    /// Whether the process leaves by exit when it loses the lease (kcm and scheduler do).
    pub exits_on_loss: bool,
    /// Whether it releases the lease on a clean stop (the scheduler does).
    pub releases: bool,
}

/// `--leader-elect-*` in force, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseFlags {
    /// `--leader-elect-lease-duration` (LD).
    pub lease_duration: Nanos,
    /// `--leader-elect-renew-deadline` (RD).
    pub renew_deadline: Nanos,
    /// `--leader-elect-retry-period` (RP).
    pub retry_period: Nanos,
}

/// Flags of the node life cycle in force, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeFlags {
    /// `--node-monitor-period` (MP).
    pub monitor_period: Nanos,
    /// `--node-monitor-grace-period` (G).
    pub grace_period: Nanos,
    /// Period of the kubelet's lease renewal (HB): a quarter of `nodeLeaseDurationSeconds`.
    pub heartbeat: Nanos,
    /// Default `unreachable:NoExecute` toleration (TS).
    pub toleration: Nanos,
}

/// A planned fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FaultFacts {
    /// The fault's id within the run.
    pub id: String,
    /// Its kind and shape: `partition/rack-split`.
    pub kind: String,
    /// What it does, in a few words: `rack a ⇹ everything else`.
    pub summary: String,
    /// Directed edges `[from, to]` that must be cut; `[host, host]`: what is done is done to the host itself.
    pub edges: Vec<(String, String)>,
    /// Hosts that end up without etcd's majority.
    pub isolated: Vec<String>,
    /// The state that ends it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilFacts>,
    /// Why it was left out, if the lab lacks what it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// A state that a fault waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UntilFacts {
    /// In words: `the lease of kube-scheduler has moved`.
    pub state: String,
    /// How long the fault waits for it at most, ns.
    pub longest: Nanos,
}

/// A client of the lease workload and the API server that it talks to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientFacts {
    /// The client as in the history's `op` lines, such as `a1`.
    pub client: String,
    /// The host whose API server it talks to, such as `m1`.
    pub host: String,
    /// The rack it stands in.
    pub rack: String,
}

/// A workload of pods and what is promised of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PodsFacts {
    /// The identity as in the history.
    pub identity: String,
    /// `Deployment`, `StatefulSet`, `DaemonSet`, `Job`, `Pod`.
    pub owner_kind: String,
    /// How many are wanted at once.
    pub wanted: u32,
    /// terminationGracePeriodSeconds.
    pub grace_s: u32,
}

/// What a scenario expects to see; a check whose subject did not happen is `invalid`, not passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Expect {
    /// Lease moves `[component, from host, to host]` that must happen.
    pub takeovers: Vec<Takeover>,
    /// Components whose lease must not move.
    pub steady: Vec<String>,
    /// Nodes that must become Unknown.
    pub unknown_nodes: Vec<String>,
    /// Identities of which a duplicate window is expected (not promised, so measured).
    pub duplicates: Vec<String>,
    /// Whether client operations on leases are judged.
    pub lease_history: bool,
}

/// A lease move that must happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Takeover {
    /// The component.
    pub component: String,
    /// The host that led before the fault.
    pub from: String,
    /// The hosts that may lead afterwards.
    pub to: Vec<String>,
}

/// The safety record of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostFacts {
    /// The host.
    pub host: String,
    /// Digest of its rules before, counters aside.
    pub rules_before: String,
    /// Digest of its rules after, counters aside.
    pub rules_after: String,
    /// Absent: verified clean at the end. Else why not: `rule rackrift-x left in raw`, `unreachable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<String>,
    /// What became of the dead-man's switch: `armed, disarmed`, `fired`.
    pub dead_man: String,
}
