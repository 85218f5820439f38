//! Rules 1 and 2: one writer for each version, one content, and each write on top of the version it expected.

use super::blocks::{Blocks, NONE};
use super::{Act, Earliest, Operation, Rule, Start, Version, World, Writers};

/// What the object is like while a block is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It exists, at the block's version.
    There,
    /// It does not exist.
    Gone,
    /// Whatever writers whom nobody recorded make of it, one state after another.
    Wild,
}

/// What is known of each block once its writer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    /// The writing operation, or [`NONE`].
    pub(super) writer: Vec<u32>,
    /// What the object is like in the block.
    pub(super) kind: Vec<Kind>,
    /// Whether nothing can lie between the block before and this one: its writer is known and expected just that block.
    pub(super) closed: Vec<bool>,
    /// Writes of unknown outcome that are in no block: left out.
    pub(super) unseen: Vec<u32>,
    /// Whether some block has a writer that was chosen among writes of unknown outcome.
    pub(super) chosen: bool,
    /// Whether the first block was there before the history began.
    pub(super) started: bool,
    /// An operation that breaks a rule unless unseen writes explain it, in a way that takes more than one of them.
    pub(super) unexplained: Option<u32>,
}

pub(super) fn check(ops: &[Operation], world: World, blocks: &mut Blocks, found: &mut Earliest) -> Chain {
    let n = blocks.keys.len();
    let mut chain = Chain {
        writer: vec![NONE; n],
        kind: vec![Kind::There; n],
        closed: vec![false; n],
        unseen: Vec::new(),
        chosen: !blocks.inferred.is_empty(),
        started: false,
        unexplained: None,
    };
    let mut witness = Witnesses { any: vec![NONE; n], claims: vec![NONE; n] };
    for (i, (op, &rank)) in ops.iter().zip(&blocks.of).enumerate() {
        let i = i as u32;
        if rank == NONE {
            if op.act.maybe() {
                chain.unseen.push(i);
            }
            continue;
        }
        let r = rank as usize;
        if matches!(op.act, Act::Read { .. }) {
            witness.sees(ops, r, i);
            continue;
        }
        let writer = &mut chain.writer[r];
        if *writer == NONE {
            *writer = i;
        } else {
            let (earlier, later) = order_of(ops, *writer, i);
            found.offer_of(ops, Rule::DuplicateVersion, later, &[earlier]);
        }
        if op.act.deletes() {
            chain.kind[r] = Kind::Gone;
        }
    }
    let recorded = world.writers == Writers::Recorded;
    chain.started = recorded && world.start == Start::Unknown && chain.writer.first() == Some(&NONE);
    contents(ops, world, blocks, &mut chain, &witness, found);
    if recorded {
        fill(ops, blocks, &mut chain, &witness, found);
    }
    links(ops, world, blocks, &mut chain, &witness, found);
    if !recorded {
        chain.open_gaps(blocks);
    }
    chain
}

impl Chain {
    /// The kind of a block: of the one given by its position.
    fn gone(&self, r: usize) -> bool {
        self.kind[r] == Kind::Gone
    }

    /// Writers whom nobody recorded may do anything, any number of times, wherever no conditional write closes the gap
    /// between two blocks, and after the last one: a wild block stands for that.
    fn open_gaps(&mut self, blocks: &mut Blocks) {
        let n = blocks.keys.len();
        let mut moved = Vec::with_capacity(n);
        let mut wide = Self { writer: Vec::new(), kind: Vec::new(), closed: Vec::new(), ..self.clone() };
        let mut keys = Vec::with_capacity(2 * n + 1);
        for r in 0..=n {
            if r == n || !self.closed[r] {
                keys.push(keys.last().map_or(1, |k| k | 1));
                wide.writer.push(NONE);
                wide.kind.push(Kind::Wild);
                wide.closed.push(true);
            }
            if r < n {
                moved.push(keys.len() as u32);
                keys.push(blocks.keys[r]);
                wide.writer.push(self.writer[r]);
                wide.kind.push(self.kind[r]);
                wide.closed.push(true);
            }
        }
        for rank in blocks.of.iter_mut().filter(|r| **r != NONE) {
            *rank = moved[*rank as usize];
        }
        blocks.keys = keys;
        *self = wide;
    }
}

/// Readers by block.
struct Witnesses {
    /// The reader that returned first.
    any: Vec<u32>,
    /// A reader that shows a mark.
    claims: Vec<u32>,
}

impl Witnesses {
    fn sees(&mut self, ops: &[Operation], r: usize, i: u32) {
        if self.any[r] == NONE || ops[i as usize].ret < ops[self.any[r] as usize].ret {
            self.any[r] = i;
        }
        if ops[i as usize].id.is_some() && self.claims[r] == NONE {
            self.claims[r] = i;
        }
    }
}

/// The one of two writers that could have known better: the one that returned later.
fn order_of(ops: &[Operation], a: u32, b: u32) -> (u32, u32) {
    let at = |i: u32| (ops[i as usize].spoke_at(), i);
    if at(a) <= at(b) { (a, b) } else { (b, a) }
}

