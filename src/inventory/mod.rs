//! The inventory: a lab's racks, hosts, roles, networks and protected addresses, and nothing else.

pub mod file;
pub mod model;
pub mod parse;
pub mod selector;

pub use model::{Host, Inventory, Kubernetes, Network, Purpose, Rack, Ssh};
pub use parse::{InventoryError, load};
