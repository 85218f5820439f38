//! Loads that clients and pods put on the cluster, each of its operations and signs of life recorded.

pub mod lease;
pub mod namespace;
pub mod pods;
