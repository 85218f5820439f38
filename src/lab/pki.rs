//! Certificates and kubeconfigs, all by `kubeadm init phase`, so that they are what kubeadm would have made.
//!
//! kubeadm changes its root to a machine's layer before that machine boots; it is one static binary and needs no other file there.
//!
//! # Invariants
//! * With etcd outside the cluster kubeadm skips every etcd certificate; they are made with the configuration of a
//!   local etcd, in a root folder of our own that also holds the shared authorities.
//! * The key of etcd's authority leaves an etcd machine's layer before the machine boots.

use std::path::{Path, PathBuf};

use super::call::Call;
use super::disk;
use super::error::{During as _, Failure};
use super::files::{EtcdForm, kubeadm};
use super::topology::{MACHINES, Machine, Role, balancer, with_role};

/// The folder of the shared authorities, and the kubeadm that makes certificates in it.
#[derive(Debug, Clone)]
pub(super) struct Pki {
    /// `kubeadm`.
    pub program: PathBuf,
    /// Its version, as `v1.34.4`.
    pub version: String,
    /// The root folder of the shared authorities.
    pub folder: PathBuf,
}

const CONFIG: &str = "/etc/kubernetes/kubeadm.yaml";
const SHARED: [&str; 8] = [
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "sa.key",
    "sa.pub",
    "apiserver-etcd-client.crt",
    "apiserver-etcd-client.key",
];

impl Pki {
    /// Makes the shared authorities and the administrators' kubeconfigs, if they are not there yet.
    pub(super) fn make(&self) -> Result<(), Failure> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let partial = self.folder.with_extension("partial");
        disk::remove(&partial)?;
        let first = MACHINES[0];
        self.configure(&partial, first, EtcdForm::Local)?;
        self.phase(&partial, "certs all")?;
        self.configure(&partial, first, EtcdForm::External)?;
        self.phase(&partial, "kubeconfig admin")?;
        self.phase(&partial, "kubeconfig super-admin")?;
        disk::rename(&partial, &self.folder)
    }

    /// Writes an administrator's kubeconfig with another server: `kind` is `admin` or `super-admin`.
    pub(super) fn kubeconfig(&self, kind: &str, server: &str, to: &Path) -> Result<(), Failure> {
        let text = disk::read(&self.folder.join(format!("etc/kubernetes/{kind}.conf")))?;
        disk::write(to, with_server(&text, server), 0o600)
    }

    /// Puts what a machine needs into its layer.
    pub(super) fn equip(&self, machine: Machine, layer: &Path) -> Result<(), Failure> {
        match machine.role {
            Role::ControlPlane => self.control_plane(machine, layer),
            Role::Worker => self.worker(machine, layer),
            Role::Etcd => self.etcd(machine, layer),
            Role::Balancer => Ok(()),
        }
    }

    fn control_plane(&self, machine: Machine, layer: &Path) -> Result<(), Failure> {
        let (from, to) = (self.folder.join("etc/kubernetes/pki"), layer.join("etc/kubernetes/pki"));
        for name in SHARED {
            disk::copy(&from.join(name), &to.join(name))?;
        }
        disk::copy(&from.join("etcd/ca.crt"), &to.join("etcd/ca.crt"))?;
        self.configure(layer, machine, EtcdForm::External)?;
        self.phase(layer, "certs all")?;
        self.phase(layer, "kubeconfig all")?;
        // A systemd master runs no kubelet.
        disk::remove(&layer.join("etc/kubernetes/kubelet.conf"))
    }

    fn worker(&self, machine: Machine, layer: &Path) -> Result<(), Failure> {
        disk::copy(&self.folder.join("etc/kubernetes/pki/ca.crt"), &layer.join("etc/kubernetes/pki/ca.crt"))?;
        let config = format!("/etc/kubernetes/kubeadm-{}.yaml", machine.name);
        let text = kubeadm(machine, &self.version, EtcdForm::External);
        disk::write(&self.folder.join(&config[1..]), &text, 0o644)?;
        let user = format!("--client-name=system:node:{}", machine.name);
        let args = ["kubeconfig", "user", &user, "--org=system:nodes", "--config", &config];
        let text = self.call(&self.folder, &args)?;
        disk::write(&layer.join("etc/kubernetes/kubelet.conf"), &text, 0o600)
    }

    fn etcd(&self, machine: Machine, layer: &Path) -> Result<(), Failure> {
        let from = self.folder.join("etc/kubernetes/pki/etcd");
        let made = layer.join("etc/kubernetes/pki/etcd");
        for name in ["ca.crt", "ca.key", "healthcheck-client.crt", "healthcheck-client.key"] {
            disk::copy(&from.join(name), &made.join(name))?;
        }
        self.configure(layer, machine, EtcdForm::Local)?;
        self.phase(layer, "certs etcd-server")?;
        self.phase(layer, "certs etcd-peer")?;
        disk::remove(&made.join("ca.key"))?;
        disk::rename(&made, &layer.join("etc/etcd/pki"))?;
        disk::remove(&layer.join("etc/kubernetes"))
    }

    fn configure(&self, root: &Path, machine: Machine, form: EtcdForm) -> Result<(), Failure> {
        // kubeadm writes temporary files.
        disk::folder(&root.join("tmp"))?;
        disk::write(&root.join(&CONFIG[1..]), kubeadm(machine, &self.version, form), 0o644)
    }

    fn phase(&self, root: &Path, phase: &str) -> Result<(), Failure> {
        let mut args = vec!["init", "phase"];
        args.extend(phase.split(' '));
        args.extend(["--config", CONFIG]);
        self.call(root, &args).map(drop)
    }

    fn call(&self, root: &Path, args: &[&str]) -> Result<String, Failure> {
        let root = format!("--rootfs={}", root.display());
        let all = std::iter::once(root.as_str()).chain(args.iter().copied());
        Call::new(&self.program, all).run().during(|| "making certificates".to_owned())
    }
}

/// The URL of an API server, or of the load balancer, for the controller.
pub(super) fn server(machine: Machine, single_homed: bool) -> String {
    format!("https://{}:6443", machine.seat(single_homed))
}

/// All machines that answer as an API server: the load balancer, then the masters.
pub(super) fn servers() -> impl Iterator<Item = Machine> {
    [balancer()].into_iter().chain(with_role(Role::ControlPlane))
}

/// A kubeconfig's text with another server.
fn with_server(text: &str, server: &str) -> String {
    text.lines()
        .map(|line| match line.find("server: ") {
            Some(at) => format!("{}server: {server}\n", &line[..at]),
            None => format!("{line}\n"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_gets_another_server() {
        let text = "clusters:\n- cluster:\n    server: https://198.18.3.40:6443\n  name: lab\n";
        assert_eq!(
            with_server(text, "https://198.18.0.11:6443"),
            "clusters:\n- cluster:\n    server: https://198.18.0.11:6443\n  name: lab\n"
        );
    }
}
