//! One machine: its layer over the shared tree, its start, its end.
//!
//! # Invariants
//! * A layer is complete or absent: it is made beside its place and then moved there.
//! * Nothing writes into a layer while it is mounted; the kernel would answer later edits in the machine with "stale file handle".
//! * A machine's supervisor is a shell script in a session of its own, not a thread of ours, because machines outlive the
//!   `up` that started them; not a copy of this program either, because a script of forty lines is smaller than eight of
//!   those in memory and does not change under a running lab when the program is rebuilt.
//! * A process is killed only if its number and start time are the recorded ones, or it is in the machine's own control groups.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::Rng as _;

use super::call::Call;
use super::cgroup;
use super::disk;
use super::down;
use super::error::{During as _, Failure};
use super::files::{self, IMAGE_FILE};
use super::network;
use super::pki::Pki;
use super::process::{self, Process};
use super::render::fill;
use super::settings::Settings;
use super::site::Site;
use super::topology::{MANAGEMENT_BRIDGE, Machine, Role};

/// Where programs are in a machine.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a killed machine may take to be gone, and its mounts to be free.
const END: Duration = Duration::from_secs(10);

/// A machine and its folder.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The lab that it belongs to.
    pub site: Site,
    /// Which one.
    pub machine: Machine,
    /// Its folder.
    pub folder: PathBuf,
}

/// What a machine is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The shared tree.
    pub base: &'a Path,
    /// Kubernetes' binaries.
    pub kubernetes: &'a Path,
    /// etcd's binaries.
    pub etcd: &'a Path,
    /// The controller's public key.
    pub key: &'a str,
    /// The image of the pods, an OCI archive.
    pub image: &'a [u8],
    /// Certificates.
    pub pki: &'a Pki,
    /// Settings.
    pub settings: &'a Settings,
}

impl Place {
    /// The machine's place below a lab's state folder.
    pub(super) fn new(site: &Site, machine: Machine) -> Self {
        Self { site: site.clone(), machine, folder: site.state().join("machines").join(machine.name) }
    }

    /// The machine's console: boot and shutdown messages, and what its supervisor says.
    pub(super) fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    fn layer(&self) -> PathBuf {
        self.folder.join("upper")
    }

    fn root(&self) -> PathBuf {
        self.folder.join("merged")
    }

    /// The public host key, without a comment.
    pub(super) fn host_key(&self) -> Result<String, Failure> {
        let text = disk::read(&self.layer().join("etc/ssh/ssh_host_ed25519_key.pub"))?;
        Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    /// The machine's first process, as this kernel numbers it, if the machine runs.
    pub(super) fn init(&self) -> Option<Process> {
        self.nspawn()?.children().into_iter().next()
    }

    fn nspawn(&self) -> Option<Process> {
        Process::recorded(&self.folder.join("nspawn"))
    }

    /// The script that keeps it running.
    pub(super) fn supervisor(&self) -> Option<Process> {
        Process::recorded(&self.folder.join("supervisor"))
    }

    /// Whether its supervisor and its nspawn run.
    pub(super) fn runs(&self) -> bool {
        self.supervisor().is_some() && self.nspawn().is_some()
    }

    /// Makes the layer, if it is not there.
    pub(super) fn prepare(&self, parts: &Parts<'_>) -> Result<(), Failure> {
        if self.layer().is_dir() {
            return Ok(());
        }
        let partial = self.folder.join("upper.partial");
        disk::remove(&partial)?;
        for name in ["work", "merged"] {
            disk::folder(&self.folder.join(name))?;
        }
        let id = format!("{:032x}", rand::rng().random::<u128>());
        disk::install(&partial, &files::files(self.machine, parts.settings, parts.key, &id))?;
        // The base's own is 0700, and a layer's folder hides it.
        Call::new("chmod", ["700", &partial.join("root").display().to_string()])
            .run()
            .during(|| "closing /root".to_owned())?;
        disk::folder(&partial.join("var/log/journal"))?;
        let key = partial.join("etc/ssh/ssh_host_ed25519_key").display().to_string();
        Call::new("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", self.machine.name, "-f", &key])
            .run()
            .during(|| "making its host key".to_owned())?;
        parts.pki.equip(self.machine, &partial)?;
        if self.machine.role == Role::Worker {
            disk::write(&partial.join(&IMAGE_FILE[1..]), parts.image, 0o644)?;
            disk::folder(&partial.join("etc/kubernetes/manifests"))?;
        }
        for name in self.data() {
            disk::folder(&self.folder.join("data").join(name))?;
        }
        disk::rename(&partial, &self.layer())
    }

