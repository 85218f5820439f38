//! A lab of network namespaces on one bridge, and a [`Remote`] that runs scripts in them.
//!
//! # Invariants
//! * Nothing outside the namespaces is touched: they have no way out, and no socket is opened elsewhere.
//! * Whatever happens to the test, namespaces and folders are removed when the lab is dropped.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rackrift::fault::address::Block;
use rackrift::fault::plan::Target;
use rackrift::host::remote::{BoxFuture, Finished, Lines, Outcome, Remote, Script};
use tokio::io::AsyncWriteExt as _;

use super::heard::{PATIENCE, inside};

/// The address at which the controller sits on the bridge.
pub(crate) const CONTROLLER: &str = "198.18.0.1";

/// What is to happen to a script instead of its plain course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// It runs, but its answer is lost.
    AnswerLost,
    /// It never gets there.
    Unreachable,
    /// The host has no working iptables while it runs.
    NoIptables,
}

/// Which script, told by what only it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Prepare,
    Commit,
    Any,
}

impl Stage {
    fn is_of(self, body: &str) -> bool {
        match self {
            Self::Prepare => body.contains("RACKRIFT-END-OF-UNDO"),
            Self::Commit => body.contains("\n: >\"$dir/committed\"\n"),
            Self::Any => true,
        }
    }
}

/// A lab of namespaces.
pub(crate) struct Lab {
    /// Whether this value made the namespaces, and so removes them.
    owner: bool,
    prefix: String,
    hosts: Vec<String>,
    folder: PathBuf,
    mishaps: Mutex<Vec<(String, Stage, Mishap)>>,
    sent: Mutex<Vec<(String, String)>>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn sh(line: &str) -> String {
    let out = Command::new("/bin/sh").args(["-euc", line]).output().expect("sh starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    text
}

impl Lab {
    /// Hosts by name, all on one bridge; `hN` in the order given has 198.18.1.N and fd18::N.
    pub(crate) fn new(hosts: &[&str]) -> Arc<Self> {
        let prefix = format!("rr{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a folder").keep();
        let mut lab = Self::attach(&prefix, &folder, hosts);
        lab.owner = true;
        let core = lab.namespace("core");
        sh(&format!(
            "ip netns add {core}; ip -n {core} link set lo up; ip -n {core} link add br0 type bridge; \
             ip -n {core} addr add {CONTROLLER}/16 dev br0; ip -n {core} addr add fd18::ffff/64 dev br0 nodad; \
             ip -n {core} link set br0 up; ip -n {core} route add unreachable 198.18.0.0/15"
        ));
        for (i, host) in hosts.iter().enumerate() {
            let ns = lab.namespace(host);
            let n = i + 1;
            sh(&format!(
                "ip netns add {ns}; ip -n {ns} link set lo up; \
                 ip -n {core} link add p{n} type veth peer name eth0 netns {ns}; ip -n {core} link set p{n} master br0 up; \
                 ip -n {ns} addr add 198.18.1.{n}/16 dev eth0; ip -n {ns} addr add fd18::{n:x}/64 dev eth0 nodad; \
                 ip -n {ns} link set eth0 up"
            ));
        }
        Arc::new(lab)
    }

    /// A lab that another process made and will remove.
    pub(crate) fn attach(prefix: &str, folder: &Path, hosts: &[&str]) -> Self {
        Self {
            owner: false,
            prefix: prefix.to_owned(),
            hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
            folder: folder.to_owned(),
            mishaps: Mutex::default(),
            sent: Mutex::default(),
        }
    }

    /// What [`Lab::attach`] needs.
    pub(crate) fn handle(&self) -> (&str, &Path) {
        (&self.prefix, &self.folder)
    }

    /// The name under /run/netns; `core` is the bridge's, where the controller sits.
    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    /// Both addresses of a host.
    pub(crate) fn addresses(&self, host: &str) -> [IpAddr; 2] {
        let n = self.hosts.iter().position(|h| h == host).expect("a host of this lab") + 1;
        [format!("198.18.1.{n}"), format!("fd18::{n:x}")].map(|a| a.parse().expect("an address"))
    }

    /// Where faults keep their files for that host.
    pub(crate) fn run_dir(&self, host: &str) -> PathBuf {
        self.folder.join(host)
    }

    /// The hosts as a fault's targets.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let target = |host: &String| Target {
            host: host.clone(),
            blocks: self.addresses(host).map(Block::single).to_vec(),
            known: self.addresses(host).to_vec(),
            probe_port: 22,
            run_dir: self.run_dir(host).display().to_string(),
        };
        self.hosts.iter().map(target).collect()
    }

    /// From now on, such scripts for `host` meet with a mishap.
    pub(crate) fn mishap(&self, host: &str, stage: Stage, what: Mishap) {
        self.mishaps.lock().unwrap().push((host.to_owned(), stage, what));
    }

    pub(crate) fn no_more_mishaps(&self) {
        self.mishaps.lock().unwrap().clear();
    }

    /// Runs a line on a host.
    pub(crate) fn on(&self, host: &str, line: &str) -> String {
        sh(&format!("ip netns exec {} sh -euc '{}'", self.namespace(host), line.replace('\'', r"'\''")))
    }

