//! Known host keys, in the format of OpenSSH's `known_hosts` (sshd(8), section on that file).
//!
//! # Invariants
//! * A key is accepted if any line for that host has it, and refused if any `@revoked` line has it.
//! * `@cert-authority` lines are passed over: host certificates are not used here. So are keys of a kind that no
//!   host may show here (DSA, SSH 1, security keys): they stand in files that people have had for long.
//!
//! Our own reading, not russh's, because that one takes the first line of a type for the only one, accepts revoked
//! keys and knows no patterns (measured; `docs/limits.md`).

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use russh::keys::{Algorithm, HashAlg, PublicKey};
use sha1::Sha1;

/// Kinds of keys that a host may show.
const READ: [&str; 5] =
    ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"];

/// Known host keys of one file.
#[derive(Debug, Clone)]
pub struct KnownHosts {
    path: PathBuf,
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    number: usize,
    revoked: bool,
    names: Names,
    key: PublicKey,
}

#[derive(Debug, Clone)]
enum Names {
    /// `host,[host]:port,!not.this,*.pattern`
    Plain(Vec<String>),
    /// `|1|salt|hash`: HMAC-SHA1 of the name under the salt.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

/// What the file says of a key that a host offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is the host's.
    Known,
    /// No line for this host.
    Unknown,
    /// The host has other keys: in these lines, with these fingerprints.
    Changed(Vec<(usize, String)>),
    /// The key is revoked in that line.
    Revoked(usize),
}

impl KnownHosts {
    /// Reads a file.
    ///
    /// # Errors
    /// If it can't be read, or a line in it is malformed: `path:line: what`.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("failed to read the known host keys {}: {e}", path.display()))?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, String> {
        let mut lines = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = i + 1;
            let wrong = |what: String| format!("{}:{number}: {what}", path.display());
            let mut words = line.split_whitespace().peekable();
            let marker = words.next_if(|w| w.starts_with('@'));
            if marker == Some("@cert-authority") {
                continue;
            }
            if let Some(other) = marker.filter(|m| *m != "@revoked") {
                return Err(wrong(format!("`{other}` is no marker of known_hosts")));
            }
            let (Some(names), Some(kind), Some(key)) = (words.next(), words.next(), words.next()) else {
                return Err(wrong("a line needs names, the key's type and the key".to_owned()));
            };
            if !READ.contains(&kind) {
                continue;
            }
            let key = PublicKey::from_openssh(&format!("{kind} {key}"))
                .map_err(|e| wrong(format!("the key cannot be read: {e}")))?;
            lines.push(Line {
                number,
                revoked: marker.is_some(),
                names: names_of(names).map_err(wrong)?,
                key,
            });
        }
        Ok(Self { path: path.to_owned(), lines })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is said of a key offered by a host, named as it was connected to.
    #[must_use]
    pub fn standing(&self, host: &str, port: u16, key: &PublicKey) -> Standing {
        let same = |l: &Line| l.key.key_data() == key.key_data();
        let of_host: Vec<&Line> = self.lines.iter().filter(|l| l.names.fit(host, port)).collect();
        if let Some(line) = of_host.iter().find(|l| l.revoked && same(l)) {
            return Standing::Revoked(line.number);
        }
        let valid = || of_host.iter().filter(|l| !l.revoked);
        if valid().any(|l| same(l)) {
            return Standing::Known;
        }
        let others: Vec<_> = valid().map(|l| (l.number, fingerprint(&l.key))).collect();
        if others.is_empty() { Standing::Unknown } else { Standing::Changed(others) }
    }

    /// Types of the keys that are known of a host: to be asked for first, so that a host with several keys shows
    /// one that is known.
    #[must_use]
    pub fn algorithms(&self, host: &str, port: u16) -> Vec<Algorithm> {
        let mut found = Vec::new();
        for line in self.lines.iter().filter(|l| !l.revoked && l.names.fit(host, port)) {
            let all = match line.key.algorithm() {
                // One RSA key signs with any of these; SHA-1 is not asked for.
                Algorithm::Rsa { .. } => vec![
                    Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
                    Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
                ],
                other => vec![other],
            };
            for one in all {
                if !found.contains(&one) {
                    found.push(one);
                }
            }
        }
        found
    }
}

/// `SHA256:...`, as OpenSSH shows it.
#[must_use]
pub fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn names_of(text: &str) -> Result<Names, String> {
    let Some(hashed) = text.strip_prefix("|1|") else {
        return Ok(Names::Plain(text.split(',').map(str::to_lowercase).collect()));
    };
    let (salt, hash) = hashed.split_once('|').ok_or("a hashed name needs salt and hash")?;
    let decode = |t: &str| STANDARD.decode(t).map_err(|e| format!("a hashed name is no base64: {e}"));
    Ok(Names::Hashed { salt: decode(salt)?, hash: decode(hash)? })
}

