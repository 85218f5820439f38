//! Clients' operations by the API server they talk to: what the rate lanes and the latency plot are made of.

use std::collections::HashMap;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{Entry, Nanos, OpType};

use super::{Ordered, RackOf, Racks};

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Done {
    /// It happened.
    Ok,
    /// The server answered no: conflict, exists, absent.
    Refused,
    /// It certainly did not happen, and no server decided so.
    Fail,
    /// It may have happened.
    Info,
}

impl Done {
    /// Whether the server decided it.
    pub(crate) const fn answered(self) -> bool {
        matches!(self, Self::Ok | Self::Refused)
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When it was sent, ns.
    pub(crate) sent: Nanos,
    /// When its end was known, ns.
    pub(crate) done: Nanos,
    /// How it ended.
    pub(crate) how: Done,
}

/// Operations through one API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientLane {
    /// `through m1`.
    pub(crate) name: String,
    /// Rack of that API server.
    pub(crate) rack: RackOf,
    /// Operations by order of completion.
    pub(crate) samples: Vec<Sample>,
    /// Operations sent whose end the history does not have.
    pub(crate) open: usize,
}

impl ClientLane {
    /// How many ended in this way.
    pub(crate) fn count(&self, how: Done) -> usize {
        self.samples.iter().filter(|s| s.how == how).count()
    }
}

#[derive(Default)]
struct Gathered {
    rack: RackOf,
    samples: Vec<Sample>,
    open: HashMap<u64, Nanos>,
}

/// A lane for each API server that a client of the facts talks to, then one for each client they do not name.
pub(super) fn lanes(facts: &Facts, racks: &Racks, entries: &[Entry]) -> Vec<ClientLane> {
    let mut lanes: Ordered<String, Gathered> = Ordered::new();
    let mut named: HashMap<&str, String> = HashMap::new();
    for client in &facts.clients {
        let name = format!("through {}", client.host);
        lanes.entry(name.clone()).rack = racks.of(&client.host);
        named.insert(&client.client, name);
    }
    let mut places: HashMap<Option<&str>, usize> = HashMap::new();
    for entry in entries {
        let Entry::Op(op) = entry else { continue };
        let client = op.client.as_deref();
        let place = *places.entry(client).or_insert_with(|| {
            let name = match client {
                Some(client) => named.get(client).cloned().unwrap_or_else(|| format!("client {client}")),
                None => "all clients".to_owned(),
            };
            lanes.entry(name.clone());
            lanes.places[&name]
        });
        let lane = &mut lanes.items[place].1;
        let how = match op.kind {
            OpType::Invoke => {
                lane.open.insert(op.process, op.time);
                continue;
            }
            OpType::Ok => Done::Ok,
            OpType::Fail if op.is_refusal() => Done::Refused,
            OpType::Fail => Done::Fail,
            OpType::Info => Done::Info,
        };
        let sent = lane.open.remove(&op.process).unwrap_or(op.time).min(op.time);
        lane.samples.push(Sample { sent, done: op.time, how });
    }
    let lane = |(name, g): (String, Gathered)| ClientLane {
        name,
        rack: g.rack,
        samples: g.samples,
        open: g.open.len(),
    };
    lanes.items.into_iter().map(lane).filter(|l| !l.samples.is_empty() || l.open > 0).collect()
}