    /// All rules of a host, both back ends and families, and nft's own view, counters set to nothing.
    pub(crate) fn rules(&self, host: &str) -> String {
        self.on(
            host,
            "for t in iptables-nft iptables-legacy ip6tables-nft ip6tables-legacy; do echo \"== $t\"; $t-save | \
             sed -e '/^#/d' -e 's/\\[[0-9]*:[0-9]*\\]//'; done; nft list ruleset | sed -e 's/packets [0-9]* bytes [0-9]*//'",
        )
    }

    /// Whether a new connection of the controller to a host is answered.
    pub(crate) fn controller_reaches(&self, host: &str) -> bool {
        let listener = self.listener(host);
        let address = listener.local_addr().expect("bound");
        inside(&self.namespace("core"), move || TcpStream::connect_timeout(&address, PATIENCE).is_ok())
    }

    fn listener(&self, host: &str) -> TcpListener {
        let address = self.addresses(host)[0];
        inside(&self.namespace(host), move || TcpListener::bind((address, 0)).expect("a free port"))
    }

    /// A live connection between two hosts.
    pub(crate) fn connection(&self, from: &str, to: &str) -> Connection {
        let listener = self.listener(to);
        let address = listener.local_addr().expect("bound");
        let near =
            inside(&self.namespace(from), move || TcpStream::connect(address).expect("nothing is cut yet"));
        let (far, _) = listener.accept().expect("nothing is cut yet");
        far.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Connection { near, far }
    }

    /// How many such scripts were sent to a host.
    pub(crate) fn scripts(&self, host: &str, stage: Stage) -> usize {
        self.sent.lock().unwrap().iter().filter(|(h, body)| h == host && stage.is_of(body)).count()
    }

    /// Processes that run in a host's namespace.
    pub(crate) fn processes(&self, host: &str) -> BTreeSet<String> {
        sh(&format!("ip netns pids {}", self.namespace(host))).lines().map(str::to_owned).collect()
    }

    fn mishap_for(&self, host: &str, body: &str) -> Option<Mishap> {
        let mishaps = self.mishaps.lock().unwrap();
        mishaps.iter().find(|(h, stage, _)| h == host && stage.is_of(body)).map(|(_, _, what)| *what)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.owner {
            return;
        }
        for host in self.hosts.iter().map(String::as_str).chain(["core"]) {
            let ns = self.namespace(host);
            // The processes in a namespace are ours alone: it was made by this lab.
            let line = format!("for p in $(ip netns pids {ns}); do kill -9 $p; done; ip netns del {ns}");
            let _ = Command::new("/bin/sh").args(["-c", &line]).stderr(Stdio::null()).status();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Remote for Lab {
    fn run<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            self.sent.lock().unwrap().push((host.to_owned(), script.body.clone()));
            let mishap = self.mishap_for(host, &script.body);
            if mishap == Some(Mishap::Unreachable) {
                return Outcome::Refused { reason: "no route to host".to_owned() };
            }
            let outcome = self.exec(host, script, mishap == Some(Mishap::NoIptables)).await;
            if mishap == Some(Mishap::AnswerLost) {
                return Outcome::Lost { reason: "connection reset by peer".to_owned() };
            }
            outcome
        })
    }

    fn stream<'a>(&'a self, _: &'a str, _: &'a Script) -> BoxFuture<'a, Result<Lines, String>> {
        Box::pin(async { Err("this lab has no streams".to_owned()) })
    }
}

impl Lab {
    async fn exec(&self, host: &str, script: &Script, no_iptables: bool) -> Outcome {
        // `ip netns exec` gives the script a mount namespace of its own, so hiding a file hides it from nobody else.
        let hide = if no_iptables {
            "for f in /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi; do mount --bind /dev/null $f; done;"
        } else {
            ""
        };
        let address = self.addresses(host)[0];
        let mut child = tokio::process::Command::new("ip")
            .args(["netns", "exec", &self.namespace(host), "sh", "-c", &format!("{hide} exec /bin/sh -s")])
            .env("SSH_CONNECTION", format!("{CONTROLLER} 40000 {address} 22"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("ip starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let body = script.body.clone().into_bytes();
        let feed = tokio::spawn(async move { stdin.write_all(&body).await });
        let ended = tokio::time::timeout(script.limit, child.wait_with_output()).await;
        let _ = feed.await;
        match ended {
            Err(_) => Outcome::TimedOut { after: script.limit, output: Finished::default() },
            Ok(out) => {
                let out = out.expect("output is read");
                Outcome::Done(Finished {
                    status: out.status.code().unwrap_or(-1),
                    stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
                    stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
                    truncated: false,
                })
            }
        }
    }
}

/// A connection between two hosts.
pub(crate) struct Connection {
    near: TcpStream,
    far: TcpStream,
}

impl Connection {
    /// Whether a byte gets through.
    pub(crate) fn carries(&mut self) -> bool {
        self.near.write_all(b"x").is_ok() && matches!(self.far.read(&mut [0]), Ok(1))
    }
}

/// Waits until `done`, at most `limit`; whether it came true.
pub(crate) async fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = tokio::time::Instant::now() + limit;
    while !done() {
        if tokio::time::Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    true
}
