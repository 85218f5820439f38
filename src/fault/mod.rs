//! Faults that cannot outlive their controller.
//!
//! A fault is planned first, as a pure value ([`plan::Plan`]): for each host what is staged, how it begins to act, how
//! it is undone, how it is seen. Then it lives through [`cut::Cut`]: journal, undo script and dead-man's switch on the
//! host, stage everywhere, commit everywhere, observe, heal, observe again.
//!
//! # Invariants
//! * Nothing acts on a host before its undo lies there and its dead-man's switch runs.
//! * The same undo text serves the controller, the dead-man's switch and [`heal`]; it tolerates absence.
//! * A lost answer is `unknown`: the host is looked at, never asked again to do the same.
//! * Only what carries our name is ever deleted, and by name or full text, never by position.
//!
//! Chains in `raw` PREROUTING and `mangle` POSTROUTING, not in `filter`, because they come before every filter
//! chain, DNAT and connection tracking's ACCEPTs: position decides whether a cut bites. Only refusing with an answer
//! needs `filter`: the kernel offers `REJECT` nowhere else.
//! A watching loop as dead-man's switch, not a timer unit, because it is renewed by moving a file and so has no
//! gap in which the old timer is stopped and the new one not yet started.

pub mod address;
pub mod cut;
pub mod deed;
pub mod flap;
pub mod heal;
pub mod healing;
mod host_loop;
pub mod id;
pub mod iptables;
pub mod journal;
pub mod keep;
pub mod kind;
pub mod life;
pub mod mark;
pub mod observe;
pub mod packets;
pub mod partition;
pub mod plan;
pub mod probe;
pub mod script;
pub mod shape;
pub mod snapshot;
pub mod status;
pub mod survey;
mod text;
