//! Rule 4: refusals have a cause.
//!
//! A refusal must not lie inside the period between the writes of two blocks: a conflict on e not inside (e, next e),
//! "no such object" not inside the period from a create to the next deletion, "already exists" not inside the period
//! from a deletion to the next create. With `t` the moments of the writes that is the clause
//!
//! ```text
//!     t(from) >= inv   or   t(until) <= ret
//! ```
//!
//! # Why it is exact
//! The moments ascend and have a lower and an upper bound each, so the literals are "t is at least x" over ordered
//! variables: with the order encoding all clauses have two literals (2-SAT). For 2-SAT the following is complete: force
//! what has only one way left, until nothing changes; then try one way of any open clause, and if forcing from there
//! finds no contradiction, keep it. If both ways contradict, there is no solution. An interval avoids a union of
//! disjoint periods exactly if it avoids each of them, and equal moments count as in time.

use super::blocks::{Blocks, Bound, NONE};
use super::chain::{Chain, Kind};
use super::order::{Bounds, returned};
use super::{Act, Operation, Rule, Start, Violation, World, Writers};
use crate::engine::NEVER;
use crate::history::Nanos;

/// Moments for all writes with which every refusal has a cause.
pub(super) struct Placed {
    pub(super) bounds: Bounds,
    /// What was there before the first operation.
    pub(super) start: Kind,
}

/// Why no placing was found.
pub(super) enum Refused {
    Violation(Violation),
    UnseenCause(usize),
}

/// The operation `op` must not lie inside the period between the writes of blocks `from` and `until`; `None` is the
/// beginning or the end of time. `closed`: nothing unseen can have interrupted the period.
#[derive(Clone, Copy)]
struct Clause {
    op: u32,
    from: Option<u32>,
    until: Option<u32>,
    closed: bool,
}

pub(super) fn place(
    ops: &[Operation],
    world: World,
    blocks: &Blocks,
    chain: &Chain,
    bounds: Bounds,
) -> Result<Placed, Refused> {
    let mut refused = None;
    for &start in possible_starts(ops, world, chain) {
        let unseen = world.writers == Writers::Recorded && (chain.chosen || !chain.unseen.is_empty());
        let periods = Periods { ops, start, blocks, chain, unseen, bounds: &bounds };
        match place_from(&periods) {
            Ok(bounds) => return Ok(Placed { bounds, start }),
            Err(no) => {
                refused = Some(match refused {
                    Some(before) => both(before, no),
                    None => no,
                })
            }
        }
    }
    Err(refused.expect("because there is at least one possible start, and each was refused"))
}

/// Two reasons that together rule out both possible starts.
fn both(one: Refused, other: Refused) -> Refused {
    match (one, other) {
        (unsure @ Refused::UnseenCause(_), _) | (_, unsure @ Refused::UnseenCause(_)) => unsure,
        (Refused::Violation(a), Refused::Violation(b)) => {
            let (mut later, earlier) = if a.known_at >= b.known_at { (a, b) } else { (b, a) };
            for op in [earlier.culprit].into_iter().chain(earlier.against) {
                if op != later.culprit && !later.against.contains(&op) {
                    later.against.push(op);
                }
            }
            Refused::Violation(later)
        }
    }
}

/// What can have been there before the first operation.
fn possible_starts(ops: &[Operation], world: World, chain: &Chain) -> &'static [Kind] {
    let first = chain.writer.first().filter(|&&w| w != NONE).map(|&w| ops[w as usize].act);
    match (world.start, first) {
        (Start::Absent, _) => &[Kind::Gone],
        (Start::Unknown, _) if world.writers == Writers::Others => &[Kind::Wild],
        (Start::Unknown, _) if chain.started => &[Kind::There],
        (Start::Unknown, Some(act)) if act.creates() => &[Kind::Gone],
        (Start::Unknown, Some(act)) if act.deletes() => &[Kind::There],
        (Start::Unknown, _) => &[Kind::Gone, Kind::There],
    }
}

fn place_from(periods: &Periods<'_>) -> Result<Bounds, Refused> {
    let mut clauses = periods.clauses();
    if clauses.is_empty() {
        return Ok(periods.bounds.clone());
    }
    let open = periods.unseen;
    let mut placing = Placing::of(periods);
    if open {
        // An unseen write can only help where nothing closes the period: first what holds all the same.
        let mut sure: Vec<Clause> = clauses.iter().copied().filter(|c| c.closed).collect();
        let mut trial = Placing::of(periods);
        if let Err(c) = trial.solve(&mut sure) {
            return Err(Refused::Violation(trial.violation(c)));
        }
    }
    match placing.solve(&mut clauses) {
        Ok(()) => Ok(placing.bounds),
        Err(c) if open => Err(Refused::UnseenCause(c.op as usize)),
        Err(c) => Err(Refused::Violation(placing.violation(c))),
    }
}

