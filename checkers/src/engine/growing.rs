//! Sets and lists that only grow: elements are added, each once, and reads return everything.
//!
//! # The rule
//! Whole reads show the order: of two reads one must contain the other (for lists: be its beginning). So everything
//! falls into blocks in one forced order:
//!
//! ```text
//!   set:   reads of {} | adds of a, b | reads of {a, b} | adds of c | reads of {a, b, c} | adds that no read shows
//!   list:  reads of [] | add of a | reads of [a] | add of b | reads of [a b] | adds that no read shows
//! ```
//!
//! The history is linearizable if and only if the reads form such a chain, show only what was added, once each, and no
//! operation of a later block returned before one of an earlier block was invoked.
//!
//! # Why it is exact
//! As for [versions](super::versioned): with one forced order of blocks, and none inside them, the union with real
//! time has a cycle only if a single real-time edge points backwards across blocks. So a violation is a **pair**. An add
//! of unknown outcome that no read shows is left out; one that a read shows happened, and has no return.
//!
//! O(n log n) plus the length of all reads. Cf. Jepsen's `set-full`, which looks at each element alone and so misses two
//! reads that contradict each other ({a} and {b}); ScyllaDB's append register, which is the list form.

use std::collections::HashMap;

use super::NEVER;
use crate::history::Nanos;

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Invoked, ns.
    pub inv: Nanos,
    /// Returned, ns; [`NEVER`] if the outcome is unknown.
    pub ret: Nanos,
    /// What it did.
    pub act: Act,
}

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Added an element, or may have.
    Add(u64),
    /// Certainly did not add an element.
    Failed(u64),
    /// Returned everything; for a list in its order.
    Read(Vec<u64>),
}

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Reads have no order.
    Set,
    /// Reads show the order of the adds.
    List,
}

/// The rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A read lacks an element that was added before it began.
    Lost,
    /// A read lacks an element that another read had returned before it began.
    StaleRead,
    /// A read shows an element before its add was invoked.
    FutureRead,
    /// A read shows an element that nobody added.
    ThinAir,
    /// A read shows an element whose add certainly failed.
    FailedAddVisible,
    /// An element stands in a read twice, or was added by two operations.
    Duplicated,
    /// Two reads of which none contains the other.
    Diverged,
    /// An element that was added before another one began stands behind it, or is in fewer reads.
    Reordered,
}

/// A broken rule, and the operations that prove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The operation that is wrong.
    pub culprit: usize,
    /// The one it contradicts.
    pub against: Option<usize>,
    /// The element in question.
    pub element: Option<u64>,
    /// By how much, ns, where the contradiction is one of time.
    pub margin: Option<Nanos>,
}

/// Checks the operations on one set or list; the first violation in the order of the rules: contents, chain, time.
///
/// # Errors
/// The violation.
pub fn check(ops: &[Operation], shape: Shape) -> Result<(), Violation> {
    let adds = adds(ops)?;
    let mut reads: Vec<usize> =
        (0..ops.len()).filter(|&i| matches!(ops[i].act, Act::Read(_)) && ops[i].ret != NEVER).collect();
    contents(ops, &adds, &reads)?;
    reads.sort_by_key(|&i| read(&ops[i]).len());
    let first_shown = chain(ops, &reads, shape)?;
    real_time(ops, &reads, &first_shown, shape)
}

fn read(op: &Operation) -> &[u64] {
    match &op.act {
        Act::Read(all) => all,
        _ => &[],
    }
}

fn violation(rule: Rule, culprit: usize, against: Option<usize>, element: Option<u64>) -> Violation {
    Violation { rule, culprit, against, element, margin: None }
}

/// By element: who added it.
fn adds(ops: &[Operation]) -> Result<HashMap<u64, usize>, Violation> {
    let mut adds = HashMap::new();
    for (i, op) in ops.iter().enumerate() {
        if let Act::Add(element) | Act::Failed(element) = op.act
            && let Some(first) = adds.insert(element, i)
        {
            return Err(violation(Rule::Duplicated, i, Some(first), Some(element)));
        }
    }
    Ok(adds)
}

