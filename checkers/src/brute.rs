//! The plainest possible check: try every order.
//!
//! It is here to be believed without proof, so that everything cleverer can be compared with it: property tests run it
//! beside each engine, and a "no" of the search engine is re-checked by it when its window is small.
//!
//! # The rule
//! A history is linearizable if its operations can be put in an order in which (1) an operation comes before another
//! whenever it returned before the other was invoked, and (2) each step is one that the object allows. Operations
//! without a return may be left out.

use std::collections::HashSet;
use std::hash::Hash;

use crate::engine::NEVER;
use crate::history::Nanos;

/// The largest history that is tried.
pub const LIMIT: usize = 32;

/// Whether the operations with these closed intervals can be ordered. `start` lists the possible first states, `step`
/// all states that an operation may lead to (none: not allowed there).
///
/// # Panics
/// If there are more than [`LIMIT`] operations.
pub fn linearizable<S: Clone + Eq + Hash>(
    intervals: &[(Nanos, Nanos)],
    start: impl IntoIterator<Item = S>,
    step: impl Fn(&S, usize) -> Vec<S>,
) -> bool {
    assert!(intervals.len() <= LIMIT, "brute force is for at most {LIMIT} operations");
    let needed: u32 = intervals.iter().enumerate().filter(|(_, i)| i.1 != NEVER).map(|(n, _)| 1 << n).sum();
    let mut seen: HashSet<(u32, S)> = HashSet::new();
    let mut open: Vec<(u32, S)> = start.into_iter().map(|s| (0, s)).collect();
    while let Some((done, state)) = open.pop() {
        if done & needed == needed {
            return true;
        }
        if !seen.insert((done, state.clone())) {
            continue;
        }
        let waiting = |n: &usize| done & (1 << n) == 0;
        let first_return =
            (0..intervals.len()).filter(waiting).map(|n| intervals[n].1).min().unwrap_or(NEVER);
        for n in (0..intervals.len()).filter(waiting).filter(|&n| intervals[n].0 <= first_return) {
            open.extend(step(&state, n).into_iter().map(|s| (done | 1 << n, s)));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `Some(v)` writes, reads expect `v`.
    fn register(ops: &[(Nanos, Nanos, char, u8)]) -> bool {
        let intervals: Vec<_> = ops.iter().map(|o| (o.0, o.1)).collect();
        linearizable(&intervals, [0u8], |&s, n| match ops[n].2 {
            'w' => vec![ops[n].3],
            _ => (s == ops[n].3).then_some(s).into_iter().collect(),
        })
    }

    #[test]
    fn a_read_after_a_write_returns_it() {
        assert!(register(&[(0, 1, 'w', 3), (2, 3, 'r', 3)]));
        assert!(!register(&[(0, 1, 'w', 3), (2, 3, 'r', 0)]));
    }

    #[test]
    fn equal_times_are_concurrent() {
        assert!(register(&[(0, 2, 'w', 3), (2, 3, 'r', 0)]));
    }

    #[test]
    fn an_operation_without_return_may_happen_late_or_never() {
        assert!(register(&[(0, NEVER, 'w', 3), (2, 3, 'r', 0), (4, 5, 'r', 3)]));
        assert!(register(&[(0, NEVER, 'w', 3), (2, 3, 'r', 0)]));
        assert!(!register(&[(0, NEVER, 'w', 3), (2, 3, 'r', 3), (4, 5, 'r', 0)]));
    }
}
