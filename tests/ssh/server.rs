//! A real sshd on loopback, for one test.

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
    port: u16,
    process: Child,
}

impl Server {
    /// None, with a word, where there is no sshd or we are not root.
    pub(crate) fn start() -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.exists() || !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root and /usr/sbin/sshd");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user", "other", "other-host"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &at(key)])
                .status();
            assert!(made.unwrap().success());
        }
        std::fs::copy(at("user.pub"), at("authorized_keys")).unwrap();
        // sshd wants this folder even when it does not need it.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let port = free_port();
        let mut config = String::new();
        let lines = [
            format!("Port {port}"),
            "ListenAddress 127.0.0.1".to_owned(),
            format!("HostKey {}", at("host")),
            format!("AuthorizedKeysFile {}", at("authorized_keys")),
            format!("PidFile {}", at("pid-file")),
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
            "PasswordAuthentication no".to_owned(),
        ];
        for line in lines {
            writeln!(config, "{line}").unwrap();
        }
        std::fs::write(at("config"), config).unwrap();
        let process = Command::new(sshd)
            .args(["-D", "-e", "-f", &at("config")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { folder, port, process };
        server.known_hosts("known_hosts", &server.line("host", port));
        let end = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn line(&self, key: &str, port: u16) -> String {
        let public = std::fs::read_to_string(self.folder().join(format!("{key}.pub"))).unwrap();
        format!("[127.0.0.1]:{port} {public}")
    }

    /// Writes a file and gives its path.
    pub(crate) fn known_hosts(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn known_hosts_of_another(&self) -> PathBuf {
        self.known_hosts("another", &self.line("other-host", self.port))
    }

    /// Adds the host's key for a further port.
    pub(crate) fn know(&self, port: u16) {
        let both = self.line("host", self.port) + &self.line("host", port);
        self.known_hosts("known_hosts", &both);
    }

    pub(crate) fn other_key(&self) -> PathBuf {
        self.folder().join("other")
    }

    pub(crate) fn closed_port(&self) -> u16 {
        free_port()
    }

    /// One host, `h1`, that is this server.
    pub(crate) fn inventory(&self) -> Inventory {
        let host = Host {
            name: "h1".to_owned(),
            rack: "a".to_owned(),
            roles: Vec::new(),
            ssh: Ssh {
                address: "127.0.0.1".to_owned(),
                port: self.port,
                user: "root".to_owned(),
                key: Some(self.folder().join("user")),
                sudo: false,
            },
            addresses: BTreeMap::new(),
            node: None,
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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
