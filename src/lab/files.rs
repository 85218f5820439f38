//! The files of each machine beside the shared tree: what is written into its layer before it boots.

use std::net::Ipv4Addr;

use super::render::fill;
use super::settings::Settings;
use super::topology::{MACHINES, Machine, Rack, Role, SERVICES, balancer, with_role};

/// A file or link to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path in the machine, absolute.
    pub path: String,
    /// What it is.
    pub content: Content,
}

/// What an [`Entry`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A text file with its permission bits.
    Text(String, u32),
    /// A symbolic link.
    Link(String),
}

/// The image of the lab's pods.
pub(super) const IMAGE: &str = "lab.local/busybox:1";
/// Where a worker's image is, before it is imported.
pub(super) const IMAGE_FILE: &str = "/var/lib/lab/image.tar";

/// The files of a machine. `key`: the controller's public key; `id`: the machine id, 32 hex digits.
pub(super) fn files(machine: Machine, settings: &Settings, key: &str, id: &str) -> Vec<Entry> {
    let mut all = Files::default();
    all.text("/etc/hostname", format!("{}\n", machine.name));
    all.text("/etc/machine-id", format!("{id}\n"));
    all.text("/etc/hosts", hosts());
    all.text("/etc/resolv.conf", String::new());
    all.secret("/root/.ssh/authorized_keys", key.to_owned());
    all.text(
        "/etc/ssh/sshd_config.d/lab.conf",
        "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\nMaxStartups 200\nMaxSessions 100\n".to_owned(),
    );
    all.text("/etc/systemd/system.conf.d/lab.conf", include_str!("../../lab/config/system.conf").to_owned());
    all.text(
        "/etc/systemd/journald.conf.d/lab.conf",
        include_str!("../../lab/config/journald.conf").to_owned(),
    );
    let addresses = addresses(machine, settings.single_homed);
    all.program(
        "/usr/local/sbin/lab-net",
        fill(include_str!("../../lab/scripts/lab-net"), &[("addresses", &addresses)]),
    );
    all.unit("lab-net", include_str!("../../lab/units/lab-net.service").to_owned(), Start::AtBoot);
    match machine.role {
        Role::ControlPlane => control_plane(&mut all, machine, settings),
        Role::Worker => worker(&mut all, machine, settings),
        Role::Etcd => etcd(&mut all, machine),
        Role::Balancer => load_balancer(&mut all),
    }
    all.0
}

/// When a unit starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    AtBoot,
    Later,
}

#[derive(Default)]
struct Files(Vec<Entry>);

impl Files {
    fn add(&mut self, path: &str, content: Content) {
        self.0.push(Entry { path: path.to_owned(), content });
    }

    fn text(&mut self, path: &str, text: String) {
        self.add(path, Content::Text(text, 0o644));
    }

    fn secret(&mut self, path: &str, text: String) {
        self.add(path, Content::Text(text, 0o600));
    }

    fn program(&mut self, path: &str, text: String) {
        self.add(path, Content::Text(text, 0o755));
    }

    fn link(&mut self, path: &str, target: &str) {
        self.add(path, Content::Link(target.to_owned()));
    }

    fn unit(&mut self, name: &str, text: String, start: Start) {
        let path = format!("/etc/systemd/system/{name}.service");
        if start == Start::AtBoot {
            self.link(&format!("/etc/systemd/system/multi-user.target.wants/{name}.service"), &path);
        }
        self.text(&path, text);
    }
}

fn hosts() -> String {
    let mut text = "127.0.0.1 localhost\n".to_owned();
    for m in MACHINES {
        text.push_str(&format!("{} {}\n", m.data(), m.name));
    }
    text
}

/// The lines of `lab-net` that give a machine its addresses. IPv6 is added where the kernel has it, without duplicate
/// address detection, which would keep the address unusable for a second.
fn addresses(machine: Machine, single_homed: bool) -> String {
    let rack = machine.rack;
    let mut lines = vec![
        format!("ip addr replace {}/24 dev host0", machine.data()),
        "ip link set host0 up".to_owned(),
        format!("ip route replace default via {}", rack.gateway()),
        "if [ -e /proc/sys/net/ipv6 ]; then".to_owned(),
        format!("  ip -6 addr replace {}/64 dev host0 nodad", machine.data6()),
        format!("  ip -6 route replace default via {} dev host0", rack.gateway6()),
        "fi".to_owned(),
    ];
    if !single_homed {
        lines.push(format!("ip addr replace {}/24 dev mgmt0", machine.management()));
        lines.push("ip link set mgmt0 up".to_owned());
    }
    lines.join("\n")
}

