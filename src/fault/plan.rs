//! A fault as a pure value, before anything happens: every command and its undo, who will hear whom, and what it
//! must not touch.
//!
//! # Invariants
//! * A plan that exists is safe to carry out: what would cut the control path, or could not be undone with the
//!   tools that are there, is refused while planning.
//! * An edge has at least one rule; with both sides, one at the receiver and one at the sender.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use super::address::{Block, Family};
use super::flap::Flap;
use super::id::{FaultId, Way};
use super::packets::Packets;
use super::partition::{Action, Hook, Lines, Place, Rule};
use super::probe::Method;
use super::script::{Envelope, HostPart};
use super::shape::{Edge, Edges, ShapeError};
use super::survey::{HostFacts, Supervisor, Survey};
use crate::inventory::{Host, Inventory, Purpose};

/// Where faults keep their files on a host: gone after a reboot, as the rules are.
pub const RUN_DIR: &str = "/run/rackrift";

/// The shortest time for the dead-man's switch: several renewals must fit in.
pub const LEAST_TTL: Duration = Duration::from_secs(6);

/// A host as a fault sees it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    /// Its name.
    pub host: String,
    /// What is cut: its addresses on data networks, and blocks behind it such as its pods'.
    pub blocks: Vec<Block>,
    /// All its addresses that the inventory knows.
    pub known: Vec<IpAddr>,
    /// The port that probes try: one on which the host listens on all addresses.
    pub probe_port: u16,
    /// Where faults keep their files.
    pub run_dir: String,
}

impl Target {
    /// The host of an inventory. Addresses on a management network are known and never cut.
    #[must_use]
    pub fn of(host: &Host, inventory: &Inventory) -> Self {
        let is_data =
            |name: &String| inventory.networks.iter().any(|n| n.name == *name && n.purpose == Purpose::Data);
        let data = host.addresses.iter().filter(|(network, _)| is_data(network));
        Self {
            host: host.name.clone(),
            blocks: data.flat_map(|(_, all)| all).map(|a| Block::single(*a)).collect(),
            known: host.addresses.values().flatten().copied().collect(),
            probe_port: host.ssh.port,
            run_dir: RUN_DIR.to_owned(),
        }
    }

    /// The same with the ranges of the pods behind it.
    #[must_use]
    pub fn with_pods(mut self, ranges: &[Block]) -> Self {
        self.blocks.extend(ranges.iter().filter(|r| !self.known.iter().any(|a| **r == Block::single(*a))));
        self
    }

    /// Its addresses on data networks.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.known.iter().copied().filter(|a| self.blocks.iter().any(|b| b.contains(*a))).collect()
    }

    fn of_family(&self, family: Family) -> impl Iterator<Item = Block> {
        self.blocks.iter().copied().filter(move |b| b.family() == family)
    }
}

/// Where packets of an edge are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sides {
    /// At the receiver alone: the sender's own sockets notice nothing, as with a cut cable.
    Receiver,
    /// At both: the cut stands as soon as one of the two acts, and still if one of them loses its rules.
    Both,
    /// Both directions at that host of the two whose name comes first, for what comes and goes.
    First,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The fault's id.
    pub id: FaultId,
    /// Its name within the run, such as `rack-split-1`.
    pub name: String,
    /// What to cut.
    pub edges: Edges,
    /// The hosts; those without an edge are left alone.
    pub targets: Vec<Target>,
    /// The inventory's protected addresses.
    pub protected: Vec<IpAddr>,
    /// Dead-man's time.
    pub ttl: Duration,
    /// Where packets are dropped.
    pub sides: Sides,
    /// Which packets.
    pub packets: Packets,
    /// Whether it comes and goes; then [`Sides::First`], whatever `sides` says.
    pub flap: Option<Flap>,
}

/// A host's share of a plan.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HostPlan {
    /// The host.
    pub target: Target,
    /// Its chains.
    pub hooks: Vec<Hook>,
    /// What is done and undone.
    pub part: HostPart,
    /// The boot it was surveyed in.
    pub boot: String,
    /// From where the controller may come, as SSH tells it.
    pub clients: Vec<String>,
    /// What keeps the dead-man's switch running.
    pub supervisor: Supervisor,
    /// Commands that can send probes.
    pub have: BTreeSet<String>,
}