/// Finds the periods that a refusal must avoid.
struct Periods<'a> {
    ops: &'a [Operation],
    start: Kind,
    blocks: &'a Blocks,
    chain: &'a Chain,
    /// Whether writes that nobody saw may have caused refusals. (Where others write too, wild blocks stand for more.)
    unseen: bool,
    bounds: &'a Bounds,
}

impl Periods<'_> {
    fn clauses(&self) -> Vec<Clause> {
        let mut clauses = Vec::new();
        let mut spans: Option<(Vec<Clause>, Vec<Clause>)> = None;
        for (i, op) in self.ops.iter().enumerate().filter(|(_, op)| returned(op)) {
            match op.act {
                Act::Conflict { expected } => {
                    let own = self
                        .blocks
                        .of_version(expected)
                        .filter(|&r| self.chain.kind[r as usize] == Kind::There);
                    let Some(own) = own else { continue };
                    let until = Some(own + 1).filter(|&u| (u as usize) < self.blocks.keys.len());
                    let from = Some(own).filter(|&r| r > 0 || !self.chain.started);
                    let closed =
                        until.is_some_and(|u| self.chain.closed[u as usize]) && self.surely_from(from);
                    self.keep(Clause { op: i as u32, from, until, closed }, &mut clauses);
                }
                Act::Absent | Act::Exists => {
                    let (there, gone) = spans.get_or_insert_with(|| self.spans());
                    let periods = if op.act == Act::Absent { there } else { gone };
                    // Both ends ascend: skip the periods that surely end before the refusal returned, stop at the
                    // first that surely starts after it was invoked.
                    let from = periods.partition_point(|p| self.upper(p.until) <= op.ret);
                    for p in &periods[from..] {
                        if self.lower(p.from) >= op.inv && p.from.is_some() {
                            break;
                        }
                        self.keep(Clause { op: i as u32, ..*p }, &mut clauses);
                    }
                }
                _ => {}
            }
        }
        clauses
    }

    /// Whether a period that is said to begin with the history surely does: an unseen write may have made the version
    /// that is taken for the first.
    fn surely_from(&self, from: Option<u32>) -> bool {
        from.is_some() || !(self.chain.started && self.unseen)
    }

    fn lower(&self, block: Option<u32>) -> Nanos {
        block.map_or(0, |b| self.bounds.lower[b as usize].time)
    }

    fn upper(&self, block: Option<u32>) -> Nanos {
        block.map_or(NEVER, |b| self.bounds.upper[b as usize].time)
    }

    /// Keeps a clause unless it holds whatever the moments.
    fn keep(&self, c: Clause, clauses: &mut Vec<Clause>) {
        let op = &self.ops[c.op as usize];
        let begun = c.from.is_some() && self.lower(c.from) >= op.inv;
        let ended = c.until.is_some() && self.upper(c.until) <= op.ret;
        if !begun && !ended {
            clauses.push(c);
        }
    }

    /// The periods in which the object is there, and those in which it is not.
    fn spans(&self) -> (Vec<Clause>, Vec<Clause>) {
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        let n = self.blocks.keys.len() as u32;
        let mut start: Option<u32> = None;
        let mut kind = self.start;
        let mut closed = self.surely_from(start);
        for r in 0..=n {
            let until = Some(r).filter(|&r| r < n);
            let now = until.map(|r| self.chain.kind[r as usize]);
            closed &= until.is_some_and(|r| self.chain.closed[r as usize]);
            if now != Some(kind) {
                let period = Clause { op: NONE, from: start, until, closed };
                match kind {
                    Kind::There => there.push(period),
                    Kind::Gone => gone.push(period),
                    Kind::Wild => {}
                }
                (start, kind, closed) = (until, now.unwrap_or(kind), true);
            }
        }
        (there, gone)
    }
}

/// Bounds that clauses tighten, with a log to take it back.
struct Placing<'a> {
    ops: &'a [Operation],
    bounds: Bounds,
    undo: Vec<(bool, u32, Bound)>,
    /// For each refusal that was forced one way: the operation whose bound rules out the other way.
    why: Vec<(u32, u32)>,
    /// Whether more than forcing was needed: then all refusals tried are part of a contradiction.
    tried: Vec<u32>,
}

impl<'a> Placing<'a> {
    fn of(periods: &Periods<'a>) -> Self {
        let bounds = periods.bounds.clone();
        Self { ops: periods.ops, bounds, undo: Vec::new(), why: Vec::new(), tried: Vec::new() }
    }