/// The URL list of etcd's clients.
fn etcd_servers() -> String {
    with_role(Role::Etcd).map(|e| format!("https://{}:2379", e.data())).collect::<Vec<_>>().join(",")
}

fn control_plane(all: &mut Files, machine: Machine, settings: &Settings) {
    // kube-controller-manager and kube-scheduler of the second master start once the first one's hold the leases,
    // as a second control plane joins later; from then on they start at boot.
    let electing = if machine.rack == Rack::A { Start::AtBoot } else { Start::Later };
    let (data, toleration) = (machine.data().to_string(), settings.toleration.to_string());
    let apiserver = fill(
        include_str!("../../lab/units/kube-apiserver.service"),
        &[
            ("data", &data),
            ("toleration", &toleration),
            ("etcd_servers", &etcd_servers()),
            ("services", SERVICES),
        ],
    );
    all.unit("kube-apiserver", apiserver, Start::AtBoot);
    let grace = format!("{}s", settings.grace);
    let manager = fill(
        include_str!("../../lab/units/kube-controller-manager.service"),
        &[("grace", &grace), ("services", SERVICES)],
    );
    all.unit("kube-controller-manager", manager, electing);
    all.unit("kube-scheduler", include_str!("../../lab/units/kube-scheduler.service").to_owned(), electing);
    all.link("/usr/local/bin/kubectl", "/opt/kubernetes/kubectl");
}

fn worker(all: &mut Files, machine: Machine, settings: &Settings) {
    let (data, pods) = (machine.data().to_string(), machine.pods().unwrap_or_default());
    all.program("/usr/local/sbin/lab-cgroups", include_str!("../../lab/scripts/lab-cgroups").to_owned());
    all.unit("lab-cgroups", include_str!("../../lab/units/lab-cgroups.service").to_owned(), Start::AtBoot);
    all.program(
        "/usr/local/sbin/lab-image",
        fill(include_str!("../../lab/scripts/lab-image"), &[("image", IMAGE), ("file", IMAGE_FILE)]),
    );
    all.unit("lab-image", include_str!("../../lab/units/lab-image.service").to_owned(), Start::AtBoot);
    all.text("/etc/containerd/config.toml", include_str!("../../lab/config/containerd.toml").to_owned());
    all.link(
        "/etc/systemd/system/multi-user.target.wants/containerd.service",
        "/lib/systemd/system/containerd.service",
    );
    all.text(
        "/etc/cni/net.d/10-lab.conflist",
        fill(include_str!("../../lab/config/10-lab.conflist"), &[("pods", &pods)]),
    );
    let lease = settings.lease.to_string();
    all.text(
        "/etc/kubernetes/kubelet.yaml",
        fill(include_str!("../../lab/config/kubelet.yaml"), &[("lease", &lease)]),
    );
    let kubelet = fill(
        include_str!("../../lab/units/kubelet.service"),
        &[("name", machine.name), ("data", &data), ("rack", machine.rack.name())],
    );
    all.unit("kubelet", kubelet, Start::AtBoot);
    all.link("/usr/local/bin/kubectl", "/opt/kubernetes/kubectl");
}

fn etcd(all: &mut Files, machine: Machine) {
    let members: Vec<String> =
        with_role(Role::Etcd).map(|e| format!("{}=https://{}:2380", e.name, e.data())).collect();
    all.text(
        "/etc/etcd/etcd.env",
        fill(
            include_str!("../../lab/config/etcd.env"),
            &[("name", machine.name), ("data", &machine.data().to_string()), ("members", &members.join(","))],
        ),
    );
    all.unit("etcd", include_str!("../../lab/units/etcd.service").to_owned(), Start::AtBoot);
    all.link("/usr/local/bin/etcd", "/opt/etcd/etcd");
    all.link("/usr/local/bin/etcdctl", "/opt/etcd/etcdctl");
}

