//! What must be installed on the machine before a lab can be made.

use std::path::PathBuf;
use std::time::Duration;

use super::call::Call;
use super::error::{During as _, Failure};

/// Something that has to be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The program that was looked for.
    pub program: &'static str,
    /// The Debian package that has it; absent if Debian's is too old.
    pub debian: Option<&'static str>,
    /// What the lab needs it for.
    pub purpose: &'static str,
}

const fn debian(program: &'static str, package: &'static str, purpose: &'static str) -> Package {
    Package { program, debian: Some(package), purpose }
}

const PROGRAMS: [Package; 9] = [
    debian("systemd-nspawn", "systemd-container", "runs the machines"),
    debian("debootstrap", "debootstrap", "makes the tree that the machines share"),
    debian("iptables", "iptables", "shows the rules of the lab's network"),
    debian("busybox", "busybox-static", "is the container image"),
    debian("ssh", "openssh-client", "logs in to the machines"),
    debian("ip", "iproute2", "makes the lab's networks"),
    debian("nsenter", "util-linux", "enters the lab's network namespace"),
    debian("sysctl", "procps", "sets what kubelet wants of the kernel"),
    GO,
];

/// Go is needed to build the components only.
const GO: Package =
    Package { program: "go", debian: None, purpose: "builds Kubernetes and etcd from their modules" };

/// What is missing. `build`: whether components have to be built, for which Go is needed.
#[must_use]
pub(super) fn missing_prerequisites(build: bool) -> Vec<Package> {
    PROGRAMS.into_iter().filter(|p| build || *p != GO).filter(|p| find(p.program).is_none()).collect()
}

/// Where a program is: in `PATH` or where administrators' programs are.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).map(|folder| folder.join(program)).find(|p| p.is_file())
}

/// One line that names what is missing.
pub(super) fn list(missing: &[Package]) -> String {
    missing.iter().map(|p| format!("{} ({})", p.program, p.purpose)).collect::<Vec<_>>().join(", ")
}

/// What to do about it.
pub(super) fn advice(missing: &[Package]) -> String {
    let names: Vec<&str> = missing.iter().filter_map(|p| p.debian).collect();
    let mut lines = Vec::new();
    if !names.is_empty() {
        lines.push(format!("install: apt-get install --no-install-recommends {}", names.join(" ")));
    }
    if missing.contains(&GO) {
        lines.push(
            "install Go 1.26 or newer (Debian's package is too old), or give a folder of built components: \
             --components DIR"
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// Installs the Debian packages among `missing`.
///
/// # Errors
/// If apt-get fails; its last lines are in the error.
pub fn install(missing: &[Package]) -> Result<(), Failure> {
    let mut names: Vec<&str> = missing.iter().filter_map(|p| p.debian).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let apt = |args: &[&str]| {
        let all = ["-q", "-y"].iter().chain(args);
        Call::new("apt-get", all)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .limit(Duration::from_secs(600))
            .run()
            .during(|| format!("installing {}", names.join(" ")))
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], names.as_slice()].concat()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let missing = [PROGRAMS[0], PROGRAMS[3], GO];
        insta::assert_snapshot!(format!("{}\n{}", list(&missing), advice(&missing)));
        assert_eq!(advice(&[]), "");
    }

    #[test]
    fn a_program_is_found_where_it_is() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
