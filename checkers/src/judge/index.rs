//! One pass over a history: its lines sorted by what they speak of.
//!
//! # Invariants
//! - Every list keeps the recorder's order, except a lease's versions, which are in version order.
//! - Line numbers are those of `history.jsonl`, whose first line is the header: entry `i` stands on line `i + 2`.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Cut;
use super::record::Record;
use super::wording::length;
use crate::facts::{Facts, LeaseFacts};
use crate::history::{Belief, ClockSample, Entry, FaultMark, Nanos, NodeSeen, Op, PodSeen, PodSource};

/// A line of the history with its number.
#[derive(Debug)]
pub(super) struct Line<'a, T> {
    /// What it says.
    pub(super) seen: &'a T,
    /// Its number in `history.jsonl`, from 1.
    pub(super) line: u64,
}

// Not derived: a derive would ask `T` itself to be `Copy`.
impl<T> Clone for Line<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Line<'_, T> {}

/// A run's facts and the lines of its history, by subject.
pub(super) struct Index<'a> {
    pub(super) facts: &'a Facts,
    /// Versions by lease.
    pub(super) leases: BTreeMap<&'a str, Record<'a>>,
    /// By component.
    pub(super) beliefs: BTreeMap<&'a str, Vec<Line<'a, Belief>>>,
    /// By identity.
    pub(super) pods: BTreeMap<&'a str, Vec<Line<'a, PodSeen>>>,
    /// By node.
    pub(super) nodes: BTreeMap<&'a str, Vec<Line<'a, NodeSeen>>>,
    /// By host.
    pub(super) clocks: BTreeMap<&'a str, Vec<&'a ClockSample>>,
    /// Clients' operations.
    pub(super) ops: Vec<Line<'a, Op>>,
    /// Planned faults and what became of them.
    pub(super) cuts: Vec<Cut<'a>>,
    /// Hosts that the planned faults leave without etcd's majority.
    isolated: BTreeSet<&'a str>,
    /// The last moment of which each node itself told something of its pods.
    heard: BTreeMap<&'a str, Nanos>,
    /// The last moment that the history speaks of.
    pub(super) end: Nanos,
}

impl<'a> Index<'a> {
    /// Sorts the lines of a history.
    pub(super) fn new(facts: &'a Facts, entries: &'a [Entry]) -> Self {
        let mut index = Self {
            facts,
            leases: BTreeMap::new(),
            beliefs: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            clocks: BTreeMap::new(),
            ops: Vec::new(),
            cuts: Vec::new(),
            isolated: facts.faults.iter().flat_map(|f| f.isolated.iter().map(String::as_str)).collect(),
            heard: BTreeMap::new(),
            end: 0,
        };
        let mut marks: Vec<Line<'a, FaultMark>> = Vec::new();
        for (entry, line) in entries.iter().zip(2u64..) {
            let when = match entry {
                Entry::Op(seen) => {
                    index.ops.push(Line { seen, line });
                    seen.time
                }
                Entry::Lease(seen) => {
                    index.leases.entry(&seen.lease).or_default().add(Line { seen, line });
                    seen.time
                }
                Entry::Belief(seen) => {
                    index.beliefs.entry(&seen.component).or_default().push(Line { seen, line });
                    seen.at.hi
                }
                Entry::Pod(seen) => {
                    index.pods.entry(&seen.identity).or_default().push(Line { seen, line });
                    if seen.source != PodSource::Api {
                        let heard = index.heard.entry(&seen.node).or_default();
                        *heard = seen.to.hi.max(*heard);
                    }
                    seen.to.hi
                }
                Entry::Node(seen) => {
                    index.nodes.entry(&seen.node).or_default().push(Line { seen, line });
                    seen.time
                }
                Entry::Fault(seen) => {
                    marks.push(Line { seen, line });
                    seen.time
                }
                Entry::Clock(sample) => {
                    index.clocks.entry(&sample.host).or_default().push(sample);
                    sample.received
                }
                Entry::Note(note) => note.time,
            };
            index.end = index.end.max(when);
        }
        for record in index.leases.values_mut() {
            record.sort();
        }
        index.cuts = facts.faults.iter().map(|fault| Cut::new(fault, &marks)).collect();
        index
    }

