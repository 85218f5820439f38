//! The engines: each takes its own small, typed operations and says yes or no, with what proves it.
//!
//! An engine knows one rule and nothing of files, names or Kubernetes objects. The order of preference is fixed:
//! where the data itself gives the order (versions, definite holds, spans) an engine is exact and linear;
//! only what is left goes to a search.
//!
//! # Invariants
//! * Intervals are closed: `[inv, ret]`. Two operations of which one ends in the very nanosecond in which the other
//!   starts are concurrent, since a clock that repeats a value proves no order.
//! * An operation without a known outcome has `ret ==` [`NEVER`]: it may take effect at any later time, or not at all.
//! * Moments that came from another clock are widened before they reach an engine: `inv` is the earliest possible,
//!   `ret` the latest possible moment, so that an order is used only where it is certain.
//! * Operations are named by their position in the slice given.

pub mod fencing;
pub mod growing;
pub mod lease;
pub mod mutex;
pub mod online;
pub mod search;
pub mod session;
pub mod versioned;
pub mod watch;

/// The return time of an operation that has no definite outcome.
pub const NEVER: crate::history::Nanos = u64::MAX;
