//! Writes tar archives (POSIX.1-1988 ustar) that are equal byte for byte whenever their contents are: no times, no owners.
//!
//! Our own, not the `tar` crate, because an image has thirty short names, and a writer of that is shorter than the
//! options that would keep times and owners out.

/// An archive being written.
#[derive(Debug, Default)]
pub(super) struct Archive(Vec<u8>);

const BLOCK: usize = 512;
/// Longest name and link target that fit.
const NAME: usize = 100;

impl Archive {
    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.header(name, mode, content.len(), b'0', "");
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    /// Adds a folder; its name ends in a slash.
    pub(super) fn folder(&mut self, name: &str, mode: u32) {
        self.header(name, mode, 0, b'5', "");
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, name: &str, target: &str) {
        self.header(name, 0o777, 0, b'2', target);
    }

    /// The archive: two empty blocks end it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    fn header(&mut self, name: &str, mode: u32, size: usize, kind: u8, target: &str) {
        assert!(name.len() <= NAME && target.len() <= NAME, "an image's names are short: {name} {target}");
        let mut h = [0u8; BLOCK];
        let mut put = |at: usize, text: &[u8]| h[at..at + text.len()].copy_from_slice(text);
        put(0, name.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{size:011o}").as_bytes());
        put(136, b"00000000000");
        put(156, &[kind]);
        put(157, target.as_bytes());
        put(257, b"ustar\x0000");
        // The checksum is taken with its own field full of spaces.
        put(148, b"        ");
        let sum: u32 = h.iter().map(|b| u32::from(*b)).sum();
        h[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&h);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::call::Call;

    #[test]
    fn the_system_tar_reads_it() {
        let mut a = Archive::default();
        a.folder("bin/", 0o755);
        a.file("bin/one", 0o755, b"content");
        a.link("bin/two", "one");
        a.file("empty", 0o644, b"");
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("a.tar");
        std::fs::write(&file, a.finish()).expect("written");
        let list = Call::new(
            "tar",
            ["--numeric-owner", "--utc", "-tvf"]
                .map(String::from)
                .into_iter()
                .chain([file.display().to_string()]),
        )
        .run()
        .expect("tar reads it");
        insta::assert_snapshot!(list);
        let body = Call::new("tar", ["-xOf", &file.display().to_string(), "bin/one"]).run();
        assert_eq!(body.ok().as_deref(), Some("content"));
    }
}