impl Names {
    fn fit(&self, host: &str, port: u16) -> bool {
        let host = host.to_lowercase();
        let name = if port == 22 { host } else { format!("[{host}]:{port}") };
        match self {
            Self::Plain(patterns) => {
                let mut fits = false;
                for pattern in patterns {
                    match pattern.strip_prefix('!') {
                        Some(not) if matches(not.as_bytes(), name.as_bytes()) => return false,
                        Some(_) => {}
                        None => fits |= matches(pattern.as_bytes(), name.as_bytes()),
                    }
                }
                fits
            }
            Self::Hashed { salt, hash } => {
                // An HMAC takes a key of any length.
                let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else { return false };
                mac.update(name.as_bytes());
                mac.verify_slice(hash).is_ok()
            }
        }
    }
}

/// `*` for any run of letters, `?` for one.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|n| matches(rest, &name[n..])),
        (Some((b'?', p)), Some((_, n))) => matches(p, n),
        (Some((a, p)), Some((b, n))) => a == b && matches(p, n),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILagOJFgwaMNhBWQINinKOXmqS4Gh5NgxgriXwdOoINJ";
    const TWO: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn standing(text: &str, host: &str, port: u16) -> Standing {
        let known = KnownHosts::parse(text, Path::new("known_hosts")).unwrap();
        known.standing(host, port, &PublicKey::from_openssh(ONE).unwrap())
    }

    #[test]
    fn lines_of_every_kind() {
        let known = |t: &str| standing(t, "Rack-A", 22) == Standing::Known;
        assert!(known(&format!("rack-a {ONE} a comment")));
        assert!(known(&format!("# comment\n\nother,rack-a\t{ONE}")));
        assert!(known(&format!("rack-* {ONE}")));
        assert!(known(&format!("rack-? {ONE}")));
        assert!(known(&format!("rack-a {TWO}\nrack-a {ONE}")), "any line counts");
        assert!(!known(&format!("rack-*,!rack-a {ONE}")));
        assert!(!known(&format!("[rack-a]:2222 {ONE}")));
        assert_eq!(standing(&format!("[rack-a]:2222 {ONE}"), "rack-a", 2222), Standing::Known);
        assert_eq!(standing(&format!("rack-b {ONE}"), "rack-a", 22), Standing::Unknown);
        let old = "rack-a ssh-dss AAAAB3NzaC1kc3M=\nrack-a 1024 65537 12345\n";
        assert_eq!(standing(old, "rack-a", 22), Standing::Unknown);
        assert_eq!(standing(&format!("@cert-authority * {ONE}"), "rack-a", 22), Standing::Unknown);
        let revoked = format!("rack-a {ONE}\n@revoked * {ONE}");
        assert_eq!(standing(&revoked, "rack-a", 22), Standing::Revoked(2));
        let Standing::Changed(lines) = standing(&format!("\nrack-a {TWO}"), "rack-a", 22) else {
            panic!("changed");
        };
        assert_eq!(lines[0].0, 2);
        assert!(lines[0].1.starts_with("SHA256:"));
    }

    /// Made by OpenSSH itself, so that the hash is not ours on both sides.
    #[test]
    fn hashed_names_as_ssh_keygen_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        std::fs::write(&file, format!("rack-a {ONE}\n[198.18.0.11]:2222 {TWO}\n")).unwrap();
        let made = std::process::Command::new("ssh-keygen").arg("-H").arg("-f").arg(&file).output().unwrap();
        assert!(made.status.success());
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("|1|"), "{text}");
        assert_eq!(standing(&text, "rack-a", 22), Standing::Known);
        assert_eq!(standing(&text, "rack-b", 22), Standing::Unknown);
        assert!(matches!(standing(&text, "198.18.0.11", 2222), Standing::Changed(_)));
    }

    #[test]
    fn malformed_lines_are_named() {
        for (text, says) in [
            ("rack-a", "known_hosts:1: a line needs"),
            ("# x\nrack-a ssh-ed25519 AAAA", "known_hosts:2: the key cannot be read"),
            (&format!("@new rack-a {ONE}"), "`@new` is no marker"),
            (&format!("|1|x {ONE}"), "a hashed name needs"),
        ] {
            let error = KnownHosts::parse(text, Path::new("known_hosts")).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
