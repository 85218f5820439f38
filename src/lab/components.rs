//! Kubernetes' and etcd's binaries: built from their Go modules at the versions pinned in `lab/`, or given.
//!
//! # Invariants
//! * The cached folder's name holds the version and a hash of the module files; it is complete or absent.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::call::Call;
use super::disk;
use super::error::{During as _, Failure, LabError};
use super::prerequisites;
use super::progress::{Stage, Track};

/// The folders of the binaries, and Kubernetes' version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Components {
    /// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl, kubeadm.
    pub kubernetes: PathBuf,
    /// etcd, etcdctl.
    pub etcd: PathBuf,
}

/// A Go module file of ours, and what is built by it.
struct Module {
    name: &'static str,
    /// The module whose version is the component's.
    pinned: &'static str,
    files: [(&'static str, &'static str); 3],
    /// Package and the name of its binary.
    programs: &'static [(&'static str, &'static str)],
    /// Variables that the linker sets to the version.
    version_variables: &'static [&'static str],
}

const KUBERNETES: Module = Module {
    name: "kubernetes",
    pinned: "k8s.io/kubernetes",
    files: [
        ("go.mod", include_str!("../../lab/kubernetes/go.mod")),
        ("go.sum", include_str!("../../lab/kubernetes/go.sum")),
        ("tools.go", include_str!("../../lab/kubernetes/tools.go")),
    ],
    programs: &[
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
        ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
        ("k8s.io/kubernetes/cmd/kubeadm", "kubeadm"),
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
    ],
    version_variables: &[
        "k8s.io/component-base/version.gitVersion",
        "k8s.io/client-go/pkg/version.gitVersion",
    ],
};

const ETCD: Module = Module {
    name: "etcd",
    pinned: "go.etcd.io/etcd/server/v3",
    files: [
        ("go.mod", include_str!("../../lab/etcd/go.mod")),
        ("go.sum", include_str!("../../lab/etcd/go.sum")),
        ("tools.go", include_str!("../../lab/etcd/tools.go")),
    ],
    programs: &[("go.etcd.io/etcd/server/v3", "etcd"), ("go.etcd.io/etcd/etcdctl/v3", "etcdctl")],
    version_variables: &[],
};

/// The first sixteen hex digits of the SHA-256 of the texts.
pub(super) fn fingerprint(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

impl Module {
    fn version(&self) -> &'static str {
        let (_, text) = self.files[0];
        let lines = text.lines().map(|l| l.trim().trim_start_matches("require "));
        let found = lines.filter_map(|l| l.split_once(' ')).find(|(module, _)| *module == self.pinned);
        found.map_or("", |(_, version)| version.split_whitespace().next().unwrap_or_default())
    }

    fn folder(&self, cache: &Path) -> PathBuf {
        let texts = self.files.map(|(_, text)| text);
        cache.join(format!("{}-{}-{}", self.name, self.version(), fingerprint(&texts)))
    }

    fn build(&self, cache: &Path, track: &Track<'_>) -> Result<(), Failure> {
        let done = self.folder(cache);
        if done.is_dir() {
            return Ok(());
        }
        let go = prerequisites::find("go").ok_or("no go in PATH").during(|| "building".to_owned())?;
        let partial = done.with_extension("partial");
        disk::remove(&partial)?;
        let source = partial.join("source");
        for (name, text) in self.files {
            disk::write(&source.join(name), text, 0o644)?;
        }
        let version = self.version();
        let label = format!("{} {version}", self.name);
        track.note(Stage::Components, None, format!("building {label} with go"));
        let variables = self.version_variables.iter().map(|v| format!(" -X {v}={version}"));
        let flags = format!("-s -w{}", variables.collect::<String>());
        let bin = format!("{}/", partial.join("bin").display());
        let mut args = vec![
            "build",
            "-v",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &flags,
            "-o",
            &bin,
        ];
        args.extend(self.programs.iter().map(|(package, _)| package));
        let (mut count, mut told) = (0u32, Instant::now());
        Call::tied(go, args)
            .folder(&source)
            .env("CGO_ENABLED", "0")
            .limit(Duration::from_secs(3600))
            .run_with(|line| {
                count += u32::from(!line.starts_with("go: "));
                if told.elapsed() > Duration::from_secs(10) {
                    told = Instant::now();
                    track.note(Stage::Components, None, format!("{label}: {count} packages compiled"));
                }
            })
            .during(|| format!("building {label}"))?;
        // Go names a program by the last part of its package's path that is not a version: etcd's is "server".
        for (package, name) in self.programs {
            let built = package.trim_end_matches("/v3").rsplit('/').next().unwrap_or(package);
            disk::rename(&partial.join("bin").join(built), &partial.join(name))?;
        }
        disk::remove(&source)?;
        disk::remove(&partial.join("bin"))?;
        disk::rename(&partial, &done)
    }
}

/// Whether components have to be built.
pub(super) fn must_build(cache: &Path) -> bool {
    [KUBERNETES, ETCD].iter().any(|m| !m.folder(cache).is_dir())
}

/// Builds what is not cached.
pub(super) fn build(cache: &Path, track: &Track<'_>) -> Result<Components, Failure> {
    // The small one first: if nothing can be built, that is known after seconds.
    ETCD.build(cache, track)?;
    KUBERNETES.build(cache, track)?;
    Ok(Components { kubernetes: KUBERNETES.folder(cache), etcd: ETCD.folder(cache) })
}

/// Takes a folder that has every program.
pub(super) fn given(folder: &Path) -> Result<Components, LabError> {
    let wrong = |what: String| LabError::Components { folder: folder.to_owned(), what };
    let folder = folder.canonicalize().map_err(|e| wrong(e.to_string()))?;
    let names = KUBERNETES.programs.iter().chain(ETCD.programs).map(|(_, name)| *name);
    let missing: Vec<&str> = names.filter(|n| !folder.join(n).is_file()).collect();
    if missing.is_empty() {
        Ok(Components { kubernetes: folder.clone(), etcd: folder })
    } else {
        Err(wrong(format!("it has no {}", missing.join(", no "))))
    }
}

impl Components {
    /// Kubernetes' version, as `v1.34.4`.
    pub(super) fn version(&self) -> Result<String, Failure> {
        let text = Call::new(self.kubernetes.join("kubeadm"), ["version", "-o", "short"]).run();
        Ok(text.during(|| "asking kubeadm for its version".to_owned())?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_module_files() {
        assert!(KUBERNETES.version().starts_with("v1.34."), "{}", KUBERNETES.version());
        assert!(ETCD.version().starts_with("v3.6."), "{}", ETCD.version());
    }

    #[test]
    fn every_program_is_pinned_by_its_tools_file() {
        for module in [KUBERNETES, ETCD] {
            for (package, _) in module.programs {
                assert!(module.files[2].1.contains(&format!("\"{package}\"")), "{package}");
            }
        }
    }

    #[test]
    fn a_folder_that_lacks_programs_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        for name in ["kubelet", "kubeadm", "kubectl", "etcd", "etcdctl", "kube-apiserver"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let said = given(folder.path()).expect_err("two are missing").to_string();
        assert!(said.ends_with("it has no kube-controller-manager, no kube-scheduler"), "{said}");
        let said = given(Path::new("/no/such/folder")).expect_err("absent").to_string();
        assert!(said.contains("No such file"), "{said}");
    }

    #[test]
    fn a_fingerprint_tells_texts_apart() {
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
        assert_eq!(fingerprint(&["a"]).len(), 16);
    }
}
