//! Kubernetes as seen from the controller: kubectl, one kept-open `kubectl proxy` for each API server, what an
//! answer means, and which flags are in force.

pub mod client;
pub mod duration;
pub mod errors;
pub mod flags;
pub mod kubectl;
pub mod lease;
pub mod objects;
pub mod processes;
pub mod protobuf;
pub mod proxy;

pub use client::{Answer, Client, Request};
pub use errors::{Class, Effect, Meaning};
pub use kubectl::{Kubectl, KubectlError};
pub use proxy::{ApiServer, Proxies};
