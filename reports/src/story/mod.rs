//! What a run's facts and history tell, as lanes on one axis: the matter of the timeline, before any drawing.
//!
//! # Invariants
//! - Lanes show what observers said. Nothing here judges: verdicts come from `verdict.json` alone.
//! - Order is that of the facts, then of first appearance; no map's order reaches an output.
//! - Whatever is left out (lanes, spans, marks) is counted in [`Group::dropped`] and said in the report.
//!
//! # Lanes first, drawing second
//! The same lanes feed the SVG and the table for readers who do not see it; neither can know more than the other.

mod beliefs;
mod clients;
mod clock;
mod faults;
mod leases;
mod nodes;
mod overlap;
mod pods;
mod racks;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{Entry, Nanos};

pub(crate) use clients::{ClientLane, Done, Sample};
pub(crate) use clock::Clocks;
pub(crate) use faults::FaultStory;
pub(crate) use racks::{RackOf, Racks};

use crate::words;

/// How a span looks: what it is, not its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Holds, leads or runs, in the colour of its rack.
    Holds(RackOf),
    /// Still on record, but not renewed or not seen newer.
    Stale(RackOf),
    /// Runs by the word of the container runtime alone, without heartbeats.
    Weak(RackOf),
    /// Tries to lead, or follows.
    Tries,
    /// Lost the lease but is still there.
    Tail,
    /// As wanted.
    Good,
    /// Not as wanted.
    Bad,
    /// A fault, seen in force.
    Fault,
    /// A fault asked for, or being healed, but not seen so.
    Asked,
    /// What the API says, drawn round what the node says.
    Outline,
}

/// Something that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Begin, ns.
    pub(crate) from: Nanos,
    /// End, ns.
    pub(crate) to: Nanos,
    /// How it looks.
    pub(crate) look: Look,
    /// What is written in it, if there is room.
    pub(crate) label: String,
    /// What a reader who points at it is told, without the times.
    pub(crate) tip: String,
}

/// What a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyph {
    /// A step of a fault.
    Step,
    /// A process or container ended.
    Stop,
    /// A process or container started.
    Start,
    /// A fault was seen not to be in force.
    Missing,
    /// An answer was lost.
    Lost,
}

/// Something that happens at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// When, ns.
    pub(crate) at: Nanos,
    /// What it is.
    pub(crate) glyph: Glyph,
    /// What a reader who points at it is told, without the time.
    pub(crate) tip: String,
}

/// A row of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    /// What stands before it; empty where it belongs to the lane above.
    pub(crate) name: String,
    /// Who says so, or what is wanted.
    pub(crate) note: String,
    /// What lasts.
    pub(crate) spans: Vec<Span>,
    /// What happens.
    pub(crate) marks: Vec<Mark>,
    /// A line below it.
    pub(crate) caption: String,
}

/// A window over some lanes of a group: too many at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// First and last lane.
    pub(crate) lanes: (usize, usize),
    /// Begin, ns.
    pub(crate) from: Nanos,
    /// End, ns.
    pub(crate) to: Nanos,
    /// What it is: `3 of 2 for 25.9 s, certain`.
    pub(crate) label: String,
}

/// Lanes under one heading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its heading.
    pub(crate) title: String,
    /// Its lanes.
    pub(crate) lanes: Vec<Lane>,
    /// Windows over them.
    pub(crate) windows: Vec<Window>,
    /// What was left out, in words.
    pub(crate) dropped: Vec<String>,
}

/// Most lanes of a group; more would be no picture.
const MOST_LANES: usize = 60;
/// Most spans and most marks of a lane; a lane is under a thousand pixels wide.
const MOST_PER_LANE: usize = 400;
/// Most spans, and most marks, of the whole picture: each costs some hundred bytes of the page. Where there are too
/// many lanes for [`MOST_PER_LANE`] each, all get the same share, but never less than [`LEAST_PER_LANE`].
const MOST_IN_ALL: usize = 900;
const LEAST_PER_LANE: usize = 4;

impl Group {
    /// Keeps the first [`MOST_LANES`] lanes and the longest spans of each, at most `most`, and says what went.
    fn capped(mut self, most: usize) -> Self {
        if self.lanes.len() > MOST_LANES {
            self.dropped.push(format!("{} not drawn", words::counted(self.lanes.len() - MOST_LANES, "lane")));
            self.lanes.truncate(MOST_LANES);
            self.windows.retain(|w| w.lanes.1 < MOST_LANES);
        }
        let (mut spans, mut marks) = (0, 0);
        for lane in &mut self.lanes {
            if lane.spans.len() > most {
                spans += lane.spans.len() - most;
                lane.spans.sort_by_key(|s| std::cmp::Reverse(s.to.saturating_sub(s.from)));
                lane.spans.truncate(most);
                lane.spans.sort_by_key(|s| s.from);
            }
            marks += lane.marks.len().saturating_sub(most);
            lane.marks.truncate(most);
        }
        if spans > 0 {
            self.dropped.push(format!("the {} not drawn", words::counted(spans, "shortest span")));
        }
        if marks > 0 {
            self.dropped.push(format!("{} not drawn", words::counted(marks, "later mark")));
        }
        if self.windows.len() > most {
            let gone = self.windows.len() - most;
            self.dropped.push(format!("{} not drawn", words::counted(gone, "later window")));
            self.windows.truncate(most);
        }
        self
    }
}

