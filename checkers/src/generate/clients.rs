//! Clients that work on a simulated object: who invokes, takes effect and returns when.
//!
//! Each tick picks a client: a free one invokes, an invoked one takes effect, one that took effect returns. So every
//! history is linearizable by construction. An answer is lost at a given rate; then the operation took effect or not,
//! nobody knows, and the client goes on under a new name.

use super::Chance;
use crate::engine::NEVER;
use crate::history::Nanos;

/// Nanoseconds between two ticks: a moment of its own for each event, and one that a reader can tell from the next.
pub(super) const TICK: Nanos = 1_000_000;

/// How a history comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Operations.
    pub operations: usize,
    /// Clients that work at once.
    pub clients: usize,
    /// Answers lost, of a thousand.
    pub lost: u64,
    /// What all choices follow from.
    pub seed: u64,
}

/// One operation as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done<A, R> {
    /// Invoked, ns.
    pub inv: Nanos,
    /// Returned, ns; [`NEVER`] if the answer was lost.
    pub ret: Nanos,
    /// What was asked.
    pub ask: A,
    /// The answer, also of one whose answer was lost but which took effect.
    pub answer: Option<R>,
}

/// Lets the clients work: `ask` chooses what a client asks, `act` lets it take effect. The order is that of the
/// invocations.
pub fn work<A: Clone, R>(
    shape: Shape,
    mut ask: impl FnMut(&mut Chance, usize) -> A,
    mut act: impl FnMut(usize, &A) -> R,
) -> Vec<Done<A, R>> {
    let mut chance = Chance::seeded(shape.seed);
    let clients = shape.clients.max(1);
    // By client: the operation it has open.
    let mut open: Vec<Option<usize>> = vec![None; clients];
    let mut history: Vec<Done<A, R>> = Vec::with_capacity(shape.operations);
    let mut now = 0;
    let mut left = 0;
    while history.len() < shape.operations || left > 0 {
        now += TICK;
        let c = chance.index(clients);
        match open[c] {
            None if history.len() < shape.operations => {
                open[c] = Some(history.len());
                left += 1;
                history.push(Done { inv: now, ret: NEVER, ask: ask(&mut chance, c), answer: None });
            }
            None => {}
            Some(i) => {
                let lost = chance.happens(shape.lost, 2000);
                let done = &mut history[i];
                if done.answer.is_none() {
                    if lost {
                        // It never took effect, and nobody will learn that.
                        open[c] = None;
                        left -= 1;
                    } else {
                        done.answer = Some(act(c, &done.ask));
                    }
                } else {
                    if !lost {
                        done.ret = now;
                    }
                    open[c] = None;
                    left -= 1;
                }
            }
        }
    }
    history
}
