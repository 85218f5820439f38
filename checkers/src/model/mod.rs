//! Models of objects for the [search engine](crate::engine::search): small pure functions that say *why* they refuse.

pub mod register;

pub use register::{Register, RegisterOp};
