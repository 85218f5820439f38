//! Which rack a host, or the holder of a lease, stands in.

use rackrift_checkers::facts::Facts;

/// A rack by its place in the inventory; `None` where it is not known.
pub(crate) type RackOf = Option<usize>;

/// Hosts and their racks.
#[derive(Debug, Clone)]
pub(crate) struct Racks {
    hosts: Vec<(String, usize)>,
}

impl Racks {
    /// Longest host name first, so that `m1` does not answer for `m10`.
    pub(crate) fn new(facts: &Facts) -> Self {
        let racks = facts.racks.iter().enumerate();
        let mut hosts: Vec<(String, usize)> =
            racks.flat_map(|(i, rack)| rack.hosts.iter().map(move |(host, _)| (host.clone(), i))).collect();
        hosts.sort_by_key(|(host, _)| std::cmp::Reverse(host.len()));
        Self { hosts }
    }

    /// The rack of a host.
    pub(crate) fn of(&self, host: &str) -> RackOf {
        self.hosts.iter().find(|(name, _)| name == host).map(|(_, rack)| *rack)
    }

    /// The host in a holderIdentity such as `m1_5d0c1f6e` or `m1.lab_5d0c1f6e`; the identity itself if none is
    /// known in it.
    pub(crate) fn host_of<'h>(&self, holder: &'h str) -> &'h str {
        let known = self.hosts.iter().find(|(host, _)| {
            holder.strip_prefix(host.as_str()).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(|c: char| matches!(c, '_' | '.') || c.is_whitespace())
            })
        });
        known.map_or(holder, |(host, _)| &holder[..host.len()])
    }
}
