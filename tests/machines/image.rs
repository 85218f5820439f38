//! What the machines boot from: made once by `image.sh`, kept in the cache under the recipe's own hash.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use sha2::{Digest as _, Sha256};

const RECIPE: &str = include_str!("image.sh");

/// The folder with `vmlinuz`, `initrd.gz`, `disk.img` and `key`; complete or absent.
pub(crate) fn folder() -> PathBuf {
    let cache = std::env::var("RACKRIFT_CACHE").unwrap_or_else(|_| "/var/cache/rackrift".to_owned());
    let mut name = "test-machine-".to_owned();
    for byte in &Sha256::digest(RECIPE)[..6] {
        write!(name, "{byte:02x}").unwrap();
    }
    let done = PathBuf::from(cache).join(name);
    if done.is_dir() {
        return done;
    }
    let partial = done.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).unwrap();
    }
    std::fs::create_dir_all(&partial).unwrap();
    // In process and mount namespaces of its own: whatever ends us, nothing of it stays mounted or running.
    let mut make = Command::new("unshare");
    make.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "timeout", "900", "sh", "-c"]);
    let status = make.arg(RECIPE).arg("image").arg(&partial).status().unwrap();
    assert!(status.success(), "the image of the test machines could not be made");
    std::fs::rename(&partial, &done).unwrap();
    done
}