fn load_balancer(all: &mut Files) {
    let servers: Vec<String> =
        with_role(Role::ControlPlane).map(|m| format!("  server {} {}:6443", m.name, m.data())).collect();
    all.text(
        "/etc/haproxy/haproxy.cfg",
        fill(include_str!("../../lab/config/haproxy.cfg"), &[("servers", &servers.join("\n"))]),
    );
    all.text("/etc/systemd/system/haproxy.service.d/lab.conf", "[Unit]\nAfter=lab-net.service\n".to_owned());
    all.link(
        "/etc/systemd/system/multi-user.target.wants/haproxy.service",
        "/lib/systemd/system/haproxy.service",
    );
}

/// Where the certificates of a kubeadm configuration for etcd come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EtcdForm {
    /// An etcd of its own: with this form kubeadm makes etcd's certificates, with the other it skips them all.
    Local,
    /// The three etcd machines.
    External,
}

/// kubeadm's configuration of a machine. `version`: as `v1.34.4`; without it kubeadm would ask the internet.
pub(super) fn kubeadm(machine: Machine, version: &str, form: EtcdForm) -> String {
    let data = machine.data().to_string();
    let etcd = match form {
        EtcdForm::Local => {
            let names = format!("[{}, {}, localhost, 127.0.0.1]", machine.name, data);
            format!("local: {{serverCertSANs: {names}, peerCertSANs: {names}}}")
        }
        EtcdForm::External => format!(
            "external: {{endpoints: [{}], caFile: /etc/kubernetes/pki/etcd/ca.crt, certFile: \
             /etc/kubernetes/pki/apiserver-etcd-client.crt, keyFile: \
             /etc/kubernetes/pki/apiserver-etcd-client.key}}",
            etcd_servers()
        ),
    };
    let mut names: Vec<String> = vec!["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
    for m in with_role(Role::ControlPlane).chain([balancer()]) {
        names.extend([m.name.to_owned(), m.data().to_string(), m.management().to_string()]);
    }
    fill(
        include_str!("../../lab/config/kubeadm.yaml"),
        &[
            ("data", &data),
            ("name", machine.name),
            ("version", version),
            ("balancer", &balancer().data().to_string()),
            ("services", SERVICES),
            ("names", &names.join(", ")),
            ("etcd", &etcd),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(machine: &str, settings: &Settings) -> String {
        let machine = Machine::named(machine).expect("a machine of the lab");
        files(machine, settings, "ssh-ed25519 KEY lab\n", "0123456789abcdef0123456789abcdef")
            .into_iter()
            .map(|e| match e.content {
                Content::Text(text, mode) => format!("== {} {mode:o}\n{text}", e.path),
                Content::Link(target) => format!("== {} -> {target}\n", e.path),
            })
            .collect()
    }

    #[test]
    fn files_of_each_role() {
        let settings = Settings::default();
        for name in ["m1", "w2", "e3", "lb"] {
            insta::assert_snapshot!(format!("files_{name}"), shown(name, &settings));
        }
    }

    #[test]
    fn a_single_homed_machine_has_no_management_address() {
        let both = shown("m2", &Settings::default());
        let one = shown("m2", &Settings { single_homed: true, ..Settings::default() });
        assert!(both.contains("198.18.0.12/24 dev mgmt0"));
        assert!(!one.contains("mgmt0"));
    }

    #[test]
    fn only_the_first_master_campaigns_at_boot() {
        let wants = "multi-user.target.wants/kube-scheduler.service";
        let settings = Settings::default();
        assert!(shown("m1", &settings).contains(wants));
        assert!(!shown("m2", &settings).contains(wants));
    }

    #[test]
    fn kubeadm_configurations() {
        let m1 = Machine::named("m1").expect("a machine of the lab");
        let e2 = Machine::named("e2").expect("a machine of the lab");
        insta::assert_snapshot!(format!(
            "{}\n######\n{}",
            kubeadm(m1, "v1.34.4", EtcdForm::External),
            kubeadm(e2, "v1.34.4", EtcdForm::Local)
        ));
    }
}
