//! Seeded histories, valid and broken, of all kinds.

pub mod chance;

pub use chance::Chance;