/// A fault, planned.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Plan {
    /// The fault's id.
    pub id: FaultId,
    /// Its name within the run.
    pub name: String,
    /// What is cut.
    pub edges: Edges,
    /// Which packets of these edges.
    pub packets: Packets,
    /// How it comes and goes, if it does.
    pub flap: Option<Flap>,
    /// Dead-man's time, s.
    pub ttl_s: u64,
    /// What no rule matches, and why.
    pub protected: BTreeMap<IpAddr, String>,
    /// The hosts that have an edge.
    pub hosts: BTreeMap<String, HostPlan>,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// Why a fault is not planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The shape is none.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Nothing to cut.
    #[error("there is no edge to cut")]
    Nothing,
    /// An edge from a host to itself.
    #[error("{0} cannot be cut from itself")]
    Itself(String),
    /// An unknown host.
    #[error("there is no host `{0}`; there are: {1}")]
    Unknown(String, String),
    /// A host that cannot be told apart from others.
    #[error(
        "{0} has no address on a data network, so there is nothing to cut; give it one under `addresses`"
    )]
    NoAddress(String),
    /// One address for two hosts.
    #[error("{0} belongs to {1} and to {2}; a cut could not tell them apart")]
    Shared(Block, String, String),
    /// Two hosts that cannot talk anyway.
    #[error("{0} would have no effect: the two have no address family in common")]
    NoFamily(Edge),
    /// The way of the controller would be cut.
    #[error("this would cut the control path: {block} of {host} holds {address}, which is protected ({why})")]
    ControlPath {
        /// The host that would be cut off.
        host: String,
        /// Its block.
        block: Block,
        /// The protected address.
        address: IpAddr,
        /// Why it is.
        why: String,
    },
    /// A host that was not surveyed.
    #[error("{0} could not be surveyed: {1}")]
    NotSurveyed(String, String),
    /// Not root.
    #[error("scripts on {0} do not run as root; log in as root or set `sudo: true`")]
    NotRoot(String),
    /// A tool is missing.
    #[error(
        "{host} has no {command} (with -save and -restore), which it needs for {family}; install iptables there"
    )]
    NoTool {
        /// The host.
        host: String,
        /// The command.
        command: &'static str,
        /// The family.
        family: Family,
    },
    /// Nothing to hold the dead-man's switch.
    #[error("{0} has neither systemd-run nor setsid: its dead-man's switch would die with the session")]
    NoSupervisor(String),
    /// Too short a time.
    #[error("a dead-man's time of {0:?} is too short: at least {LEAST_TTL:?}, in whole seconds")]
    Ttl(Duration),
}

/// All reasons at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Refused(pub Vec<Refusal>);

/// Addresses of these devices belong to pods and containers, not to a network between hosts.
const INNER_DEVICES: [&str; 8] = ["cni", "docker", "flannel", "cali", "cilium", "kube-", "veth", "lo"];

impl Plan {
    /// Plans a fault.
    ///
    /// # Errors
    /// All reasons why not, at once.
    pub fn build(request: &Request, survey: &Survey) -> Result<Self, Refused> {
        let mut planner = Planner::new(request, survey);
        planner.check_hosts();
        planner.check_addresses();
        if !planner.refusals.is_empty() {
            return Err(Refused(planner.refusals));
        }
        planner.plan()
    }

    /// The envelope of a host's scripts.
    #[must_use]
    pub fn envelope<'a>(&'a self, host: &'a HostPlan) -> Envelope<'a> {
        Envelope {
            id: &self.id,
            part: &host.part,
            ttl: self.ttl_s,
            boot: &host.boot,
            clients: &host.clients,
            supervisor: host.supervisor.word(),
        }
    }

    /// Whether a packet with which `from` asks, or a datagram that it sends, reaches `to` while the fault is in force.
    #[must_use]
    pub fn heard(&self, from: &str, to: &str, method: Method) -> bool {
        !(self.edges.contains(&Edge::new(from, to)) && self.packets.takes(method, false))
    }

