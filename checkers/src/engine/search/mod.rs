//! Linearizability by search, for objects whose data does not give the order: registers with repeated values, sets,
//! queues, key-value stores, and whatever else can be written as a [`Model`].
//!
//! # The rule
//! A history is linearizable if its operations can be put into an order that (1) respects real time: an operation that
//! returned before another was invoked comes first, and (2) the model allows, step by step. Operations of unknown
//! outcome may be left out.
//!
//! # The search
//! Just-in-time linearization (Lowe) in depth-first order. The events are walked in time. An operation need not take
//! effect before it returns, so nothing is decided before a return `x`; there the operations that come before `x` in
//! the order sought, and `x` itself, take effect. A *configuration* is the state, and which of the open operations have
//! taken effect. Two ways that reach the same configuration at the same event have the same future, so each is
//! tried once. Why not the whole set of configurations at once, as Lowe does: a linearizable history needs only one way
//! through, and depth first finds it mostly at once.
//!
//! What keeps the number of configurations small (each rule is proved where it is applied):
//!
//! * **Read-only operations take effect as soon as they can**: moving one forward changes nothing for the others.
//! * **Overwriting operations can hide**: when one takes effect, every other that is open can have taken effect just
//!   before it, unseen. From then on these are as good as optional. This replaces all subsets of hidden writes by one.
//! * **Twins are interchangeable**: of several open operations that ask and got the same, the one that returns first
//!   goes first; those of unknown outcome go last and are only counted.
//! * **Useless steps are not taken**: an overwriting or an optional step of which nobody sees anything before the next
//!   overwriting one.
//! * **Bits only for open operations**, so memory does not grow with the square of the length; states and operations
//!   are numbered, and the model is asked once for each pair of them.
//!
//! # Invariants
//! * Intervals are closed; see [`crate::engine`].
//! * The answer never depends on the budget, only whether there is one: a search that ends early is
//!   [`Outcome::Undecided`], never a pass.
//!
//! # Sources
//! Wing and Gong 1993; Lowe: Testing for linearizability, CCPE 29(4), 2017; Horn and Kroening, arXiv 1504.00204. The
//! rules on hiding, twins and useless steps are our own and are tested against brute force.

mod bits;
mod events;
pub mod online;
mod order;
mod parts;
mod run;
mod table;
mod verify;

use std::hash::Hash;

use crate::history::Nanos;
pub use parts::{Parts, check_parts, parts};
pub use verify::{Wrong, verify};

/// An object, as a pure function from state to state.
///
/// `step` must be a pure function: the search asks once for each pair of state and operation, in any order.
pub trait Model {
    /// What the object is like.
    type State: Clone + Eq + Hash;
    /// What was asked and what was answered. Equal operations must be interchangeable.
    type Op: Clone + Eq + Hash;

    /// What it is like before the first operation.
    fn start(&self) -> Self::State;

    /// The state after `op`, or why `op` cannot take effect in `state`, in words.
    ///
    /// # Errors
    /// The reason, such as `cannot read 3 from register 0`.
    fn step(&self, state: &Self::State, op: &Self::Op) -> Result<Self::State, String>;

    /// What kind of operation it is. [`Effect::Any`] is always right; the others make the search faster, and wrong
    /// answers if they do not hold.
    fn effect(&self, op: &Self::Op) -> Effect {
        let _ = op;
        Effect::Any
    }
}

/// How an operation can change the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Never: wherever it is allowed, the state stays as it is.
    ReadOnly,
    /// Always, and to the same: it is allowed in every state, and the state after does not depend on the one before.
    Overwrites,
    /// Any other way.
    Any,
}

/// One operation of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<O> {
    /// Invoked, ns.
    pub inv: Nanos,
    /// Returned, ns; [`NEVER`](super::NEVER) if the outcome is unknown.
    pub ret: Nanos,
    /// What it did.
    pub op: O,
}

/// When to give up.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Configurations to visit.
    pub steps: u64,
    /// Bytes for remembered configurations.
    pub bytes: usize,
    /// Asked every few thousand steps; true ends the search. For a limit in time, since this crate knows no clock.
    pub stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for Limits<'_> {
    /// 100 million steps and 1 GiB: a minute or two at most.
    fn default() -> Self {
        Self { steps: 100_000_000, bytes: 1 << 30, stop: None }
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Linearizable: the operations in one order that explains them all. Those of unknown outcome are in it if they
    /// took effect.
    Linearizable(Vec<u32>),
    /// Not linearizable.
    Violation(Stuck),
    /// The budget ran out.
    Undecided(Exhausted),
}

/// Where no way leads on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The operation at whose return no configuration was left. Up to just before it the history is linearizable.
    pub culprit: u32,
    /// Operations in one order that explains everything up to there.
    pub before: Vec<u32>,
}

/// How far a search came before its budget ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// Which limit.
    pub limit: Limit,
    /// Configurations visited.
    pub steps: u64,
    /// Operations that had returned where the search came furthest.
    pub reached: usize,
    /// Operations that return at all.
    pub of: usize,
}

/// A limit of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::stop`].
    Stopped,
}

/// Checks the operations on one object, in any order.
#[must_use]
pub fn check<M: Model>(model: &M, calls: &[Call<M::Op>], limits: Limits<'_>) -> Outcome {
    let mut table = table::Table::new(model);
    let events = events::Events::of(calls, &mut table);
    // The words for the bits of open operations are fixed for each search, so that they live in registers.
    match events.slots {
        0..=64 => run::search::<M, 1>(&events, &mut table, limits),
        65..=128 => run::search::<M, 2>(&events, &mut table, limits),
        129..=256 => run::search::<M, 4>(&events, &mut table, limits),
        257..=1024 => run::search::<M, 16>(&events, &mut table, limits),
        _ => run::search::<M, 128>(&events, &mut table, limits),
    }
}

#[cfg(test)]
mod tests;
