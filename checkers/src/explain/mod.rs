//! From an engine's answer to what a person reads.

pub mod words;
