//! A run: from a scenario and an inventory to a history on disk.

pub mod arrange;
pub mod assemble;
pub mod conductor;
pub mod cuts;
pub mod faults;
pub mod library;
pub mod lock;
pub mod planned;
pub mod ranges;
pub mod recorder;
pub mod scenario;
pub mod schedule;
pub mod settle;
pub mod shape;
pub mod stop;
pub mod tell;
mod turns;
pub mod until;
