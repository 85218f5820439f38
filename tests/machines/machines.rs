//! Virtual machines without hardware support: kernels, clocks and disks of their own, on a bridge in a namespace.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rackrift::host::remote::{Outcome, Remote as _, Script};
use rackrift::inventory::{Host, Inventory, Kubernetes, Network, Purpose, Rack, Ssh};
use rackrift::ssh::{Fleet, Patience};

/// A busy machine boots them in a minute; far more means that they do not boot.
const BOOT: Duration = Duration::from_secs(240);

/// Everything is slow there: a greeting takes most of a second.
const PATIENCE: Patience = Patience {
    dial: Duration::from_secs(5),
    greet: Duration::from_secs(30),
    open: Duration::from_secs(10),
    keepalive: Duration::from_secs(5),
    unanswered: 4,
};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The machines; ended and removed with the value.
pub(crate) struct Machines {
    pub(crate) namespace: String,
    folder: tempfile::TempDir,
    names: Vec<&'static str>,
    processes: Vec<Child>,
}

fn run(program: &str, arguments: &str) {
    let done = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Machines {
    pub(crate) fn start(image: &Path, names: &[&'static str]) -> Self {
        let namespace = format!("rrvm-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let mut machines = Self { namespace, folder, names: names.to_vec(), processes: Vec::new() };
        let ns = machines.namespace.clone();
        for line in [
            format!("netns add {ns}"),
            format!("-n {ns} link set lo up"),
            format!("-n {ns} route add unreachable default"),
            format!("-n {ns} link add br0 type bridge"),
            format!("-n {ns} address add 198.18.200.1/24 dev br0"),
            format!("-n {ns} link set br0 up"),
        ] {
            run("ip", &line);
        }
        for n in 0..names.len() {
            machines.boot(image, n);
        }
        machines
    }

    fn boot(&mut self, image: &Path, n: usize) {
        let (ns, name, address) = (self.namespace.clone(), self.names[n], self.address(self.names[n]));
        let at = |what: &str| self.at(name, what).display().to_string();
        run("ip", &format!("-n {ns} tuntap add tap{n} mode tap"));
        run("ip", &format!("-n {ns} link set tap{n} master br0 up"));
        run("cp", &format!("--sparse=always {}/disk.img {}", image.display(), at("disk")));
        let image = image.display();
        let arguments = format!(
            "-M q35,usb=off -accel tcg -cpu max -smp 1 -m 512 -kernel {image}/vmlinuz -initrd {image}/initrd.gz \
             -drive if=none,id=d,file={},format=raw -device virtio-blk-pci,drive=d \
             -netdev tap,id=n,ifname=tap{n},script=no,downscript=no \
             -device virtio-net-pci,netdev=n,mac=52:54:00:00:00:{n:02x},romfile= -device virtio-rng-pci \
             -nodefaults -display none -serial file:{} -qmp unix:{},server=on,wait=off",
            at("disk"),
            at("console"),
            at("qmp"),
        );
        let kernel = format!("console=ttyS0 quiet net.ifnames=0 rr.ip={address}/24 rr.name={name}");
        let process = Command::new("ip")
            // Ends with us, however we end.
            .args(["netns", "exec", &ns, "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(arguments.split_whitespace())
            .args(["-append", &kernel])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.processes.push(process);
    }

    fn at(&self, name: &str, what: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{what}"))
    }

    pub(crate) fn address(&self, name: &str) -> IpAddr {
        let n = self.names.iter().position(|m| *m == name).unwrap();
        format!("198.18.200.{}", 11 + n).parse().unwrap()
    }

    /// The machine as its firmware sees it: the monitor takes the command and answers.
    pub(crate) fn monitor(&self, name: &str, command: &str) {
        let mut socket = UnixStream::connect(self.at(name, "qmp")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
        for command in ["qmp_capabilities", command] {
            writeln!(socket, "{{\"execute\": \"{command}\"}}").unwrap();
        }
        let answers = lines.by_ref().filter(|l| l.as_ref().unwrap().contains("\"return\"")).take(2).count();
        assert_eq!(answers, 2, "{command}");
    }

    /// Waits until all answer, each with a shell.
    pub(crate) async fn ready(&self, image: &Path) -> Fleet {
        let start = Instant::now();
        let keys = self.folder.path().join("known_hosts");
        loop {
            let mut scan = tokio::process::Command::new("ssh-keyscan");
            scan.args(["-t", "ed25519", "-T", "10"])
                .args(self.names.iter().map(|n| self.address(n).to_string()));
            let found = scan.output().await.unwrap().stdout;
            if String::from_utf8_lossy(&found).lines().filter(|l| !l.starts_with('#')).count()
                == self.names.len()
            {
                std::fs::write(&keys, found).unwrap();
                break;
            }
            assert!(start.elapsed() < BOOT, "the machines do not boot:\n{}", self.consoles());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Fleet::with(&self.inventory(image, &keys), PATIENCE).unwrap()
    }

    fn consoles(&self) -> String {
        let read = |n: &&str| std::fs::read_to_string(self.at(n, "console")).unwrap_or_default();
        self.names.iter().map(read).collect::<Vec<_>>().join("\n--\n")
    }

    fn inventory(&self, image: &Path, known_hosts: &Path) -> Inventory {
        let host = |name: &&'static str| Host {
            name: (*name).to_owned(),
            rack: "a".to_owned(),
            roles: Vec::new(),
            ssh: Ssh {
                address: self.address(name).to_string(),
                port: 22,
                user: "root".to_owned(),
                key: Some(image.join("key")),
                sudo: false,
            },
            addresses: BTreeMap::new(),
            node: None,
            pods: Vec::new(),
        };
        Inventory {
            lab: "machines".to_owned(),
            folder: self.folder.path().to_owned(),
            namespace: None,
            kubernetes: Kubernetes {
                kubeconfig: PathBuf::new(),
                distribution: "systemd".to_owned(),
                kubectl: None,
                image: String::new(),
                api_servers: BTreeMap::new(),
                etcdctl: None,
            },
            networks: vec![Network { name: "data".to_owned(), purpose: Purpose::Data }],
            racks: vec![Rack { name: "a".to_owned(), hosts: self.names.iter().map(host).collect() }],
            protected: Vec::new(),
            known_hosts: Some(known_hosts.to_owned()),
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).status();
    }
}

/// What a line of sh prints on a machine.
pub(crate) async fn on(fleet: &Fleet, name: &str, line: &str) -> String {
    let script = Script::new(line).limit(Duration::from_secs(90));
    match fleet.run(name, &script).await {
        Outcome::Done(done) if done.status == 0 => done.stdout.trim().to_owned(),
        other => panic!("{name}: {line}: {other:?}"),
    }
}
