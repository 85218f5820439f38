//! Faults of hosts themselves, on namespaces: processes, a device, its packets, a disk, memory, processors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rackrift::fault::deed::Deed;
use rackrift::fault::id::FaultId;
use rackrift::fault::kind::plan::{DeedPlan, Request};
use rackrift::fault::kind::{Harm, Refused, What};
use rackrift::yaml::Source;
use rackrift_checkers::history::FaultPhase;

use crate::bench::Bench;
use crate::support::namespaces::until;

/// Files in /dev/shm and /var/lib are the machine's, not a namespace's: a heal for one test would take those of another.
static MACHINE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Held while nobody else heals, or has such files.
pub(crate) async fn machine() -> tokio::sync::MutexGuard<'static, ()> {
    MACHINE.lock().await
}

const SOON: Duration = Duration::from_secs(12);

fn what(text: &str) -> What {
    Source { origin: "a test", text }.parse().unwrap()
}

/// A program under a name that nobody else has; ended with the value.
struct Program {
    child: Child,
    path: PathBuf,
}

impl Program {
    fn start(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        if !path.exists() {
            std::fs::copy("/bin/sleep", &path).unwrap();
        }
        let child = Command::new(&path).arg("600").stdin(Stdio::null()).spawn().unwrap();
        Self { child, path }
    }

    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    }

    fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bench {
    fn deed_request(&self, what: What, on: &[&str], towards: &[&str]) -> Request {
        let dir = |h: &str| self.lab.run_dir(h).display().to_string();
        Request {
            id: FaultId::new("kind", 1).unwrap(),
            name: "k".to_owned(),
            what,
            hosts: on.iter().map(|h| ((*h).to_owned(), dir(h))).collect(),
            peers: towards.iter().map(|h| ((*h).to_owned(), self.lab.addresses(h).to_vec())).collect(),
            protected: vec![],
            roles: BTreeMap::new(),
            allow: BTreeSet::new(),
            ttl: Duration::from_secs(6),
        }
    }

    async fn deed_plan(&self, text: &str, on: &[&str], towards: &[&str]) -> Result<DeedPlan, Refused> {
        DeedPlan::build(&self.remote, &self.deed_request(what(text), on, towards)).await
    }

    /// In force, and seen so.
    async fn deed(&self, text: &str, on: &[&str], towards: &[&str]) -> Deed {
        let plan = self.deed_plan(text, on, towards).await.unwrap();
        let deed = Deed::prepare(self.remote.clone(), plan, self.journal.clone(), self.sender.clone());
        let deed = deed.await.unwrap();
        assert!(deed.commit().await.unwrap().unknown.is_empty());
        let seen = deed.observe(SOON).await;
        assert!(seen.bites(), "{seen}");
        deed
    }

    async fn healed(&mut self, deed: Deed) {
        let report = deed.heal().await;
        assert!(report.clean(), "{report}");
        assert_eq!(self.left_behind(), Vec::<String>::new());
        assert_eq!(self.open_in_journal(), 0);
        let phases = self.phases();
        let hosts = deed.plan().hosts.len();
        for phase in [
            FaultPhase::Asked,
            FaultPhase::Applied,
            FaultPhase::Observed,
            FaultPhase::Healing,
            FaultPhase::Healed,
        ] {
            assert_eq!(phases.get(&phase), Some(&hosts), "{phase:?} of {phases:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_program_stands_still_until_the_heal() {
    let mut bench = Bench::new(&["m1"]);
    let name = format!("rr-paused-{}", std::process::id());
    let both = [Program::start(bench.folder.path(), &name), Program::start(bench.folder.path(), &name)];
    let other = Program::start(bench.folder.path(), "rr-bystander");
    let deed = bench.deed(&format!("process: {{pause: {name}}}"), &["m1"], &[]).await;
    assert_eq!(both.each_ref().map(Program::state), ['T', 'T']);
    assert_eq!(other.state(), 'S');
    bench.healed(deed).await;
    assert_eq!(both.each_ref().map(Program::state), ['S', 'S']);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dead_man_and_a_heal_without_a_run_wake_what_is_paused() {
    let _alone = machine().await;
    let bench = Bench::new(&["m1"]);
    let name = format!("rr-deadman-{}", std::process::id());
    let program = Program::start(bench.folder.path(), &name);
    let text = format!("process: {{pause: {name}}}");
    drop(bench.deed(&text, &["m1"], &[]).await);
    assert_eq!(program.state(), 'T');
    assert!(until(Duration::from_secs(20), || program.state() == 'S').await);
    assert!(until(SOON, || bench.left_behind().is_empty()).await);

    let deed = bench.deed(&text, &["m1"], &[]).await;
    let keep = deed.keep_alive();
    let dir = bench.lab.run_dir("m1").display().to_string();
    let report = rackrift::fault::heal::heal_hosts(&bench.remote, &["m1".to_owned()], &dir).await;
    assert!(report.clean() && report.removed_something(), "{report}");
    assert_eq!(program.state(), 'S');
    drop(keep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_is_gone_and_a_crash_loop_kills_what_is_started_again() {
    let mut bench = Bench::new(&["m1"]);
    let name = format!("rr-killed-{}", std::process::id());
    let mut first = Program::start(bench.folder.path(), &name);
    let deed = bench.deed(&format!("process: {{kill: {name}}}"), &["m1"], &[]).await;
    assert!(first.ended());
    bench.healed(deed).await;

    let mut second = Program::start(bench.folder.path(), &name);
    let text = format!("process: {{crash-loop: {{program: {name}, every: 1s}}}}");
    let deed = bench.deed(&text, &["m1"], &[]).await;
    assert!(until(SOON, || second.ended()).await);
    let mut third = Program::start(bench.folder.path(), &name);
    assert!(until(SOON, || third.ended()).await);
    bench.healed(deed).await;
    let mut fourth = Program::start(bench.folder.path(), &name);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!fourth.ended());
    assert!(fourth.path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_towards_one_peer_is_taken_off_again_and_the_qdisc_is_as_before() {
    let mut bench = Bench::new(&["m1", "m2", "w1"]);
    let before = bench.lab.on("m1", "tc qdisc show");
    let deed = bench.deed("traffic: {to: 'host:m2', rate: 256kbit}", &["m1"], &["m2"]).await;
    let classes = bench.lab.on("m1", "tc class show dev eth0");
    assert!(classes.contains("5b00:10") && classes.contains("256Kbit"), "{classes}");
    let sent = |bench: &Bench| {
        let told = bench.lab.on("m1", "tc -s class show dev eth0 classid 5b00:10 | grep Sent");
        told.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap()
    };
    let m2 = sent(&bench);
    assert!(m2 > 0);
    // What goes elsewhere is left alone.
    let w1 = bench.lab.addresses("w1")[0];
    bench.lab.on("m1", &format!("ping -c 5 -i 0.2 -W 2 {w1}"));
    assert_eq!(sent(&bench), m2);
    let again = bench.deed_plan("traffic: {rate: 1mbit}", &["m1"], &[]).await.unwrap_err();
    assert!(again.to_string().contains("a qdisc of its own"), "{again}");
    bench.healed(deed).await;
    assert_eq!(bench.lab.on("m1", "tc qdisc show"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_down_has_its_addresses_and_routes_back() {
    let mut bench = Bench::new(&["m1", "m2"]);
    bench.lab.on(
        "m1",
        "ip link add data0 type veth peer name data1; ip link set data1 up; ip addr add 198.19.7.1/24 dev data0; \
         ip addr add fd19::7/64 dev data0 nodad; ip link set data0 up; ip route add 198.19.8.0/24 via 198.19.7.9; \
         ip -6 route add fd20::/64 via fd19::9",
    );
    let state = "ip -o addr show dev data0 | grep -v fe80 | sed 's/^[0-9]*: //' | cut -d ' ' -f 1-6; \
                 ip route show; ip -6 route show | grep -v fe80";
    assert!(until(SOON, || !bench.lab.on("m1", "ip -o addr; ip -6 route").contains("linkdown")).await);
    let before = bench.lab.on("m1", state);
    let refused = bench.deed_plan("link: {down: eth0}", &["m1"], &[]).await.unwrap_err();
    assert!(refused.to_string().contains("the way of the controller"), "{refused}");
    let unknown = bench.deed_plan("link: {down: eth7}", &["m1"], &[]).await.unwrap_err();
    assert!(unknown.to_string().contains("there are: lo"), "{unknown}");
    let deed = bench.deed("link: {down: data0}", &["m1"], &[]).await;
    assert!(!bench.lab.on("m1", "ip route show").contains("198.19.8.0"));
    bench.healed(deed).await;
    assert_eq!(bench.lab.on("m1", state), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_filled_but_for_its_reserve_and_memory_and_processors_are_taken() {
    let _alone = machine().await;
    let mut bench = Bench::new(&["m1"]);
    let disk = bench.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "rackrift-test"]).arg(&disk).status();
    assert!(mount.unwrap().success());
    let text = format!("fill: {{path: {}, leave: 20MiB}}", disk.display());
    let filled = bench.deed(&text, &["m1"], &[]).await;
    let size = std::fs::metadata(disk.join(".rackrift-kind-1.fill")).unwrap().len();
    assert!((70 << 20..=76 << 20).contains(&size), "{size}");
    bench.healed(filled).await;
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0);
    let small = bench.deed_plan(&text.replace("20MiB", "200MiB"), &["m1"], &[]).await.unwrap_err();
    assert!(small.to_string().contains("by itself"), "{small}");
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());

    let taken = bench.deed("pressure: {memory: 24MiB}", &["m1"], &[]).await;
    assert_eq!(std::fs::metadata("/dev/shm/rackrift-kind-1").unwrap().len(), 24 << 20);
    bench.healed(taken).await;
    assert!(!Path::new("/dev/shm/rackrift-kind-1").exists());
    let busy = bench.deed("pressure: {cpu: 2}", &["m1"], &[]).await;
    let loops = bench.lab.processes("m1").into_iter().filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("burn.sh"))
    });
    assert_eq!(loops.count(), 2);
    bench.healed(busy).await;
    assert!(until(SOON, || bench.lab.processes("m1").is_empty()).await);
}

/// As after a crash of host and controller: no folder, no journal, only what carries our name.
#[tokio::test(flavor = "multi_thread")]
async fn a_heal_finds_qdiscs_and_files_that_no_folder_tells_of() {
    let _alone = machine().await;
    let bench = Bench::new(&["m1", "m2"]);
    let before = bench.lab.on("m1", "tc qdisc show");
    let dir = bench.lab.run_dir("m1");
    let held = bench.folder.path().join(".rackrift-lost-1.fill");
    drop(bench.deed("traffic: {to: 'host:m2', rate: 256kbit}", &["m1"], &["m2"]).await);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::create_dir_all("/var/lib/rackrift").unwrap();
    std::fs::write(&held, "x").unwrap();
    std::fs::write("/var/lib/rackrift/lost-1.fill", format!("{}\n", held.display())).unwrap();
    std::fs::write("/dev/shm/rackrift-lost-1", "x").unwrap();
    let heal = || async {
        let dir = dir.display().to_string();
        rackrift::fault::heal::heal_hosts(&bench.remote, &["m1".to_owned()], &dir).await
    };
    let report = heal().await;
    assert!(report.clean(), "{report}");
    let found = report.hosts["m1"].found.join(", ");
    for what in ["qdisc 5b00: on eth0", ".rackrift-lost-1.fill", "/dev/shm/rackrift-lost-1"] {
        assert!(found.contains(what), "{found}");
    }
    assert!(!held.exists() && !Path::new("/var/lib/rackrift/lost-1.fill").exists());
    assert_eq!(bench.lab.on("m1", "tc qdisc show"), before);
    let again = heal().await;
    assert!(again.clean() && !again.removed_something(), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_is_or_lacks_is_told_before_anything_is_done() {
    let bench = Bench::new(&["m1"]);
    let mut said = Vec::new();
    // A machine of its own could be given these.
    if !Path::new("/run/systemd/system").exists() {
        for (text, why) in [
            ("clock: {ahead: 1h}", "its clock may be that of other machines"),
            ("machine: reboot", "no kernel of its own to boot"),
            ("service: {stop: kubelet}", "m1 lacks what this needs: systemd does not run there"),
        ] {
            let refused = bench.deed_plan(text, &["m1"], &[]).await.unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
            assert_eq!(refused.only_missing(), text.starts_with("service"));
        }
    }
    for text in [
        "static-pod: {stop: kube-apiserver}",
        "process: {pause: no-such-program}",
        "fill: {path: /no/such/folder, leave: 64MiB}",
        "pressure: {memory: 4096GiB}",
    ] {
        let refused = bench.deed_plan(text, &["m1"], &[]).await.unwrap_err();
        let skipped = if refused.only_missing() { "skipped" } else { "refused" };
        // How much memory there is differs from machine to machine.
        let told = refused.to_string();
        said.push(format!("{skipped}: {}", told.split(" only ").next().unwrap_or_default()));
    }
    let mut request = bench.deed_request(what("process: {kill: etcd}"), &["m1"], &[]);
    request.roles.insert("m1".to_owned(), vec!["etcd".to_owned()]);
    said.push(DeedPlan::build(&bench.remote, &request).await.unwrap_err().to_string());
    request.allow.insert(Harm::EtcdQuorum);
    said.push(DeedPlan::build(&bench.remote, &request).await.unwrap_err().to_string());
    insta::assert_snapshot!(said.join("\n"));
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}