    /// Folders that are bound from the disk below the overlay: etcd's files for their speed, containerd's and kubelet's because overlay does not stack
    /// on overlay and because kubelet looks for the disk under them.
    const fn data(&self) -> &'static [&'static str] {
        match self.machine.role {
            Role::Etcd => &["etcd"],
            Role::Worker => &["containerd", "kubelet"],
            Role::ControlPlane | Role::Balancer => &[],
        }
    }

    /// Starts the machine, which does not run.
    pub(super) fn start(&self, parts: &Parts<'_>) -> Result<(), Failure> {
        let root = self.root();
        if process::mounts_below(&root).is_empty() {
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                parts.base.display(),
                self.layer().display(),
                self.folder.join("work").display()
            );
            Call::new("mount", ["-t", "overlay", "overlay", "-o", &options, &root.display().to_string()])
                .run()
                .during(|| "mounting its disk".to_owned())?;
        }
        cgroup::make(&self.site, self.machine.name)?;
        let script = self.folder.join("supervise");
        disk::write(&script, self.supervise(parts), 0o755)?;
        let console = std::fs::OpenOptions::new().create(true).append(true).open(self.console());
        let console = console.during(|| "opening its console".to_owned())?;
        let error = console.try_clone().during(|| "opening its console".to_owned())?;
        let status = Command::new("setsid")
            .args(["--fork", "sh"])
            .arg(&script)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(error)
            .status();
        status.during(|| "starting its supervisor".to_owned())?;
        let start = Instant::now();
        while !self.runs() {
            if start.elapsed() > END {
                return Err(Failure::new("starting systemd-nspawn", "it did not start within 10 s"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn supervise(&self, parts: &Parts<'_>) -> String {
        let m = self.machine;
        let mut arguments = vec![format!("--network-bridge={}", m.rack.bridge())];
        let mut links = String::new();
        if !parts.settings.single_homed {
            arguments.push(format!("--network-veth-extra={}:mgmt0", m.management_link()));
            links = format!("{}:{MANAGEMENT_BRIDGE}", m.management_link());
        }
        match m.role {
            Role::Etcd => arguments.push(format!("--bind-ro={}:/opt/etcd", parts.etcd.display())),
            Role::ControlPlane | Role::Worker => {
                arguments.push(format!("--bind-ro={}:/opt/kubernetes", parts.kubernetes.display()));
            }
            Role::Balancer => {}
        }
        for name in self.data() {
            arguments
                .push(format!("--bind={}:/var/lib/{name}", self.folder.join("data").join(name).display()));
        }
        let groups: Vec<String> =
            cgroup::folders(&self.site, m.name).iter().map(|f| f.display().to_string()).collect();
        fill(
            include_str!("../../lab/scripts/supervise"),
            &[
                ("name", m.name),
                ("machine", &self.site.machine(m)),
                ("dir", &self.folder.display().to_string()),
                ("cgroups", &groups.join(" ")),
                ("namespace", &self.site.namespace_path()),
                ("arguments", &arguments.join(" ")),
                ("links", &links),
            ],
        )
    }

    /// Ends the machine as a power cut does, and frees its mounts and control groups. The layer stays.
    pub(super) fn kill(&self) -> Result<(), Failure> {
        // The supervisor first: it would take a sudden end for a reboot's.
        let supervisor: Vec<Process> = self.supervisor().into_iter().collect();
        let lock = nspawn_lock(&self.root());
        let nspawn = self.nspawn();
        process::kill(&supervisor, END);
        if let Some(nspawn) = nspawn {
            // With its first process all of a machine's die, and nspawn ends by itself and tidies up.
            process::kill(&nspawn.children(), END);
            let start = Instant::now();
            while nspawn.lives() && start.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(10));
            }
            process::kill(&[nspawn], END);
        }
        let members: Vec<Process> =
            cgroup::members(&self.site, self.machine.name).into_iter().filter_map(Process::now).collect();
        let left = process::kill(&members, END);
        if let Some(p) = left.first() {
            let cause = format!("process {} ({}) does not end", p.pid, p.name());
            return Err(Failure::new("ending its processes", cause));
        }
        down::unmount(&self.folder)?;
        for name in ["nspawn", "supervisor"] {
            disk::remove(&self.folder.join(name))?;
        }
        if let Some(lock) = lock {
            disk::remove(&lock)?;
        }
        if network::namespace_exists(&self.site) {
            network::remove_links(&self.site, self.machine);
        }
        cgroup::remove(&self.site, self.machine.name)
    }

    /// A program run in the machine, which must run; not through its network.
    pub(super) fn inside(&self, program: &str, args: &[&str]) -> Result<Call, Failure> {
        let init = self.init().ok_or("the machine is off").during(|| format!("running {program}"))?;
        let pid = init.pid.to_string();
        let enter = ["--target", &pid, "--mount", "--uts", "--ipc", "--net", "--pid", "--", program];
        Ok(Call::new("nsenter", enter.iter().chain(args)).env("PATH", PATH))
    }

    /// The last lines of a journal of the machine, or of its console if it does not run; with their source.
    pub(super) fn last_lines(&self, unit: Option<&str>) -> (String, Vec<String>) {
        let count = "-n15";
        if let Some(unit) = unit {
            let args = ["--no-pager", "-q", "-o", "cat", count, "-u", unit];
            if let Ok(text) = self.inside("journalctl", &args).and_then(|c| c.run().during(String::new)) {
                let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                if !lines.is_empty() {
                    return (format!("journalctl -u {unit} on {}", self.machine.name), lines);
                }
            }
        }
        let text = std::fs::read(self.console()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<String> = text.lines().map(plain).filter(|l| !l.trim().is_empty()).collect();
        let from = lines.len().saturating_sub(15);
        (self.console().display().to_string(), lines[from..].to_vec())
    }
}

/// The file by which systemd-nspawn keeps a second machine from the same root folder: it is named by the mounted
/// folder's device and inode, and stays when nspawn is killed.
fn nspawn_lock(root: &Path) -> Option<PathBuf> {
    use std::os::linux::fs::MetadataExt as _;
    let folder = std::fs::metadata(root).ok()?;
    let name = format!("inode-{}:{}", folder.st_dev(), folder.st_ino());
    Some(Path::new("/run/systemd/nspawn/locks").join(name))
}

/// A console line without its escape sequences and control characters.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A control sequence ends with a letter; the shorter ones are two characters long.
            if chars.next() == Some('[') {
                chars.by_ref().find(|c| c.is_ascii_alphabetic());
            }
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_lines_become_plain() {
        assert_eq!(
            plain("\u{1b}[0;32m  OK  \u{1b}[0m Started \u{1b}[0;1;39msshd\u{1b}[0m.\r"),
            "  OK   Started sshd."
        );
    }

    #[test]
    fn the_supervisor_of_a_worker() {
        let pki = Pki { program: "kubeadm".into(), version: "v1".into(), folder: "pki".into() };
        let parts = Parts {
            base: Path::new("/cache/base"),
            kubernetes: Path::new("/cache/kubernetes"),
            etcd: Path::new("/cache/etcd"),
            key: "",
            image: b"",
            pki: &pki,
            settings: &Settings::default(),
        };
        let place = Place::new(
            &Site::new("lab", Some(Path::new("/state"))).expect("a name"),
            Machine::named("w1").expect("a machine of the lab"),
        );
        let text = place.supervise(&parts);
        let arguments = text.lines().find(|l| l.contains("--network-bridge")).expect("nspawn's line");
        insta::assert_snapshot!(arguments.trim());
    }
}
