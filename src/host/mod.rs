//! What a host is and has, and how scripts reach it.

pub mod clock;
pub mod enter;
pub mod frame;
pub mod lines;
pub mod local;
pub mod preflight;
pub mod remote;
