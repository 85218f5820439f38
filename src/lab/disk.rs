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

/// File systems on which no overlay's upper layer can lie, or that lose a database's writes.
pub(super) const UNFIT: [&str; 4] = ["tmpfs", "overlay", "ramfs", "nfs"];

/// The kind of file system that a folder lies on, as the mount table names it.
pub(super) fn file_system(path: &Path) -> Result<String, Failure> {
    let path = path.canonicalize().during(|| format!("looking at {}", path.display()))?;
    Ok(kind(&fs::read_to_string("/proc/self/mounts").unwrap_or_default(), &path))
}

/// The kind of the last mount over the longest point above `path`.
fn kind(mounts: &str, path: &Path) -> String {
    let parse = |line: &'_ str| {
        let mut words = line.split_whitespace().skip(1);
        let (point, kind) = (words.next()?.to_owned(), words.next()?.to_owned());
        path.starts_with(&point).then_some((point.len(), kind))
    };
    mounts
        .lines()
        .filter_map(parse)
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_last_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /srv tmpfs rw 0 0\n/dev/b /srv/lab xfs rw 0 0\n/dev/c / btrfs rw 0 0\n";
        assert_eq!(kind(mounts, Path::new("/srv/lab/x")), "xfs");
        assert_eq!(kind(mounts, Path::new("/srv/labs")), "tmpfs");
        assert_eq!(kind(mounts, Path::new("/var/lib")), "btrfs");
    }

    #[test]
    fn absence_is_fine_to_remove() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("a/b");
        assert_eq!(remove(&path), Ok(()));
        write(&path, "x", 0o600).expect("written");
        assert_eq!(fs::metadata(&path).map(|m| m.permissions().mode() & 0o777).ok(), Some(0o600));
        assert_eq!(remove(&folder.path().join("a")), Ok(()));
        assert!(!path.exists());
    }
}
