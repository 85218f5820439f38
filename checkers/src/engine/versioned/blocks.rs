//! The version order: which operation belongs to which block.
//!
//! # Invariants
//! * `keys` ascend strictly; a key is twice a version, or one more for a deletion whose own version is not known but
//!   which directly follows that version.
//! * An operation is in the block of the version that it shows by itself, or, for a write of unknown outcome, of the
//!   version at which somebody saw its mark. All others are in no block ([`NONE`]).

use super::{Act, Operation, OutOfClass, Version, World, Writers};
use crate::engine::NEVER;
use crate::history::Nanos;

/// No operation, no block.
pub(super) const NONE: u32 = u32::MAX;

/// The blocks of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) keys: Vec<u64>,
    pub(super) of: Vec<u32>,
    /// By write id: the operation that carries it as writer.
    pub(super) writers: Vec<u32>,
    /// Deletions of unknown outcome that were put where a create proves one: a choice, not a fact.
    pub(super) inferred: Vec<u32>,
}

impl Blocks {
    pub(super) fn of(ops: &[Operation], world: World) -> Result<Self, OutOfClass> {
        let writers = writers_by_id(ops)?;
        let seen = seen_versions(ops, &writers);
        let closed = world.writers == Writers::Recorded;
        let mut own = Vec::with_capacity(ops.len());
        let mut shown = Shown::default();
        for (i, op) in ops.iter().enumerate() {
            let key = match op.act {
                Act::Delete { version: None, expected: Some(e) } => e.get() * 2 + 1,
                Act::Delete { version: None, expected: None } if closed => {
                    return Err(OutOfClass::DeleteWithoutVersion(i));
                }
                act if act.maybe() => op.id.map_or(0, |id| seen[id.get() as usize]),
                act => act.version().map_or(0, |v| v.get() * 2),
            };
            own.push(key);
            shown.add(key);
            if op.act.wrote() || (op.act.maybe() && key != 0) {
                shown.add(op.act.expected().map_or(0, |e| e.get() * 2));
            }
        }
        let keys = shown.into_sorted(ops.len());
        let mut blocks = Self { of: ranks(&keys, &own), keys, writers, inferred: Vec::new() };
        blocks.yield_to_known_writers(ops);
        if closed {
            blocks.infer_deletions(ops);
        }
        Ok(blocks)
    }

    /// The block of exactly this version.
    pub(super) fn of_version(&self, version: Version) -> Option<u32> {
        self.keys.binary_search(&(version.get() * 2)).ok().map(|r| r as u32)
    }

    /// The version that block `rank` shows, unless its own version is not known.
    pub(super) fn version(&self, rank: u32) -> Option<Version> {
        let key = self.keys[rank as usize];
        if key & 1 == 0 { Version::new(key / 2) } else { None }
    }

    /// The latest moment at which each block can have been written: the smallest return in it or after it.
    pub(super) fn latest(&self, ops: &[Operation]) -> Vec<Bound> {
        let mut latest = vec![Bound { time: NEVER, op: NONE }; self.keys.len()];
        for (i, (op, &rank)) in ops.iter().zip(&self.of).enumerate() {
            if rank != NONE && op.ret < latest[rank as usize].time {
                latest[rank as usize] = Bound { time: op.ret, op: i as u32 };
            }
        }
        for r in (1..latest.len()).rev() {
            if latest[r].time < latest[r - 1].time {
                latest[r - 1] = latest[r];
            }
        }
        latest
    }

    /// A write of unknown outcome cannot have made a version that has a writer already; who claims to have seen it
    /// there is wrong, and the content rule says so.
    fn yield_to_known_writers(&mut self, ops: &[Operation]) {
        let mut taken = vec![false; self.keys.len()];
        let mut yielding = false;
        for (op, &rank) in ops.iter().zip(&self.of) {
            if rank != NONE {
                taken[rank as usize] |= op.act.wrote();
                yielding |= op.act.maybe();
            }
        }
        if !yielding {
            return;
        }
        for (op, rank) in ops.iter().zip(&mut self.of) {
            if *rank != NONE && op.act.maybe() && std::mem::replace(&mut taken[*rank as usize], true) {
                *rank = NONE;
            }
        }
    }

