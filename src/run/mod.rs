//! A run: what is recorded, and when.

pub mod recorder;
