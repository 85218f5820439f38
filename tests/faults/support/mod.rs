//! Hosts made of network namespaces, for tests of faults with the kernel's real packet filter.

pub(crate) mod heard;
pub(crate) mod namespaces;