    /// Whether a question of `from` is answered by `to`: the answer has to come back.
    #[must_use]
    pub fn answered(&self, from: &str, to: &str, method: Method) -> bool {
        let back = self.edges.contains(&Edge::new(to, from)) && self.packets.takes(method, true);
        self.heard(from, to, method) && !back
    }
}

struct Planner<'a> {
    request: &'a Request,
    targets: BTreeMap<&'a str, &'a Target>,
    facts: BTreeMap<&'a str, &'a HostFacts>,
    protected: BTreeMap<IpAddr, String>,
    refusals: Vec<Refusal>,
}

impl<'a> Planner<'a> {
    fn new(request: &'a Request, survey: &'a Survey) -> Self {
        let named: BTreeSet<&str> =
            request.edges.iter().flat_map(|e| [e.from.as_str(), e.to.as_str()]).collect();
        let all: BTreeMap<&str, &Target> = request.targets.iter().map(|t| (t.host.as_str(), t)).collect();
        let mut planner = Self {
            request,
            targets: BTreeMap::new(),
            facts: BTreeMap::new(),
            protected: request.protected.iter().map(|a| (*a, "by the inventory".to_owned())).collect(),
            refusals: Vec::new(),
        };
        for host in named {
            match all.get(host) {
                Some(target) => {
                    planner.targets.insert(host, target);
                }
                None => {
                    let names: Vec<&str> = all.keys().copied().collect();
                    planner.refusals.push(Refusal::Unknown(host.to_owned(), names.join(", ")));
                }
            }
            match survey.get(host) {
                Some(Ok(facts)) => {
                    planner.facts.insert(host, facts);
                    if let Some(address) = facts.controller() {
                        planner
                            .protected
                            .entry(address)
                            .or_insert_with(|| format!("{host} sees the controller there"));
                    }
                }
                Some(Err(why)) => planner.refusals.push(Refusal::NotSurveyed(host.to_owned(), why.clone())),
                None if all.contains_key(host) => {
                    planner
                        .refusals
                        .push(Refusal::NotSurveyed(host.to_owned(), "nobody asked it".to_owned()));
                }
                None => {}
            }
        }
        planner
    }

    fn check_hosts(&mut self) {
        if self.request.edges.is_empty() {
            self.refusals.push(Refusal::Nothing);
        }
        let ttl = self.request.ttl;
        if ttl < LEAST_TTL || ttl.subsec_nanos() != 0 {
            self.refusals.push(Refusal::Ttl(ttl));
        }
        for edge in self.request.edges.iter().filter(|e| e.from == e.to) {
            self.refusals.push(Refusal::Itself(edge.from.clone()));
        }
        for (host, facts) in &self.facts {
            if !facts.root {
                self.refusals.push(Refusal::NotRoot((*host).to_owned()));
            }
            if facts.supervisor.is_none() {
                self.refusals.push(Refusal::NoSupervisor((*host).to_owned()));
            }
        }
    }

    fn check_addresses(&mut self) {
        let mut owners: Vec<(Block, &str)> = Vec::new();
        for (host, target) in &self.targets {
            if target.blocks.is_empty() {
                self.refusals.push(Refusal::NoAddress((*host).to_owned()));
            }
            for block in &target.blocks {
                if let Some((_, other)) = owners.iter().find(|(b, o)| b.meets(*block) && o != host) {
                    self.refusals.push(Refusal::Shared(*block, (*other).to_owned(), (*host).to_owned()));
                }
                owners.push((*block, host));
                for (address, why) in self.protected.iter().filter(|(a, _)| block.contains(**a)) {
                    self.refusals.push(Refusal::ControlPath {
                        host: (*host).to_owned(),
                        block: *block,
                        address: *address,
                        why: why.clone(),
                    });
                }
            }
        }
    }

