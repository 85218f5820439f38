//! The inventory: a lab's racks, hosts, roles, networks and protected addresses, and nothing else.

pub mod model;

pub use model::{Host, Inventory, Kubernetes, Network, Purpose, Rack, Ssh};