/// All that a run tells.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    /// End of the axis, ns; over 0.
    pub(crate) end: Nanos,
    /// The moment that the axis counts from: when the first fault was in force.
    pub(crate) zero: Nanos,
    /// What happened then: `cut`, `fault`, `start`.
    pub(crate) zero_name: &'static str,
    /// What became of each fault.
    pub(crate) faults: Vec<FaultStory>,
    /// Lanes, in the order of the report.
    pub(crate) groups: Vec<Group>,
    /// Client operations by API server.
    pub(crate) clients: Vec<ClientLane>,
    /// How well the hosts' clocks are known.
    pub(crate) clocks: Clocks,
    /// Lines of the history.
    pub(crate) lines: usize,
}

impl Story {
    /// Reads facts and history once.
    pub(crate) fn tell(facts: &Facts, entries: &[Entry]) -> Self {
        let racks = Racks::new(facts);
        let end = end(facts, entries);
        let faults = faults::tell(facts, entries);
        let first = faults.iter().filter(|f| f.asked.is_some()).min_by_key(|f| f.asked);
        let (zero, zero_name) = first.map_or((0, "start"), |fault| {
            let name = if fault.kind.starts_with("partition") { "cut" } else { "fault" };
            (fault.in_force.or(fault.asked).unwrap_or(0).min(end), name)
        });
        let mut groups = vec![faults::group(&faults, zero, end)];
        let watched = watched(entries, end);
        groups.extend(leases::groups(facts, &racks, entries, watched, end));
        groups.push(nodes::group(entries, watched));
        groups.push(pods::group(facts, &racks, entries, end));
        groups.retain(|g| !g.lanes.is_empty());
        let lanes: usize = groups.iter().map(|g| g.lanes.len().min(MOST_LANES)).sum();
        let most = (MOST_IN_ALL / lanes.max(1)).clamp(LEAST_PER_LANE, MOST_PER_LANE);
        let groups = groups.into_iter().map(|g| g.capped(most)).collect();
        let clients = clients::lanes(facts, &racks, entries);
        let clocks = Clocks::new(entries);
        Self { end, zero, zero_name, faults, groups, clients, clocks, lines: entries.len() }
    }

    /// Spans of the axis in which a fault was, or may have been, in force.
    pub(crate) fn shades(&self) -> Vec<(Nanos, Nanos)> {
        let shade =
            |f: &FaultStory| Some((f.in_force.or(f.asked)?.min(self.end), f.healed.unwrap_or(self.end)));
        self.faults.iter().filter_map(shade).map(|(from, to)| (from, to.clamp(from, self.end))).collect()
    }
}

/// The end of the axis: the last line of the history, as what follows (collecting, judging) shows nothing. A stray
/// time far behind the run's end does not squeeze the picture: it is drawn at the edge.
fn end(facts: &Facts, entries: &[Entry]) -> Nanos {
    let last = entries.iter().map(when).max().unwrap_or(facts.length);
    let end = if facts.length == 0 { last } else { last.min(facts.length.saturating_add(facts.length / 4)) };
    end.max(1_000_000)
}

/// Until when somebody watched leases and nodes: silence after that says nothing.
fn watched(entries: &[Entry], end: Nanos) -> Nanos {
    let seen = entries.iter().filter(|e| matches!(e, Entry::Lease(_) | Entry::Node(_))).map(when).max();
    seen.unwrap_or(end).min(end)
}

fn when(entry: &Entry) -> Nanos {
    match entry {
        Entry::Op(x) => x.time,
        Entry::Lease(x) => x.time,
        Entry::Belief(x) => x.at.lo,
        Entry::Pod(x) => x.to.lo,
        Entry::Node(x) => x.time,
        Entry::Fault(x) => x.time,
        Entry::Clock(x) => x.received,
        Entry::Note(x) => x.time,
    }
}

/// The host of an observer: `m1` of `api:m1`.
fn observer(via: &str) -> &str {
    via.split_once(':').map_or(via, |(_, host)| host)
}

/// Items by key in order of first appearance.
#[derive(Debug)]
struct Ordered<K, V> {
    items: Vec<(K, V)>,
    places: std::collections::HashMap<K, usize>,
}

impl<K: std::hash::Hash + Eq + Clone, V: Default> Ordered<K, V> {
    fn new() -> Self {
        Self { items: Vec::new(), places: std::collections::HashMap::new() }
    }

    fn entry(&mut self, key: K) -> &mut V {
        let place = *self.places.entry(key.clone()).or_insert_with(|| {
            self.items.push((key, V::default()));
            self.items.len() - 1
        });
        &mut self.items[place].1
    }
}