    fn solve(&mut self, clauses: &mut Vec<Clause>) -> Result<(), Clause> {
        self.force(clauses)?;
        while let Some(c) = clauses.pop() {
            if self.holds(c) {
                continue;
            }
            let mark = self.undo.len();
            self.tried.push(c.op);
            for before in [false, true] {
                let mut rest = clauses.clone();
                if self.choose(c, before) && self.force(&mut rest).is_ok() {
                    *clauses = rest;
                    break;
                }
                self.take_back(mark);
                if before {
                    return Err(c);
                }
            }
        }
        Ok(())
    }

    /// Forces all clauses that have one way left, until nothing changes; drops those that hold.
    fn force(&mut self, clauses: &mut Vec<Clause>) -> Result<(), Clause> {
        loop {
            let before = self.undo.len();
            let mut broken = None;
            clauses.retain(|&c| {
                if broken.is_some() || self.holds(c) {
                    return broken.is_some();
                }
                match (self.can(c, true), self.can(c, false)) {
                    (false, false) => broken = Some(c),
                    (true, true) => return true,
                    (way, _) => {
                        let block = if way { c.until } else { c.from };
                        let side = if way { &self.bounds.lower } else { &self.bounds.upper };
                        self.why.extend(block.map(|b| (c.op, side[b as usize].op)));
                        self.choose(c, way);
                    }
                }
                false
            });
            if let Some(c) = broken {
                return Err(c);
            }
            if self.undo.len() == before {
                return Ok(());
            }
        }
    }

    fn holds(&self, c: Clause) -> bool {
        let op = &self.ops[c.op as usize];
        c.from.is_some_and(|b| self.bounds.lower[b as usize].time >= op.inv)
            || c.until.is_some_and(|b| self.bounds.upper[b as usize].time <= op.ret)
    }

    /// Whether the period can begin after the operation did (`before`), or end before the operation did.
    fn can(&self, c: Clause, before: bool) -> bool {
        let op = &self.ops[c.op as usize];
        if before {
            c.from.is_some_and(|b| self.bounds.upper[b as usize].time >= op.inv)
        } else {
            c.until.is_some_and(|b| self.bounds.lower[b as usize].time <= op.ret)
        }
    }

    fn choose(&mut self, c: Clause, before: bool) -> bool {
        if !self.can(c, before) {
            return false;
        }
        let op = &self.ops[c.op as usize];
        if before {
            let bound = Bound { time: op.inv, op: c.op };
            let from = c.from.map_or(0, |b| b as usize);
            for r in from..self.bounds.lower.len() {
                let old = &mut self.bounds.lower[r];
                if old.time >= bound.time {
                    break;
                }
                self.undo.push((true, r as u32, *old));
                *old = bound;
            }
        } else {
            let bound = Bound { time: op.ret, op: c.op };
            let until = c.until.map_or(0, |b| b as usize);
            for r in (0..=until).rev() {
                let old = &mut self.bounds.upper[r];
                if old.time <= bound.time {
                    break;
                }
                self.undo.push((false, r as u32, *old));
                *old = bound;
            }
        }
        true
    }

    fn take_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let Some((lower, r, old)) = self.undo.pop() else { return };
            let side = if lower { &mut self.bounds.lower } else { &mut self.bounds.upper };
            side[r as usize] = old;
        }
    }

    fn violation(&self, c: Clause) -> Violation {
        let op = &self.ops[c.op as usize];
        let rule = match op.act {
            Act::Absent => Rule::AbsentWithoutCause,
            Act::Exists => Rule::ExistsWithoutCause,
            _ => Rule::ConflictWithoutCause,
        };
        let began = c.from.map(|b| self.bounds.upper[b as usize]);
        let ended = c.until.map(|b| self.bounds.lower[b as usize]);
        let against = self.reasons(c.op, [began, ended].into_iter().flatten().map(|b| b.op));
        let margins =
            [began.and_then(|b| op.inv.checked_sub(b.time)), ended.and_then(|b| b.time.checked_sub(op.ret))];
        let known_at = against.iter().map(|&i| self.ops[i].spoke_at()).fold(op.ret, Nanos::max);
        Violation {
            rule,
            culprit: c.op as usize,
            against,
            margin: margins.into_iter().flatten().min(),
            known_at,
        }
    }

    /// The operations that set these bounds, with all that forced them in turn.
    fn reasons(&self, culprit: u32, bounds: impl Iterator<Item = u32>) -> Vec<usize> {
        let mut reasons: Vec<u32> = bounds.chain(self.tried.iter().copied()).collect();
        let mut at = 0;
        while let Some(&op) = reasons.get(at) {
            let more: Vec<u32> =
                self.why.iter().filter(|(forced, _)| *forced == op).map(|(_, by)| *by).collect();
            reasons.extend(more.into_iter().filter(|by| !reasons.contains(by)).collect::<Vec<_>>());
            at += 1;
        }
        let mut seen = Vec::new();
        for op in reasons {
            if op != NONE && op != culprit && !seen.contains(&(op as usize)) {
                seen.push(op as usize);
            }
        }
        seen
    }
}
