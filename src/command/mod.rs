//! One file a verb; nothing else in the program prints.

pub mod failure;
pub mod lab;
pub mod voice;

pub use failure::Failure;
pub use voice::Voice;
