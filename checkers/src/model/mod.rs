//! Models of objects for the [search engine](crate::engine::search): small pure functions that say *why* they refuse.
//!
//! [`reading`] turns the operations of a history into theirs.

pub mod collections;
pub mod lock;
pub mod per_key;
pub mod reading;
pub mod register;
pub mod registers;
pub mod text;

pub use collections::{Queue, QueueOp, Set, SetOp};
pub use lock::{Lock, LockOp};
pub use per_key::PerKey;
pub use register::{Register, RegisterOp};
pub use registers::{Micro, Registers, Txn};
pub use text::{Text, TextOp};