    fn plan(mut self) -> Result<Plan, Refused> {
        let request = self.request;
        for edge in &request.edges {
            let families =
                |h: &str| self.targets[h].blocks.iter().map(|b| b.family()).collect::<BTreeSet<_>>();
            if families(&edge.from).is_disjoint(&families(&edge.to)) {
                self.refusals.push(Refusal::NoFamily(edge.clone()));
            }
        }
        let names: Vec<&str> = self.targets.keys().copied().collect();
        let mut hosts = BTreeMap::new();
        let mut warnings = Vec::new();
        for host in names {
            let target = self.targets[host];
            let facts = self.facts[host];
            let hooks = self.hooks(host, facts);
            warnings.extend(unlisted(target, facts));
            let flap = request.flap.as_ref().filter(|_| !hooks.is_empty());
            let lines = Lines::of(&request.id, &hooks, flap);
            let part = HostPart {
                host: host.to_owned(),
                run_dir: target.run_dir.clone(),
                stage: lines.stage,
                commit: lines.commit,
                undo: lines.undo,
                left: lines.left,
                look: lines.look,
            };
            let mut clients: Vec<String> = request.protected.iter().map(ToString::to_string).collect();
            clients.extend(facts.client.clone());
            let plan = HostPlan {
                target: target.clone(),
                hooks,
                part,
                boot: facts.boot.clone(),
                clients,
                supervisor: facts.supervisor.unwrap_or(Supervisor::Setsid),
                have: facts.have.clone(),
            };
            hosts.insert(host.to_owned(), plan);
        }
        if !self.refusals.is_empty() {
            return Err(Refused(self.refusals));
        }
        Ok(Plan {
            id: request.id.clone(),
            name: request.name.clone(),
            edges: request.edges.clone(),
            packets: request.packets.clone(),
            flap: request.flap,
            ttl_s: request.ttl.as_secs(),
            protected: self.protected,
            hosts,
            warnings,
        })
    }

    /// The chains of one host; a tool that is missing becomes a refusal.
    fn hooks(&mut self, host: &str, facts: &HostFacts) -> Vec<Hook> {
        let mut hooks = Vec::new();
        for family in Family::ALL {
            for way in [Way::In, Way::Out] {
                let rules = self.rules(host, family, way);
                if rules.is_empty() {
                    continue;
                }
                let Some(tool) = facts.tool(family) else {
                    if rules.iter().all(|r| r.action == Action::Count) {
                        // A host that only counts can do without.
                        continue;
                    }
                    let refusal =
                        Refusal::NoTool { host: host.to_owned(), command: family.command(), family };
                    if !self.refusals.contains(&refusal) {
                        self.refusals.push(refusal);
                    }
                    continue;
                };
                let protected = self.protected.keys().map(|a| Block::single(*a));
                let protected = protected.filter(|b| b.family() == family).collect();
                let packets = &self.request.packets;
                let (place, takes) = (Place::of(way, packets.reject), packets.matches(family));
                hooks.push(Hook { tool, way, place, protected, rules, told: packets.reject, takes });
            }
        }
        hooks
    }

    fn rules(&self, host: &str, family: Family, way: Way) -> Vec<Rule> {
        let sides = if self.request.flap.is_some() { Sides::First } else { self.request.sides };
        if self.targets[host].of_family(family).next().is_none()
            || (way == Way::Out && sides == Sides::Receiver)
        {
            return Vec::new();
        }
        let edges = &self.request.edges;
        let mut rules = Vec::new();
        for (peer, target) in self.targets.iter().filter(|(peer, _)| sides != Sides::First || host < **peer) {
            let edge = match way {
                Way::In => Edge::new(peer, host),
                Way::Out => Edge::new(host, peer),
            };
            let action = if edges.contains(&edge) {
                Action::Drop
            } else if way == Way::In && edges.contains(&edge.reverse()) {
                Action::Count
            } else {
                continue;
            };
            rules.extend(target.of_family(family).map(|block| Rule {
                block,
                peer: (*peer).to_owned(),
                action,
            }));
        }
        rules
    }
}

fn unlisted(target: &Target, facts: &HostFacts) -> Vec<String> {
    let inner = |device: &str| INNER_DEVICES.iter().any(|p| device.starts_with(p));
    facts
        .addresses
        .iter()
        .filter(|(device, address)| {
            !inner(device) && !target.known.contains(address) && !target.blocks.iter().any(|b| b.contains(*address))
        })
        .map(|(device, address)| {
            format!(
                "{} also has {address} on {device}, which the inventory does not list: the cut leaves it open",
                target.host
            )
        })
        .collect()
}
