//! One file a verb; nothing else in the program prints.

pub mod anomalies;
pub mod check;
pub mod demo;
pub mod dispatch;
pub mod failure;
pub mod generate;
pub mod heal;
pub mod lab;
pub mod list;
pub mod plan;
pub mod preflight;
pub mod run;
pub mod saved;
pub mod signals;
pub mod status;
pub mod voice;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use failure::Failure;
pub use voice::Voice;

use crate::host::remote::Remote;
use crate::inventory::{self, Inventory};
use crate::ssh::Fleet;

/// A lab that a verb works on.
pub struct Lab {
    /// The inventory's file.
    pub file: PathBuf,
    /// The inventory.
    pub inventory: Inventory,
    /// How scripts reach its hosts.
    pub remote: Arc<dyn Remote>,
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Lab {
    /// Reads an inventory and makes ready to reach its hosts; nothing is sent yet.
    ///
    /// # Errors
    /// All that is wrong with the inventory, its keys or its known hosts.
    pub fn open(file: &Path) -> Result<Self, Failure> {
        let inventory = inventory::load(file).map_err(Failure::usage)?;
        let fleet = Fleet::new(&inventory).map_err(Failure::usage)?;
        Ok(Self { file: file.to_owned(), inventory, remote: Arc::new(fleet) })
    }
}
