//! Loads that clients and pods put on the cluster.
