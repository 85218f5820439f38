//! Seeded histories, valid and broken, of all kinds.

pub mod chance;
pub mod clients;
pub mod history;
mod lines;
mod locks;
mod objects;
mod places;
pub mod register;
pub mod versioned;

pub use chance::Chance;
pub use clients::Shape;