    /// The last moment of which `node` itself told something of its pods; 0 if it never did.
    pub(super) fn heard(&self, node: &str) -> Nanos {
        self.heard.get(node).copied().unwrap_or(0)
    }

    /// The first fault that was asked for; moments are told relative to it.
    pub(super) fn cut(&self) -> Option<&Cut<'a>> {
        self.cuts.iter().filter(|cut| cut.asked.is_some()).min_by_key(|cut| cut.asked)
    }

    /// The last fault that was asked for: what comes after its heal is the undisturbed end.
    pub(super) fn last_cut(&self) -> Option<&Cut<'a>> {
        self.cuts.iter().filter(|cut| cut.asked.is_some()).max_by_key(|cut| cut.asked)
    }

    /// Hosts that the planned faults leave without etcd's majority.
    pub(super) const fn isolated(&self) -> &BTreeSet<&'a str> {
        &self.isolated
    }

    /// Whether an observer such as `etcd:e3`, `api:m2` or `m2` looked from outside the isolated hosts, whichever fault
    /// was in force.
    pub(super) fn always_sees_majority(&self, via: &str) -> bool {
        !self.isolated.contains(observer_host(via))
    }

    /// Whether an observer looked at `t` from outside the hosts that the fault of that time isolates. The time of a fault
    /// begins with the heal of the one before it: how soon after a heal a server is up to date again is not known.
    pub(super) fn sees_majority(&self, via: &str, t: Nanos) -> bool {
        let mut asked: Vec<&Cut<'_>> = self.cuts.iter().filter(|cut| cut.asked.is_some()).collect();
        asked.sort_by_key(|cut| cut.asked);
        let Some(last) = asked.last() else { return self.always_sees_majority(via) };
        let of_t = asked.iter().find(|cut| cut.healed.is_some_and(|healed| t <= healed)).unwrap_or(last);
        !of_t.fault.isolated.iter().any(|host| host == observer_host(via))
    }

    /// A component's lease and flags.
    pub(super) fn component(&self, component: &str) -> Option<&'a LeaseFacts> {
        self.facts.leases.iter().find(|lease| lease.component == component)
    }

    /// The versions of a component's lease.
    pub(super) fn record(&self, component: &str) -> Option<&Record<'a>> {
        self.leases.get(self.component(component)?.lease.as_str())
    }

    /// The host on which the process with this holderIdentity runs: identities are `hostname_uuid`.
    pub(super) fn host_of<'s>(&self, holder: &'s str) -> &'s str {
        let host = holder.split_once('_').map_or(holder, |(host, _)| host);
        let known = |name: &str| self.facts.racks.iter().any(|r| r.hosts.iter().any(|(h, _)| h == name));
        match host.split_once('.') {
            Some((first, _)) if !known(host) && known(first) => first,
            _ => host,
        }
    }

    /// Hosts that have this role.
    pub(super) fn hosts_with(&self, role: &str) -> Vec<&'a str> {
        let hosts = self.facts.racks.iter().flat_map(|rack| &rack.hosts);
        hosts.filter(|(_, roles)| roles.iter().any(|r| r == role)).map(|(host, _)| host.as_str()).collect()
    }

    /// `19.5 s after the cut`, `600 ms before the cut`; without a cut `39.5 s into the run`.
    pub(super) fn moment(&self, t: Nanos) -> String {
        match self.cut().and_then(|cut| cut.in_force.or(cut.asked)) {
            Some(cut) if t >= cut => format!("{} after the cut", length(t - cut)),
            Some(cut) => format!("{} before the cut", length(cut - t)),
            None => format!("{} into the run", length(t)),
        }
    }
}

/// `e3` of `etcd:e3`.
pub(super) fn observer_host(via: &str) -> &str {
    via.split_once(':').map_or(via, |(_, host)| host)
}
