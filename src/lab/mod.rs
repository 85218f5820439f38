//! The local lab: a highly available Kubernetes out of two racks and a witness place, on this machine.
//!
//! Eight machines, each a systemd-nspawn container with a systemd, an sshd and packet filters of its own, in one
//! network namespace: real etcd, real Kubernetes, real certificates, and nothing that leaves the machine.
//!
//! # Invariants
//! * Every step of [`up()`] may be repeated, after it succeeded and after it was killed half-way.
//! * [`down()`] needs nothing of what `up` remembers: it finds what there is by the lab's name. It says what it could not
//!   remove.
//! * Nothing here prints: [`Progress`] hears, the command line shows.
//!
//! Containers, not virtual machines, because they start in a second, idle at a seventh of one core together, and need
//! no hardware support; given up: own kernels, clocks and disks. systemd-nspawn, not a container engine, because hosts
//! of a cluster boot an init that restarts services, takes logins and can be rebooted.

mod apt;
mod base;
mod call;
mod cgroup;
mod components;
mod disk;
mod down;
mod enter;
mod error;
mod files;
mod image;
mod inventory_file;
mod machine;
mod network;
mod pki;
mod prerequisites;
mod process;
mod progress;
mod ready;
mod record;
mod render;
mod settings;
mod site;
mod status;
mod sysctl;
mod tar;
mod topology;
mod up;

pub use down::{down, remains};
pub use enter::enter;
pub use error::{Failure, LabError};
pub use inventory_file::example as example_inventory;
pub use prerequisites::{Package, install};
pub use progress::{Event, Progress, Stage};
pub use settings::Settings;
pub use site::Site;
pub use status::{MachineStatus, Status, status};
pub use topology::{MACHINES, Machine, Rack, Role};
pub use up::{CACHE, Options, Up, missing, up};
