//! Faults of a host itself: its processes, services, network devices, clock, disks, memory, power.
//!
//! A kind is a value that yields all its lines of sh at once ([`Lines`]): what must be known before, what is staged,
//! how it acts, how it is undone, what would be left, how it is seen. The envelope round them, and so every
//! promise of [`super`], is the same as for partitions.
//!
//! # Invariants
//! * Every undo goes by what the fault wrote down on the host before it acted, and does nothing where that is not.
//! * A sign (`sign=yes ...`) is something measured on the host, never the answer of the command that should cause it.
//! * What a host lacks for a kind is a [`Refusal::Missing`]: the fault is skipped, with the reason.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub mod amount;
pub mod catalogue;
mod clock;
mod disk;
mod link;
mod machine;
pub mod plan;
mod pressure;
mod process;
mod radius;
mod service;
mod traffic;
mod volume;

pub use clock::{Clock, Rate, Strobe};
pub use disk::Fill;
pub use link::Link;
pub use machine::Machine;
pub use plan::{Refusal, Refused};
pub use pressure::Pressure;
pub use process::{CrashLoop, Process};
pub use radius::Harm;
pub use service::{Service, StaticPod};
pub use traffic::{Distribution, Traffic};
pub use volume::{Behaviour, Volume};

/// What is done to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum What {
    /// Its processes, by the program's name.
    Process(Process),
    /// A unit of systemd.
    Service(Service),
    /// A pod that the kubelet starts from a file.
    StaticPod(StaticPod),
    /// Packets that it sends.
    Traffic(#[serde(deserialize_with = "traffic::checked")] Traffic),
    /// Its wall clock.
    Clock(Clock),
    /// Room on a disk.
    Fill(Fill),
    /// A prepared volume of the device mapper.
    Volume(Volume),
    /// Its processors and memory.
    Pressure(Pressure),
    /// A network device.
    Link(Link),
    /// The machine as a whole.
    Machine(Machine),
}

/// A kind's lines of sh on one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// See [`super::script::HostPart::stage`].
    pub(super) stage: String,
    /// See [`super::script::HostPart::commit`].
    pub(super) commit: String,
    /// See [`super::script::HostPart::undo`].
    pub(super) undo: String,
    /// See [`super::script::HostPart::left`]; may use the functions that `undo` defines.
    pub(super) left: String,
    /// Prints `sign=yes WORDS` or `sign=no WORDS` for each thing that should be seen.
    pub(super) look: String,
    /// What a reader of the plan should know of this host.
    pub(super) notes: Vec<String>,
}

/// What a kind's lines on a host depend on.
pub(super) struct Ground<'a> {
    /// The fault.
    pub(super) id: &'a super::id::FaultId,
    /// What the kind's own scout printed, as `key=value`.
    pub(super) scouted: &'a str,
    /// Addresses that must stay as they are: the controller's, and the inventory's protected ones.
    pub(super) protected: &'a [IpAddr],
    /// Data addresses of the hosts that [`What::peers`] means.
    pub(super) peers: &'a [IpAddr],
}

/// Why a kind has no lines on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum No {
    /// It must not be done there.
    Refused(String),
    /// The host lacks something.
    Missing(String),
}

impl What {
    /// Its kind, as in the catalogue and in reports: `process/pause`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Process(p) => p.kind(),
            Self::Service(s) => s.kind(),
            Self::StaticPod(_) => "static-pod/stop",
            Self::Traffic(_) => "traffic",
            Self::Clock(c) => c.kind(),
            Self::Fill(_) => "disk/fill",
            Self::Volume(v) => v.kind(),
            Self::Pressure(p) => p.kind(),
            Self::Link(_) => "link/down",
            Self::Machine(m) => m.kind(),
        }
    }

    /// What it does, in a few words: `kube-scheduler is paused`.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Process(p) => p.summary(),
            Self::Service(s) => s.summary(),
            Self::StaticPod(StaticPod::Stop(name)) => format!("the static pod {name} is taken away"),
            Self::Traffic(t) => t.summary(),
            Self::Clock(c) => c.summary(),
            Self::Fill(f) => f.summary(),
            Self::Volume(v) => v.summary(),
            Self::Pressure(p) => p.summary(),
            Self::Link(Link::Down(device)) => format!("{device} is down"),
            Self::Machine(m) => m.summary(),
        }
    }

    /// The selector of the hosts towards which it acts, if it has one.
    #[must_use]
    pub fn peers(&self) -> Option<&str> {
        match self {
            Self::Traffic(t) => t.to.as_deref(),
            _ => None,
        }
    }

    /// Lines that find out what must be known of a host before. They read only.
    pub(super) fn scout(&self, peers: &[IpAddr], protected: &[IpAddr]) -> String {
        match self {
            Self::Process(p) => p.scout(),
            Self::Service(s) => s.scout(),
            Self::StaticPod(s) => s.scout(),
            Self::Traffic(t) => t.scout(peers),
            Self::Clock(_) => clock::scout(),
            Self::Fill(f) => f.scout(),
            Self::Volume(v) => v.scout(),
            Self::Pressure(p) => p.scout(),
            Self::Link(l) => l.scout(protected),
            Self::Machine(_) => machine::scout(),
        }
    }

    /// Its lines on a host.
    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        match self {
            Self::Process(p) => p.lines(ground),
            Self::Service(s) => s.lines(ground),
            Self::StaticPod(s) => s.lines(ground),
            Self::Traffic(t) => t.lines(ground),
            Self::Clock(c) => c.lines(ground),
            Self::Fill(f) => f.lines(ground),
            Self::Volume(v) => v.lines(ground),
            Self::Pressure(p) => p.lines(ground),
            Self::Link(l) => l.lines(ground),
            Self::Machine(m) => m.lines(ground),
        }
    }
}
