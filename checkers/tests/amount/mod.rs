//! How many histories are compared with brute force.

/// `usual` in the tests of every day; what `RACKRIFT_HISTORIES` says in the long job (`scripts/brute-force-long`).
pub(crate) fn histories(usual: u64) -> u64 {
    std::env::var("RACKRIFT_HISTORIES").map_or(usual, |n| n.parse().expect("RACKRIFT_HISTORIES is a number"))
}