/// Reads show what was added, once each.
fn contents(ops: &[Operation], adds: &HashMap<u64, usize>, reads: &[usize]) -> Result<(), Violation> {
    for &i in reads {
        let mut seen = std::collections::HashSet::new();
        for &element in read(&ops[i]) {
            if !seen.insert(element) {
                return Err(violation(Rule::Duplicated, i, None, Some(element)));
            }
            match adds.get(&element) {
                None => return Err(violation(Rule::ThinAir, i, None, Some(element))),
                Some(&add) if matches!(ops[add].act, Act::Failed(_)) => {
                    return Err(violation(Rule::FailedAddVisible, i, Some(add), Some(element)));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Reads, the shortest first, contain one another. By element: the length of the first read that shows it, for a set;
/// its position from 1, for a list.
fn chain(ops: &[Operation], reads: &[usize], shape: Shape) -> Result<HashMap<u64, usize>, Violation> {
    let mut first: HashMap<u64, usize> = HashMap::new();
    let mut before: Option<usize> = None;
    for &i in reads {
        let all = read(&ops[i]);
        if let Some(b) = before {
            let part = read(&ops[b]);
            let diverged = match shape {
                Shape::List => part.iter().zip(all).find(|(a, b)| a != b).map(|(a, _)| *a),
                // All elements seen so far are in the read before.
                Shape::Set => {
                    let here: std::collections::HashSet<&u64> = all.iter().collect();
                    part.iter().find(|element| !here.contains(element)).copied()
                }
            };
            if let Some(element) = diverged {
                return Err(violation(Rule::Diverged, i, Some(b), Some(element)));
            }
        }
        for (position, &element) in (1..).zip(all) {
            let block = if shape == Shape::List { position } else { all.len() };
            first.entry(element).or_insert(block);
        }
        before = Some(i);
    }
    Ok(first)
}

/// No operation of a later block returned before one of an earlier block was invoked.
fn real_time(
    ops: &[Operation],
    reads: &[usize],
    first: &HashMap<u64, usize>,
    shape: Shape,
) -> Result<(), Violation> {
    let longest = reads.last().map_or(0, |&i| read(&ops[i]).len());
    let mut blocks: Vec<(usize, usize)> = Vec::with_capacity(ops.len());
    for (i, op) in ops.iter().enumerate() {
        match &op.act {
            Act::Read(all) if op.ret != NEVER => blocks.push((2 * all.len() + 1, i)),
            Act::Add(element) => match first.get(element) {
                Some(block) => blocks.push((2 * block, i)),
                None if op.ret != NEVER => blocks.push((2 * longest + 2, i)),
                None => {}
            },
            Act::Read(_) | Act::Failed(_) => {}
        }
    }
    blocks.sort_unstable();
    // The operation of an earlier block that was invoked last.
    let mut latest: Option<usize> = None;
    for block in blocks.chunk_by(|a, b| a.0 == b.0) {
        if let Some(earlier) = latest {
            let late = block.iter().map(|&(_, i)| i).find(|&i| ops[i].ret < ops[earlier].inv);
            if let Some(later) = late {
                return Err(reversed(ops, earlier, later, shape));
            }
        }
        let last = block.iter().map(|&(_, i)| i).max_by_key(|&i| ops[i].inv);
        latest = latest.into_iter().chain(last).max_by_key(|&i| ops[i].inv);
    }
    Ok(())
}

/// `later` stands in a later block than `earlier`, but returned before it was invoked.
fn reversed(ops: &[Operation], earlier: usize, later: usize, shape: Shape) -> Violation {
    let (rule, element) = match (&ops[earlier].act, &ops[later].act) {
        (Act::Read(_), Act::Add(element)) => (Rule::Lost, Some(*element)),
        (Act::Read(old), Act::Read(new)) => {
            let lacks = |element: &&u64| !old.contains(element);
            (Rule::StaleRead, new.iter().find(lacks).copied())
        }
        (Act::Add(element), Act::Read(_)) => (Rule::FutureRead, Some(*element)),
        (_, Act::Add(element)) if shape == Shape::List => (Rule::Reordered, Some(*element)),
        (Act::Add(element), _) => (Rule::Reordered, Some(*element)),
        _ => (Rule::Reordered, None),
    };
    // A read that shows the future is the one to blame, not the add.
    let (culprit, against) = if rule == Rule::FutureRead { (later, earlier) } else { (earlier, later) };
    let margin = ops[earlier].inv - ops[later].ret;
    Violation { rule, culprit, against: Some(against), element, margin: Some(margin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(inv: Nanos, ret: Nanos, act: Act) -> Operation {
        Operation { inv, ret, act }
    }

    #[test]
    fn each_anomaly_is_named_and_its_near_miss_passes() {
        use Act::{Add, Failed, Read};
        let a = || op(0, 1, Add(1));
        let cases = [
            (Rule::Lost, vec![a(), op(2, 3, Read(vec![]))]),
            (Rule::StaleRead, vec![op(0, NEVER, Add(1)), op(2, 3, Read(vec![1])), op(4, 5, Read(vec![]))]),
            (Rule::FutureRead, vec![op(4, 5, Add(1)), op(2, 3, Read(vec![1]))]),
            (Rule::ThinAir, vec![a(), op(2, 3, Read(vec![1, 9]))]),
            (Rule::FailedAddVisible, vec![op(0, 1, Failed(1)), op(2, 3, Read(vec![1]))]),
            (Rule::Duplicated, vec![a(), op(2, 3, Read(vec![1, 1]))]),
            (
                Rule::Diverged,
                vec![op(0, 9, Add(1)), op(0, 9, Add(2)), op(2, 3, Read(vec![1])), op(2, 3, Read(vec![2]))],
            ),
            (Rule::Reordered, vec![a(), op(2, 3, Add(2)), op(0, 9, Read(vec![2]))]),
        ];
        for (rule, ops) in cases {
            assert_eq!(check(&ops, Shape::Set).map_err(|v| v.rule), Err(rule), "{ops:?}");
        }
        let near = [
            vec![a(), op(1, 3, Read(vec![]))],
            vec![op(0, NEVER, Add(1)), op(2, 4, Read(vec![1])), op(4, 5, Read(vec![]))],
            vec![op(3, 5, Add(1)), op(2, 3, Read(vec![1]))],
            vec![op(0, NEVER, Add(1)), op(2, 3, Read(vec![])), op(4, 5, Read(vec![1]))],
            vec![op(0, NEVER, Add(1)), op(2, 3, Read(vec![]))],
        ];
        for ops in near {
            assert_eq!(check(&ops, Shape::Set), Ok(()), "{ops:?}");
        }
        let turned = [a(), op(2, 3, Add(2)), op(4, 5, Read(vec![2, 1]))];
        assert_eq!(check(&turned, Shape::Set), Ok(()));
        assert_eq!(check(&turned, Shape::List).map_err(|v| v.rule), Err(Rule::Reordered));
    }
}
