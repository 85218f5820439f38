//! A run: from a scenario and an inventory to a history on disk.

pub mod length;
pub mod library;
pub mod scenario;
