//! Faults that need a kernel, a clock and a disk of their own, on virtual machines. Asked for by
//! `RACKRIFT_TEST_MACHINES=1`; needs root and QEMU, not KVM. Each test prints what it measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where something is not as it should be, and says what it saw or why it was skipped"
)]

mod clocks;
mod disks;
mod image;
mod machines;
mod packets;
mod power;
mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rackrift::fault::deed::Deed;
use rackrift::fault::healing::HealReport;
use rackrift::fault::id::FaultId;
use rackrift::fault::journal::{Journal, unclosed};
use rackrift::fault::kind::Refused;
use rackrift::fault::kind::plan::{DeedPlan, Request};
use rackrift::host::enter;
use rackrift::host::remote::{Outcome, Remote, Script};
use rackrift::ssh::Fleet;
use rackrift::yaml::Source;
use tokio::sync::mpsc;

use self::machines::{Machines, on};

const SOON: Duration = Duration::from_secs(60);
/// Where faults keep their files: gone after a reboot, as on any host.
const RUN: &str = "/run/rackrift";

/// Two machines, `a` and `b`, and a fault at a time.
struct Stage {
    machines: Machines,
    fleet: Arc<Fleet>,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn on(&self, name: &str, line: &str) -> String {
        on(&self.fleet, name, line).await
    }

    /// The shell's answer as a number.
    async fn number(&self, name: &str, line: &str) -> f64 {
        let told = self.on(name, line).await;
        told.parse().unwrap_or_else(|e| panic!("{name}: {line}: `{told}`: {e}"))
    }

    /// The same, where the machine may be away.
    async fn on_if_up(&self, name: &str, line: &str) -> Option<String> {
        match self.fleet.run(name, &Script::new(line).limit(Duration::from_secs(10))).await {
            Outcome::Done(done) if done.status == 0 => Some(done.stdout.trim().to_owned()),
            _ => None,
        }
    }

    async fn try_plan(&self, text: &str, on: &str, towards: &[&str]) -> Result<DeedPlan, Refused> {
        let request = Request {
            id: FaultId::new("machine", 1).unwrap(),
            name: "k".to_owned(),
            what: Source { origin: "a test", text }.parse().unwrap(),
            hosts: [(on.to_owned(), RUN.to_owned())].into(),
            peers: towards.iter().map(|h| ((*h).to_owned(), vec![self.machines.address(h)])).collect(),
            protected: vec![],
            roles: BTreeMap::new(),
            allow: BTreeSet::new(),
            ttl: Duration::from_secs(90),
        };
        let remote: Arc<dyn Remote> = self.fleet.clone();
        DeedPlan::build(&remote, &request).await
    }

    /// In force on a host, and seen so.
    async fn deed(&self, text: &str, on: &str, towards: &[&str]) -> Deed {
        let plan = self.try_plan(text, on, towards).await.unwrap();
        let journal = Journal::open(&self.journal()).unwrap();
        let deed =
            Deed::prepare(self.fleet.clone(), plan, journal, mpsc::unbounded_channel().0).await.unwrap();
        deed.commit().await.unwrap();
        let seen = deed.observe(SOON * 3).await;
        assert!(seen.bites(), "{text}: {seen}");
        eprintln!("{text}: {seen}");
        deed
    }

    async fn healed(&self, deed: Deed) -> HealReport {
        let report = deed.heal().await;
        assert!(report.clean(), "{report}");
        assert_eq!(unclosed(&std::fs::read_to_string(self.journal()).unwrap()).len(), 0);
        for host in deed.plan().hosts.keys() {
            assert_eq!(self.on(host, &format!("ls {RUN} 2>/dev/null | wc -l")).await, "0");
        }
        report
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal.jsonl")
    }
}

fn has(program: &str) -> bool {
    std::env::var("PATH").unwrap_or_default().split(':').any(|d| Path::new(d).join(program).exists())
}

/// Why this machine cannot boot others, if it cannot.
fn hindrance() -> Option<String> {
    if std::env::var_os("RACKRIFT_TEST_MACHINES").is_none() {
        return Some("RACKRIFT_TEST_MACHINES is not set".to_owned());
    }
    let tools = ["qemu-system-x86_64", "debootstrap", "mke2fs", "cpio", "busybox", "ssh-keyscan", "setpriv"];
    let lacking: Vec<&str> = tools.into_iter().filter(|t| !has(t)).collect();
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun here".to_owned());
    }
    (!lacking.is_empty()).then(|| format!("{} not installed", lacking.join(", ")))
}

/// The whole way: the machines boot once, faults follow one another.
#[test]
fn faults_of_machines_bite_and_are_gone_after_the_heal() {
    if let Some(why) = hindrance() {
        eprintln!("skipped: {why}");
        return;
    }
    let image = image::folder();
    let machines = Machines::start(&image, &["a", "b"]);
    let outside = enter::enter(&machines.namespace).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let fleet = Arc::new(machines.ready(&image).await);
        let stage = Stage { machines, fleet, folder: tempfile::tempdir().unwrap() };
        packets::netem(&stage).await;
        packets::refused_by_an_own_root(&stage).await;
        clocks::jumps_and_rates(&stage).await;
        disks::volumes(&stage).await;
        services::units_and_crash_loops(&stage).await;
        power::reboot_and_crash(&stage).await;
        power::a_crash_in_mid_fault(&stage).await;
    });
    drop(runtime);
    outside.back().unwrap();
}
