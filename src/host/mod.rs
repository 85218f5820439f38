//! What a host is and has, and how scripts reach it.

pub mod remote;