/// Each read shows the mark of the write that made its version.
fn contents(
    ops: &[Operation],
    world: World,
    blocks: &Blocks,
    chain: &mut Chain,
    by: &Witnesses,
    found: &mut Earliest,
) {
    let unmarked = chain.unseen.iter().any(|&i| ops[i as usize].id.is_none());
    for (i, (op, &rank)) in ops.iter().zip(&blocks.of).enumerate() {
        let Act::Read { .. } = op.act else { continue };
        let (i, r) = (i as u32, rank as usize);
        if chain.gone(r) {
            found.offer_of(ops, Rule::WrongContent, i, &[chain.writer[r]]);
        }
        let Some(id) = op.id else { continue };
        let writer = blocks.writers[id.get() as usize];
        let here = chain.writer[r];
        if writer != NONE {
            let act = ops[writer as usize].act;
            if !act.wrote() && !act.maybe() {
                found.offer_of(ops, Rule::FailedWriteVisible, i, &[writer]);
            } else if blocks.of[writer as usize] != rank {
                let against = if here == NONE { vec![writer] } else { vec![writer, here] };
                found.offer_of(ops, Rule::WrongContent, i, &against);
            }
        } else if here != NONE {
            if ops[here as usize].id.is_some() {
                found.offer_of(ops, Rule::WrongContent, i, &[here]);
            }
        } else {
            let first = by.claims[r];
            if ops[first as usize].id != Some(id) {
                found.offer_of(ops, Rule::WrongContent, i, &[first]);
            } else if world.writers == Writers::Recorded && !(chain.started && r == 0) {
                if unmarked {
                    chain.unexplained = Some(i);
                } else {
                    found.offer_of(ops, Rule::ThinAir, i, &[]);
                }
            }
        }
    }
}

/// A version without a writer, of which nobody saw the mark, must come from a write of unknown outcome that was not seen.
///
/// A compare-and-set can only fill the version right after the one it expected, so it is used first; unconditional
/// writes fit every version whose latest moment is not before their invocation. Latest moments ascend with the
/// versions, so taking the earliest first is a maximum matching (the fits are nested).
fn fill(ops: &[Operation], blocks: &Blocks, chain: &mut Chain, by: &Witnesses, found: &mut Earliest) {
    let empty = |r: usize, chain: &Chain| {
        chain.writer[r] == NONE && by.claims[r] == NONE && !(chain.started && r == 0)
    };
    if !(0..blocks.keys.len()).any(|r| empty(r, chain)) {
        return;
    }
    let latest = blocks.latest(ops);
    let mut spare = std::mem::take(&mut chain.unseen);
    spare.sort_by_key(|&i| (matches!(ops[i as usize].act, Act::MaybeWrite), ops[i as usize].inv));
    for (r, latest) in latest.iter().enumerate() {
        if !empty(r, chain) {
            continue;
        }
        let before = r.checked_sub(1).filter(|&b| !chain.gone(b)).and_then(|b| blocks.version(b as u32));
        let fits = |i: &u32| {
            let op = &ops[*i as usize];
            op.inv <= latest.time
                && match op.act {
                    Act::MaybeWrite => true,
                    Act::MaybeCas { expected } => before == Some(expected),
                    Act::MaybeCreate => before.is_none(),
                    _ => false,
                }
        };
        if let Some(at) = spare.iter().position(fits) {
            chain.writer[r] = spare.remove(at);
            chain.chosen = true;
            continue;
        }
        let shows = |i: &usize| blocks.of[*i] != NONE && ops[*i].act.expected() == blocks.version(r as u32);
        let culprit = match by.any[r] {
            NONE => {
                (0..ops.len()).filter(shows).min_by_key(|&i| ops[i].spoke_at()).map_or(NONE, |i| i as u32)
            }
            reader => reader,
        };
        if !spare.is_empty() {
            chain.unexplained = Some(culprit);
        } else if culprit != NONE {
            found.offer_of(ops, Rule::ThinAir, culprit, &[]);
        }
    }
    spare.sort_unstable();
    chain.unseen = spare;
}

/// Each write stands on what it needs: a conditional one on just the version it expected, a create on nothing, a delete
/// on something.
fn links(
    ops: &[Operation],
    world: World,
    blocks: &Blocks,
    chain: &mut Chain,
    by: &Witnesses,
    found: &mut Earliest,
) {
    let recorded = world.writers == Writers::Recorded;
    let unseen =
        |chain: &Chain, suits: fn(Act) -> bool| chain.unseen.iter().any(|&i| suits(ops[i as usize].act));
    for r in 0..blocks.keys.len() {
        let w = chain.writer[r];
        if w == NONE {
            continue;
        }
        let act = ops[w as usize].act;
        let before = r.checked_sub(1);
        let shown = before.map(|b| if chain.writer[b] == NONE { by.any[b] } else { chain.writer[b] });
        let against: Vec<u32> = shown.into_iter().filter(|&i| i != NONE).collect();
        if let Some(expected) = act.expected() {
            if before.is_some_and(|b| !chain.gone(b) && blocks.version(b as u32) == Some(expected)) {
                chain.closed[r] = blocks.of[w as usize] == r as u32 && !blocks.inferred.contains(&w);
            } else {
                offer_broken_link(ops, blocks, w, expected, &against, found);
            }
            continue;
        }
        let there = before.map(|b| !chain.gone(b)).or((world.start == Start::Absent).then_some(false));
        let (rule, explained) = match (act.creates(), act.deletes(), there) {
            (true, _, Some(true)) => (Rule::CreatedTwice, unseen(chain, Act::deletes)),
            (_, true, Some(false)) => (Rule::DeletedNothing, unseen(chain, |_| true)),
            _ => continue,
        };
        if recorded && explained {
            chain.unexplained = Some(w);
        } else if recorded {
            found.offer_of(ops, rule, w, &against);
        }
    }
}

fn offer_broken_link(
    ops: &[Operation],
    blocks: &Blocks,
    writer: u32,
    expected: Version,
    between: &[u32],
    found: &mut Earliest,
) {
    let made = blocks.keys[blocks.of[writer as usize] as usize];
    if made <= expected.get() * 2 {
        found.offer_of(ops, Rule::VersionWentBack, writer, &[]);
    } else {
        found.offer_of(ops, Rule::LostUpdate, writer, between);
    }
}
