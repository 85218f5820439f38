//! Pure reports: a run's facts, verdict and history as HTML, markdown, JUnit, SVG and terminal tables.
//!
//! Values in, strings out: this crate never opens a file, asks a clock or prints.
