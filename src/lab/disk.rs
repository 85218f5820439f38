//! Files and folders, with errors that name the file.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::error::{During as _, Failure};
use super::files::{Content, Entry};

/// Makes a folder and those above it.
pub(super) fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).during(|| format!("making {}", path.display()))
}

fn parent(path: &Path) -> Result<(), Failure> {
    path.parent().map_or(Ok(()), folder)
}

/// Writes a file with these permission bits, and the folders above it.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>, mode: u32) -> Result<(), Failure> {
    use std::io::Write as _;
    parent(path)?;
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_ref()))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    written.during(|| format!("writing {}", path.display()))
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).during(|| format!("reading {}", path.display()))
}

/// Copies a file with its permission bits, and makes the folders above it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    parent(to)?;
    fs::copy(from, to).map(drop).during(|| format!("copying {} to {}", from.display(), to.display()))
}

/// Moves a file or folder.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    parent(to)?;
    fs::rename(from, to).during(|| format!("moving {} to {}", from.display(), to.display()))
}

/// Removes a file, or a folder with all that is in it; absence is fine.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    let gone = match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match gone {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).during(|| format!("removing {}", path.display())),
        _ => Ok(()),
    }
}

/// Writes a machine's files below `root`.
pub(super) fn install(root: &Path, entries: &[Entry]) -> Result<(), Failure> {
    for entry in entries {
        let path = root.join(entry.path.trim_start_matches('/'));
        match &entry.content {
            Content::Text(text, mode) => write(&path, text, *mode)?,
            Content::Link(target) => {
                parent(&path)?;
                symlink(target, &path).during(|| format!("linking {}", path.display()))?;
            }
        }
    }
    Ok(())
}
