//! A real sshd, for one test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rackrift::inventory::{Host, Inventory, Kubernetes, Network, Purpose, Rack, Ssh};

/// The sshd; ended with the test.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    address: String,
    port: u16,
    process: Child,
}

/// Where an sshd runs, and how it differs from the plain one.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    /// The network namespace; absent: this one, on loopback.
    pub(crate) namespace: Option<(&'a str, &'a str)>,
    /// Further lines of its configuration; `FOLDER` stands for the server's folder.
    pub(crate) lines: &'a [&'a str],
    /// Further variables that its sessions have.
    pub(crate) variables: &'a str,
    /// Programs that are hidden from it and all that it starts, in a mount namespace of its own.
    pub(crate) hidden: &'a [&'a str],
    /// RSA keys for host and user too; making them takes a second or two.
    pub(crate) rsa: bool,
}

impl Server {
    /// None, with a word, where there is no sshd or we are not root.
    pub(crate) fn start() -> Option<Self> {
        Self::with(&Setup::default())
    }

    pub(crate) fn with(setup: &Setup<'_>) -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.exists() || !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root and /usr/sbin/sshd");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for (key, kind, passphrase) in [
            ("host", "ed25519", ""),
            ("user", "ed25519", ""),
            ("other", "ed25519", ""),
            ("other-host", "ed25519", ""),
            ("locked", "ed25519", "a passphrase"),
            ("host-rsa", "rsa", ""),
            ("user-rsa", "rsa", ""),
        ] {
            if kind == "rsa" && !setup.rsa {
                continue;
            }
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", kind, "-N", passphrase, "-C", "", "-f", &at(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let users = if setup.rsa { &["user.pub", "user-rsa.pub"][..] } else { &["user.pub"] };
        let authorized: String = users.iter().map(|k| std::fs::read_to_string(at(k)).unwrap()).collect();
        std::fs::write(at("authorized_keys"), authorized).unwrap();
        // sshd wants this folder even when it does not need it.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let (namespace, address) = setup.namespace.unzip();
        let address = address.unwrap_or("127.0.0.1").to_owned();
        let port = if namespace.is_some() { 2222 } else { free_port() };
        let mut config = String::new();
        let mut lines = vec![
            format!("Port {port}"),
            format!("ListenAddress {address}"),
            format!("HostKey {}", at("host")),
            format!("AuthorizedKeysFile {}", at("authorized_keys")),
            format!("PidFile {}", at("pid-file")),
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
            "PasswordAuthentication no".to_owned(),
            // A folder without start-up files of a shell: what stands in them would be part of every test.
            format!("SetEnv HOME=FOLDER {}", setup.variables).replace("FOLDER", &at("")),
            // Careful administrators ask from their side too; and a session does not outlive its test.
            "ClientAliveInterval 1".to_owned(),
            "ClientAliveCountMax 3".to_owned(),
        ];
        lines.extend(setup.rsa.then(|| format!("HostKey {}", at("host-rsa"))));
        lines.extend(setup.lines.iter().map(|l| l.replace("FOLDER", &at(""))));
        for line in lines {
            writeln!(config, "{line}").unwrap();
        }
        std::fs::write(at("config"), config).unwrap();
        let mut command = match namespace {
            Some(name) => {
                let mut c = Command::new("ip");
                c.args(["netns", "exec", name]).arg(sshd);
                c
            }
            None if setup.hidden.is_empty() => Command::new(sshd),
            None => {
                let hide = "none=$1; shift; while [ \"$1\" != -- ]; do mount --bind \"$none\" \"$1\" || exit 1; \
                            shift; done; shift; exec \"$@\"";
                std::fs::write(at("none"), "").unwrap();
                let mut c = Command::new("unshare");
                c.args(["-m", "/bin/sh", "-c", hide, "hide", &at("none")])
                    .args(setup.hidden)
                    .arg("--")
                    .arg(sshd);
                c
            }
        };
        let log = std::fs::File::create(at("log")).unwrap();
        let process = command
            .args(["-D", "-e", "-f", &at("config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self { folder, address, port, process };
        server.known_hosts("known_hosts", &server.line("host", port));
        let end = Instant::now() + Duration::from_secs(20);
        while !std::fs::read_to_string(server.folder().join("log")).unwrap().contains("Server listening") {
            assert!(Instant::now() < end, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A line of known_hosts: that key for our address and a port.
    fn line(&self, key: &str, port: u16) -> String {
        let public = std::fs::read_to_string(self.folder().join(format!("{key}.pub"))).unwrap();
        format!("[{}]:{port} {public}", self.address)
    }

    /// Writes a file and gives its path.
    pub(crate) fn known_hosts(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A file that knows us by that key.
    pub(crate) fn known_by(&self, key: &str, before: &str) -> PathBuf {
        self.known_hosts(&format!("known-by-{key}"), &(before.to_owned() + &self.line(key, self.port)))
    }

    /// Another key file of ours.
    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// One host, `h1`, that is this server, with something changed.
    pub(crate) fn inventory_with(&self, change: impl FnOnce(&mut Inventory)) -> Inventory {
        let mut inventory = self.inventory();
        change(&mut inventory);
        inventory
    }

    /// One host, `h1`, that is this server.
    pub(crate) fn inventory(&self) -> Inventory {
        let host = Host {
            name: "h1".to_owned(),
            rack: "a".to_owned(),
            roles: Vec::new(),
            ssh: Ssh {
                address: self.address.clone(),
                port: self.port,
                user: "root".to_owned(),
                key: Some(self.folder().join("user")),
                sudo: false,
            },
            addresses: BTreeMap::new(),
            node: None,
            pods: Vec::new(),
        };
        Inventory {
            lab: "loopback".to_owned(),
            folder: self.folder().to_owned(),
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
            racks: vec![Rack { name: "a".to_owned(), hosts: vec![host] }],
            protected: Vec::new(),
            known_hosts: Some(self.folder().join("known_hosts")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port of loopback on which nobody listens.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
