//! Pure reports: a run's facts, verdict and history as HTML, markdown, JUnit and terminal tables.
//!
//! Values in, strings out: this crate never opens a file, asks a clock or prints.
//!
//! # Invariants
//! - The same values give the same bytes.
//! - Every output has an upper size that does not grow with the history: what is left out is counted and said.
//! - No text that came from a host, a file or a person can act as markup, as a control sequence or as a link.

mod bounds;
mod escape;
mod findings;
mod html;
mod junit;
mod markdown;
mod story;
mod suite;
mod terminal;
mod words;

pub use html::html;
pub use junit::junit;
pub use markdown::markdown;
pub use suite::{SuiteEntry, suite_html, suite_markdown};
pub use terminal::terminal;
