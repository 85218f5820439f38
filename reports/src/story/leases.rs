//! Lanes of each elected component: the record (by etcd, and by each API server) and what each host believes.
//!
//! # Invariants
//! - The record is ordered by version, never by time; a version's time is the first at which anybody showed it.
//! - A record that is not renewed is drawn dashed from its last renewal on: it names a holder, not a leader.

use std::collections::BTreeMap;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{Entry, LeaseSeen, Nanos};

use super::{Group, Lane, Look, Ordered, Racks, Span, beliefs, observer};

/// Silence after which a record counts as not renewed where no flags are known, ns.
const QUIET: Nanos = 5_000_000_000;

/// Versions of a lease that some observers showed: first time and what it said.
type Versions<'a> = BTreeMap<u64, &'a LeaseSeen>;

#[derive(Default)]
struct Shown<'a> {
    etcd: Versions<'a>,
    api: Ordered<&'a str, Versions<'a>>,
}

impl<K: std::hash::Hash + Eq + Clone, V: Default> Default for Ordered<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// One group for each elected component that the facts name, then for each further lease or component seen.
///
/// Leases were watched until `watched`; what processes say reaches to `end`.
pub(super) fn groups(
    facts: &Facts,
    racks: &Racks,
    entries: &[Entry],
    watched: Nanos,
    end: Nanos,
) -> Vec<Group> {
    let mut leases: Ordered<&str, Shown<'_>> = Ordered::new();
    let mut components: Ordered<&str, beliefs::Heard<'_>> = Ordered::new();
    for lease in &facts.leases {
        leases.entry(&lease.lease);
        components.entry(&lease.component);
    }
    for entry in entries {
        match entry {
            Entry::Lease(seen) => leases.entry(&seen.lease).add(seen),
            Entry::Belief(seen) => components.entry(&seen.component).add(seen),
            _ => {}
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for (lease, shown) in &leases.items {
        let known = facts.leases.iter().find(|l| l.lease == *lease);
        let quiet = known.map_or(QUIET, |l| l.flags.retry_period.saturating_mul(2).max(1_000_000_000));
        let title = known.map_or(*lease, |l| l.component.as_str());
        groups.push(Group {
            title: title.to_owned(),
            lanes: shown.lanes(racks, quiet, watched),
            ..Group::default()
        });
    }
    for (component, heard) in &components.items {
        let (lanes, windows) = heard.lanes(racks, end);
        match groups.iter().position(|g| g.title == *component) {
            Some(place) => {
                let group = &mut groups[place];
                let below = group.lanes.len();
                group.lanes.extend(lanes);
                group.windows.extend(windows.into_iter().map(|mut w| {
                    w.lanes = (w.lanes.0 + below, w.lanes.1 + below);
                    w
                }));
            }
            None => {
                groups.push(Group { title: (*component).to_owned(), lanes, windows, dropped: Vec::new() });
            }
        }
    }
    groups
}

impl<'a> Shown<'a> {
    fn add(&mut self, seen: &'a LeaseSeen) {
        let versions =
            if seen.via.starts_with("etcd") { &mut self.etcd } else { self.api.entry(seen.via.as_str()) };
        let first = versions.entry(seen.version).or_insert(seen);
        if seen.time < first.time {
            *first = seen;
        }
    }

    fn lanes(&self, racks: &Racks, quiet: Nanos, end: Nanos) -> Vec<Lane> {
        let mut lanes = Vec::new();
        if !self.etcd.is_empty() {
            let spans = spans(&self.etcd, racks, quiet, end, "not renewed");
            lanes.push(Lane { name: "record".into(), note: "etcd".into(), spans, ..Lane::default() });
        }
        for (via, versions) in &self.api.items {
            let spans = spans(versions, racks, quiet, end, "nothing newer seen");
            let note = format!("API server {}", observer(via));
            lanes.push(Lane { name: "record".into(), note, spans, ..Lane::default() });
        }
        lanes
    }
}

/// A span for each reign, split where the record stayed silent for longer than `quiet`.
fn spans(versions: &Versions<'_>, racks: &Racks, quiet: Nanos, end: Nanos, silent: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut row = versions.values().peekable();
    while let Some(seen) = row.next() {
        let next = row.peek().map_or(end, |n| n.time);
        let holder = if seen.deleted { "" } else { seen.holder.as_str() };
        let host = racks.host_of(holder);
        let nobody = holder.is_empty();
        let (look, name) = match (seen.deleted, nobody) {
            (true, _) => (Look::Bad, "deleted".to_owned()),
            (_, true) => (Look::Tries, "released".to_owned()),
            _ => (Look::Holds(racks.of(host)), host.to_owned()),
        };
        let tip = if nobody {
            format!("{name} at revision {}", seen.version)
        } else {
            format!("held by {holder}, {} transitions", seen.transitions)
        };
        let renewed_to = if next.saturating_sub(seen.time) > quiet { seen.time } else { next };
        match spans.last_mut() {
            Some(last) if last.look == look && last.tip == tip && last.to >= seen.time => {
                last.to = last.to.max(renewed_to);
            }
            _ => spans.push(Span { from: seen.time, to: renewed_to, look, label: name.clone(), tip }),
        }
        if renewed_to < next && !nobody {
            spans.push(Span {
                from: renewed_to,
                to: next,
                look: Look::Stale(racks.of(host)),
                label: format!("{name}, {silent}"),
                tip: format!("still names {holder} at revision {}, {silent}", seen.version),
            });
        } else if renewed_to < next
            && let Some(last) = spans.last_mut()
        {
            last.to = next;
        }
    }
    spans
}
