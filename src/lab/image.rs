//! The container image of the lab's pods: a static busybox, one layer, made without a registry or a builder.
//!
//! One archive holds it under two names: the pods' image and the sandbox's ("pause").
//!
//! # Invariants
//! * The layer is not compressed, so that its digest is its diff id and an import need not unpack it twice.
//! * Its default command ends on SIGTERM: a sandbox whose first process ignores it keeps a machine from switching off
//!   until systemd's time limit.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::files::IMAGE;
use super::tar::Archive;

/// The sandbox's image, as containerd's configuration names it.
const PAUSE: &str = "lab.local/pause:1";
const APPLETS: [&str; 22] = [
    "awk", "cat", "cp", "cut", "date", "echo", "env", "grep", "hostname", "ip", "kill", "ls", "mkdir", "mv",
    "nc", "printf", "ps", "rm", "sh", "sleep", "wget", "wc",
];
const COMMAND: &str = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done";

/// The image as an OCI archive, of the bytes of a static busybox.
pub(super) fn archive(busybox: &[u8]) -> Vec<u8> {
    let layer = layer(busybox);
    let layer_digest = digest(&layer);
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh", "-c", COMMAND]},
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created_by": "rackrift lab"}],
    })
    .to_string();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": digest(config.as_bytes()),
            "size": config.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": layer_digest,
            "size": layer.len(),
        }],
    })
    .to_string();
    let named = |name: &str| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest(manifest.as_bytes()),
            "size": manifest.len(),
            "platform": {"architecture": architecture(), "os": "linux"},
            "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": "1"},
        })
    };
    let index = json!({"schemaVersion": 2, "manifests": [named(IMAGE), named(PAUSE)]}).to_string();

    let mut all = Archive::default();
    all.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
    all.file("index.json", 0o644, index.as_bytes());
    all.folder("blobs/", 0o755);
    all.folder("blobs/sha256/", 0o755);
    for blob in [config.as_bytes(), manifest.as_bytes(), &layer] {
        let name = digest(blob).replace("sha256:", "blobs/sha256/");
        all.file(&name, 0o644, blob);
    }
    all.finish()
}

fn layer(busybox: &[u8]) -> Vec<u8> {
    let mut all = Archive::default();
    all.folder("bin/", 0o755);
    all.folder("etc/", 0o755);
    all.folder("tmp/", 0o1777);
    all.file("etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/sh\n");
    all.file("bin/busybox", 0o755, busybox);
    for name in APPLETS {
        all.link(&format!("bin/{name}"), "busybox");
    }
    all.finish()
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, b| text + &format!("{b:02x}"))
}

/// The machine's architecture in Go's words, which images use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_make_the_same_image() {
        assert_eq!(archive(b"busybox"), archive(b"busybox"));
        assert_ne!(digest(&archive(b"busybox")), digest(&archive(b"busybex")));
    }

    #[test]
    fn every_digest_names_a_blob_of_the_archive() {
        let text = String::from_utf8_lossy(&archive(b"busybox")).into_owned();
        let named: Vec<&str> = text.match_indices("sha256:").map(|(at, _)| &text[at + 7..at + 71]).collect();
        assert_eq!(named.len(), 5, "two names, config, layer as blob and as diff id");
        for hash in named {
            assert!(text.contains(&format!("blobs/sha256/{hash}")), "{hash}");
        }
    }
}
