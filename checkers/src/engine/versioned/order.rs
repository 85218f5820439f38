//! Rule 3: real time, and the order that follows from it.

use super::blocks::{Blocks, Bound, NONE};
use super::chain::{Chain, Kind};
use super::placing::Placed;
use super::{Act, Earliest, Operation, Rule, Violation};
use crate::engine::NEVER;
use crate::history::Nanos;

/// When each block can have been written: not before `lower`, not after `upper`. Both ascend with the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lower: Vec<Bound>,
    pub(super) upper: Vec<Bound>,
}

pub(super) fn check(ops: &[Operation], blocks: &Blocks, chain: &Chain, found: &mut Earliest) -> Bounds {
    let upper = blocks.latest(ops);
    let lower = earliest(ops, blocks, chain);
    // Most histories are clean: only one whose bounds cross is looked at operation by operation.
    if lower.iter().zip(&upper).any(|(l, u)| l.time > u.time) {
        for (i, (op, &rank)) in ops.iter().zip(&blocks.of).enumerate() {
            if rank != NONE {
                offer_reversed(ops, chain, &upper, rank as usize, i as u32, op, found);
            }
        }
        for (w, upper) in chain.writer.iter().zip(&upper) {
            if *w != NONE && upper.op != NONE && blocks.of[*w as usize] == NONE {
                offer_unseen_writer(ops, *w, *upper, found);
            }
        }
    }
    Bounds { lower, upper }
}

/// The largest invocation before each block, or of its own write.
fn earliest(ops: &[Operation], blocks: &Blocks, chain: &Chain) -> Vec<Bound> {
    let mut lower = vec![Bound { time: 0, op: NONE }; blocks.keys.len()];
    for (i, (op, &rank)) in ops.iter().zip(&blocks.of).enumerate() {
        if let Some(next) = lower.get_mut((rank as usize).saturating_add(1)).filter(|_| rank != NONE) {
            raise(next, op.inv, i as u32);
        }
    }
    for (bound, &w) in lower.iter_mut().zip(&chain.writer) {
        if w != NONE {
            raise(bound, ops[w as usize].inv, w);
        }
    }
    for r in 1..lower.len() {
        let before = lower[r - 1];
        raise(&mut lower[r], before.time, before.op);
    }
    lower
}

fn raise(bound: &mut Bound, time: Nanos, op: u32) {
    if bound.op == NONE || time > bound.time {
        *bound = Bound { time, op };
    }
}

fn offer_reversed(
    ops: &[Operation],
    chain: &Chain,
    upper: &[Bound],
    r: usize,
    i: u32,
    op: &Operation,
    found: &mut Earliest,
) {
    if let Some(later) = upper.get(r + 1).filter(|later| later.time < op.inv) {
        let rule = if matches!(op.act, Act::Read { .. }) { Rule::StaleRead } else { Rule::VersionWentBack };
        found.offer(Violation {
            rule,
            culprit: i as usize,
            against: vec![later.op as usize],
            margin: Some(op.inv - later.time),
            known_at: op.spoke_at(),
        });
    }
    let w = chain.writer[r];
    if w != NONE && w != i && op.ret < ops[w as usize].inv {
        found.offer(Violation {
            rule: Rule::FutureRead,
            culprit: i as usize,
            against: vec![w as usize],
            margin: Some(ops[w as usize].inv - op.ret),
            known_at: op.ret,
        });
    }
}

/// A write of unknown outcome that fills a version nobody else wrote was chosen so that it came in time.
fn offer_unseen_writer(ops: &[Operation], w: u32, upper: Bound, found: &mut Earliest) {
    let inv = ops[w as usize].inv;
    if upper.time < inv {
        found.offer(Violation {
            rule: Rule::FutureRead,
            culprit: upper.op as usize,
            against: vec![w as usize],
            margin: Some(inv - upper.time),
            known_at: upper.time,
        });
    }
}

/// What proves a yes: a moment for the write of each block. Everything else fits between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    blocks: Blocks,
    chain: Chain,
    moments: Vec<Nanos>,
    start: Kind,
}

impl Timeline {
    pub(super) fn new(blocks: Blocks, chain: Chain, placed: Placed) -> Self {
        let moments = placed.bounds.lower.into_iter().map(|b| b.time).collect();
        Self { blocks, chain, moments, start: placed.start }
    }

    /// Versions that the history shows, deletions included.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.moments.len()
    }

    /// Operations of unknown outcome that were left out: nothing shows that they happened.
    #[must_use]
    pub fn left_out(&self) -> &[u32] {
        &self.chain.unseen
    }

    /// The operations in one order that explains them all. Left out are failed ones that say nothing, and those of
    /// unknown outcome that nobody saw. If others write too, their writes belong in between.
    #[must_use]
    pub fn order(&self, ops: &[Operation]) -> Vec<u32> {
        let mut placed: Vec<(Nanos, u32, u8, u32)> = Vec::with_capacity(ops.len());
        for (r, &w) in self.chain.writer.iter().enumerate() {
            if w != NONE {
                placed.push((self.moments[r], r as u32 + 1, 0, w));
            }
        }
        for (i, op) in ops.iter().enumerate() {
            let Some((at, after)) = self.place(op, self.blocks.of[i]) else { continue };
            placed.push((at, after, 1, i as u32));
        }
        placed.sort_unstable();
        placed.into_iter().map(|(.., op)| op).collect()
    }

    /// When an operation that writes nothing takes place, and after how many blocks.
    fn place(&self, op: &Operation, rank: u32) -> Option<(Nanos, u32)> {
        match op.act {
            Act::Read { .. } => Some((op.inv.max(self.moments[rank as usize]), rank + 1)),
            Act::Absent => self.find(op, |r| self.kind_after(r) != Kind::There),
            Act::Exists => self.find(op, |r| self.kind_after(r) != Kind::Gone),
            Act::Conflict { expected } => {
                let own = self.blocks.of_version(expected).map(|r| r as usize);
                self.find(op, |r| {
                    own.is_none() || r != own || own.is_some_and(|r| self.chain.kind[r] == Kind::Gone)
                })
            }
            _ => None,
        }
    }

    fn kind_after(&self, block: Option<usize>) -> Kind {
        block.map_or(self.start, |r| self.chain.kind[r])
    }

    /// The first block, of those in force at some moment of the operation's interval, that suits it.
    fn find(&self, op: &Operation, suits: impl Fn(Option<usize>) -> bool) -> Option<(Nanos, u32)> {
        let first = self.moments.partition_point(|&t| t < op.inv).max(usize::from(self.chain.started));
        let last = self.moments.partition_point(|&t| t <= op.ret);
        (first..=last).find(|&count| suits(count.checked_sub(1))).map(|count| {
            let start = count.checked_sub(1).map_or(0, |r| self.moments[r]);
            (op.inv.max(start), count as u32)
        })
    }
}

/// Whether an operation counts as returned.
pub(super) const fn returned(op: &Operation) -> bool {
    op.ret != NEVER
}
