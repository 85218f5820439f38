//! Observers.
