//! Pure checkers of distributed-system histories.
//!
//! Bytes and values in, values and strings out: this crate never opens a file, asks a clock, reads
//! the environment or spawns anything, so a verdict cannot depend on when or where it was computed.
//!
//! * [`engine`] holds the rules: versioned objects, mutexes, leases, duplicate windows, and a search for the rest.
//! * [`history`] is the record of a run: operations, observations and fault marks.
//! * [`facts`] is what the judge must know beside the history: topology, flags in force, bounds.
//! * [`verdict`] is what comes out: a verdict for each check, with its witness in plain words.
//! * [`bounds`] turns flags into what must happen by when; [`judge`] holds a run to it.

pub mod bounds;
pub mod brute;
pub mod clock;
pub mod engine;
pub mod explain;
pub mod facts;
pub mod generate;
pub mod history;
pub mod judge;
pub mod model;
pub mod object;
pub mod verdict;

/// The examples of the documentation are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/checkers.md")]
struct Documentation;
