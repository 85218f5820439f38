//! Whole histories in our format, each with one anomaly in it, its near miss, or nothing wrong.
//!
//! # Invariants
//! * The same plan gives the same bytes on every machine.
//! * The lines named guilty are those that a check names, no more and no fewer; the near miss and the valid history
//!   pass.

use super::lines::Lines;
use super::locks;
use super::objects;
use super::versioned::Anomaly as Versioned;
use crate::history::{Entry, Header, jsonl};

/// How many seeds that follow from the one given are tried: not every short history has a place for every anomaly.
const TRIES: u64 = 64;

/// What is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Operations, over all keys.
    pub operations: usize,
    /// Clients of each key.
    pub clients: usize,
    /// Keys.
    pub keys: usize,
    /// What all choices follow from.
    pub seed: u64,
    /// Where the anomaly is, from 0 (the beginning) to 1 (the end).
    pub at: f64,
    /// With the anomaly, its near miss, or neither.
    pub kind: Kind,
}

/// With the anomaly, its near miss, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing is wrong.
    Valid,
    /// The anomaly.
    Broken,
    /// The anomaly, changed as little as makes it legal.
    NearMiss,
}

impl Plan {
    /// By key: its number, its seed, and how many operations it has.
    pub(super) fn shares(&self) -> impl Iterator<Item = (usize, u64, usize)> {
        let (seed, operations, keys) = (self.seed, self.operations, self.keys.max(1));
        (0..keys).map(move |key| {
            let share = operations / keys + usize::from(key < operations % keys);
            (key, seed.wrapping_add((key as u64).wrapping_mul(0x9e37_79b9)), share)
        })
    }
}

/// A history that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its first line.
    pub header: Header,
    /// Its other lines.
    pub entries: Vec<Entry>,
    /// Positions of the entries that prove the anomaly, or would if this were not its near miss.
    pub guilty: Vec<usize>,
}

impl Made {
    /// As JSON Lines.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        jsonl::write(&self.header, &self.entries)
    }

    /// The lines that prove the anomaly, from 1.
    #[must_use]
    pub fn lines(&self) -> Vec<u64> {
        self.guilty.iter().map(|&at| at as u64 + 2).collect()
    }
}

/// Something that can go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Anomaly {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// What its near miss changes.
    pub near_miss: &'static str,
    /// Who finds it.
    pub found_by: &'static str,
    /// The rule that a check names.
    pub rule: &'static str,
    make: Make,
}

#[derive(Debug, Clone, Copy)]
enum Make {
    Versioned(Versioned),
    TwoHolders,
}

/// All anomalies.
pub const ANOMALIES: [Anomaly; 8] = [
    Anomaly {
        name: "stale-read",
        what: "A read returns a version older than one that somebody had been told before the read began.",
        near_miss: "The read begins in the very moment in which that was told: the two may have been at once.",
        found_by: "engine::versioned",
        rule: "stale-read",
        make: Make::Versioned(Versioned::StaleRead),
    },
    Anomaly {
        name: "future-read",
        what: "A read returns a version before anybody began to write it.",
        near_miss: "The read returns in the very moment in which the write begins.",
        found_by: "engine::versioned",
        rule: "future-read",
        make: Make::Versioned(Versioned::FutureRead),
    },
    Anomaly {
        name: "lost-update",
        what: "Two writes replace the same version, and both are told that they did.",
        near_miss: "The second is refused: a conflict.",
        found_by: "engine::versioned",
        rule: "lost-update",
        make: Make::Versioned(Versioned::LostUpdate),
    },
    Anomaly {
        name: "thin-air",
        what: "A read shows a version that nobody wrote.",
        near_miss: "It shows the version before that, which somebody wrote.",
        found_by: "engine::versioned",
        rule: "thin-air",
        make: Make::Versioned(Versioned::ThinAir),
    },
    Anomaly {
        name: "duplicate-version",
        what: "Two writes are told that they made the same version.",
        near_miss: "The answer of the second is lost: it may not have happened.",
        found_by: "engine::versioned",
        rule: "duplicate-version",
        make: Make::Versioned(Versioned::DuplicateVersion),
    },
    Anomaly {
        name: "failed-write-visible",
        what: "A read shows the mark of a write that had certainly failed.",
        near_miss: "It shows the mark of the write that made the version.",
        found_by: "engine::versioned",
        rule: "failed-write-visible",
        make: Make::Versioned(Versioned::FailedWriteVisible),
    },
    Anomaly {
        name: "conflict-without-cause",
        what: "A write is refused as out of date although the version it expected was the current one all the time.",
        near_miss: "The refusal comes only after the next version was written.",
        found_by: "engine::versioned",
        rule: "conflict-without-cause",
        make: Make::Versioned(Versioned::ConflictWithoutCause),
    },
    Anomaly {
        name: "two-holders",
        what: "A client is told that it holds a mutex while another one certainly holds it.",
        near_miss: "It is told so in the very moment in which the other begins to release it.",
        found_by: "engine::mutex",
        rule: "two-holders",
        make: Make::TwoHolders,
    },
];

impl Anomaly {
    /// The anomaly of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        ANOMALIES.iter().find(|anomaly| anomaly.name == name)
    }

    /// A history with it, its near miss, or neither; nothing if the history planned has no place for it, because it is
    /// too short or too many clients are at work.
    #[must_use]
    pub fn history(&self, plan: Plan) -> Option<Made> {
        (0..TRIES).find_map(|n| {
            // The valid history is that which the anomaly is planted into, so places count for it too.
            let seed = plan.seed.wrapping_add(n.wrapping_mul(0x2545_f491_4f6c_dd1d));
            let seeded = |kind| Plan { seed, kind, ..plan };
            self.lines(&seeded(Kind::Broken))?;
            let (entries, guilty) = self.lines(&seeded(plan.kind))?.sorted();
            let header = Header {
                rackrift_history: jsonl::FORMAT,
                origin: "1970-01-01T00:00:00Z".into(),
                run: self.name.to_owned(),
            };
            Some(Made { header, entries, guilty })
        })
    }

    fn lines(&self, plan: &Plan) -> Option<Lines> {
        match self.make {
            Make::Versioned(anomaly) => objects::lines(plan, anomaly),
            Make::TwoHolders => locks::two_holders(plan),
        }
    }
}