    /// A create that follows an existing object proves a deletion in between. If nobody claims one, a delete of
    /// unknown outcome must be it: one that expected just that version (good for nothing else), or an unconditional
    /// one, earliest first, which is the kindest choice since the candidates differ only in their invocation.
    fn infer_deletions(&mut self, ops: &[Operation]) {
        let mut specific: Vec<u32> = Vec::new();
        let mut blind: Vec<u32> = Vec::new();
        for (i, op) in ops.iter().enumerate() {
            match op.act {
                Act::MaybeDelete { expected: Some(_) } => specific.push(i as u32),
                Act::MaybeDelete { expected: None } => blind.push(i as u32),
                _ => {}
            }
        }
        if specific.is_empty() && blind.is_empty() {
            return;
        }
        blind.sort_by_key(|&i| ops[i as usize].inv);
        specific.sort_by_key(|&i| ops[i as usize].inv);
        let mut blind = blind.into_iter().peekable();
        let mut creates = vec![false; self.keys.len()];
        let mut gone = vec![false; self.keys.len()];
        for (op, &rank) in ops.iter().zip(&self.of) {
            if rank != NONE {
                creates[rank as usize] |= op.act.creates();
                gone[rank as usize] |= op.act.deletes();
            }
        }
        let latest = self.latest(ops);
        let mut inferred: Vec<(u32, u32)> = Vec::new();
        for rank in 1..self.keys.len() {
            if !creates[rank] || gone[rank - 1] {
                continue;
            }
            let before = self.version(rank as u32 - 1);
            let fits = |&&i: &&u32| ops[i as usize].inv <= latest[rank].time;
            let one = specific.iter().filter(fits).find(|&&i| ops[i as usize].act.expected() == before);
            if let Some(&i) = one {
                inferred.push((rank as u32, i));
            } else if let Some(i) = blind.next_if(|i| fits(&i)) {
                inferred.push((rank as u32, i));
            }
        }
        for (shift, (rank, _)) in inferred.iter().enumerate() {
            let at = *rank as usize + shift;
            self.keys.insert(at, self.keys[at - 1] + 1);
        }
        for rank in self.of.iter_mut().filter(|r| **r != NONE) {
            *rank += inferred.partition_point(|(at, _)| at <= rank) as u32;
        }
        for (shift, (rank, op)) in inferred.into_iter().enumerate() {
            self.of[op as usize] = rank + shift as u32;
            self.inferred.push(op);
        }
    }
}

/// A bound on the moment of a write, and the operation that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) time: Nanos,
    pub(super) op: u32,
}

fn writers_by_id(ops: &[Operation]) -> Result<Vec<u32>, OutOfClass> {
    let highest = ops.iter().filter_map(|o| o.id).map(|id| id.get()).max().unwrap_or(0);
    let mut writers = vec![NONE; highest as usize + 1];
    for (i, op) in ops.iter().enumerate() {
        let Some(id) = op.id else { continue };
        if matches!(op.act, Act::Read { .. }) {
            continue;
        }
        let writer = &mut writers[id.get() as usize];
        if *writer != NONE {
            return Err(OutOfClass::IdUsedTwice(*writer as usize, i));
        }
        *writer = i as u32;
    }
    Ok(writers)
}

/// By write id: the key of the version at which a mark of a write of unknown outcome was first seen; 0: never.
fn seen_versions(ops: &[Operation], writers: &[u32]) -> Vec<u64> {
    let mut seen = vec![0; writers.len()];
    for op in ops {
        let (Act::Read { version }, Some(id)) = (op.act, op.id) else { continue };
        let writer = writers[id.get() as usize];
        if writer != NONE && ops[writer as usize].act.maybe() && seen[id.get() as usize] == 0 {
            seen[id.get() as usize] = version.get() * 2;
        }
    }
    seen
}

/// The keys that the history shows, collected so that they can be sorted without comparing if they lie close together.
#[derive(Default)]
struct Shown {
    lowest: u64,
    highest: u64,
    extra: Vec<u64>,
    last: u64,
}

impl Shown {
    fn add(&mut self, key: u64) {
        if key == 0 {
            return;
        }
        self.lowest = if self.lowest == 0 { key } else { self.lowest.min(key) };
        self.highest = self.highest.max(key);
        if key != self.last {
            self.extra.push(key);
            self.last = key;
        }
    }

    fn into_sorted(self, operations: usize) -> Vec<u64> {
        let range = (self.highest - self.lowest) as usize + 1;
        if range > 16 * operations + 1024 {
            let mut keys = self.extra;
            keys.sort();
            keys.dedup();
            return keys;
        }
        let mut present = vec![false; range];
        for key in self.extra {
            present[(key - self.lowest) as usize] = true;
        }
        (self.lowest..=self.highest).zip(present).filter(|(_, there)| *there).map(|(key, _)| key).collect()
    }
}

/// The rank of each operation's key. Neighbours in a history have neighbouring versions, so the search starts where
/// the last one ended and widens by doubling.
fn ranks(keys: &[u64], own: &[u64]) -> Vec<u32> {
    let mut at = 0;
    own.iter()
        .map(|&key| {
            if key == 0 {
                return NONE;
            }
            at = find_near(keys, at, key);
            at as u32
        })
        .collect()
}

/// The position of `key`, which is in `keys`, looked for from `near`.
fn find_near(keys: &[u64], near: usize, key: u64) -> usize {
    let mut step = 1;
    if keys[near] <= key {
        while near + step < keys.len() && keys[near + step] <= key {
            step *= 2;
        }
        let from = near + step / 2;
        let to = (near + step).min(keys.len());
        from + keys[from..to].partition_point(|&k| k < key)
    } else {
        while step <= near && keys[near - step] > key {
            step *= 2;
        }
        let from = near.saturating_sub(step);
        from + keys[from..near].partition_point(|&k| k < key)
    }
}
