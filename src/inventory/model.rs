//! The inventory's model, after validation: every name is unique, every reference resolves.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::fault::address::Block;

/// A lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The lab's name.
    pub lab: String,
    /// The folder of the inventory file: relative paths start here.
    pub folder: PathBuf,
    /// A network namespace of this machine (a name under `/run/netns`) that the controller enters first.
    pub namespace: Option<String>,
    /// How to reach Kubernetes.
    pub kubernetes: Kubernetes,
    /// The networks, in order.
    pub networks: Vec<Network>,
    /// The racks, in order.
    pub racks: Vec<Rack>,
    /// Addresses that no fault may match, beside the controller's own.
    pub protected: Vec<IpAddr>,
    /// Known host keys, in OpenSSH's `known_hosts` format.
    pub known_hosts: Option<PathBuf>,
}

/// How to reach Kubernetes, and how it was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubernetes {
    /// kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// `systemd`, `kubeadm`, `k3s`, `rke2`, `kubespray`.
    pub distribution: String,
    /// The `kubectl` to use; by default the one in `PATH`.
    pub kubectl: Option<PathBuf>,
    /// Image of the heartbeat containers: needs `/bin/sh`, `date`, `cat`, `sleep` with fractions.
    pub image: String,
    /// One API server for each control-plane host: host name → URL as the controller reaches it.
    pub api_servers: BTreeMap<String, String>,
    /// How `etcdctl` is called on an etcd host: environment assignments and the command.
    pub etcdctl: Option<String>,
}

/// What a network is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// How the controller comes in; no fault may touch it.
    Management,
    /// What faults cut.
    Data,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
}

/// A rack: what fails together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rack {
    /// Its name.
    pub name: String,
    /// Its hosts, in order.
    pub hosts: Vec<Host>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, unique in the lab.
    pub name: String,
    /// The rack it stands in.
    pub rack: String,
    /// `control-plane`, `worker`, `etcd`, `load-balancer` ...
    pub roles: Vec<String>,
    /// How to log in.
    pub ssh: Ssh,
    /// Addresses by network name, v4 and v6.
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// The node's name in Kubernetes, if it is one and its name differs.
    pub node: Option<String>,
    /// Address ranges of its pods, where they are routed; empty: as its node tells.
    pub pods: Vec<Block>,
}

/// How to log in to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    /// Address or name.
    pub address: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Private key file; absent: the agent.
    pub key: Option<PathBuf>,
    /// Whether scripts go through `sudo -n`.
    pub sudo: bool,
}

impl Inventory {
    /// All hosts, rack by rack.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.racks.iter().flat_map(|r| &r.hosts)
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts().find(|h| h.name == name)
    }
}

impl Host {
    /// Whether it has that role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|r| r == role)
    }

    /// The node's name in Kubernetes.
    #[must_use]
    pub fn node_name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.name)
    }
}
