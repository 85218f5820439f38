//! Faults over network namespaces with the kernel's real packet filter. Needs root.
#![expect(clippy::unwrap_used, reason = "in a test's helpers too, what must not fail ends the test")]

mod bench;
mod crowd;
mod dead_man;
mod heal;
mod kills;
mod kinds;
mod life;
mod modes;
mod pods;
mod safety;
mod support;
