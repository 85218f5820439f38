//! The inventory file as it is written; the JSON schema for editors comes from here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::model::Purpose;
use crate::fault::address::Block;

/// A name, and where it stands.
pub type SpannedName = Spanned<String>;

/// A lab: its racks, hosts, roles, networks and protected addresses.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InventoryFile {
    /// The lab's name.
    #[schemars(with = "String")]
    pub lab: SpannedName,
    /// A network namespace of this machine (a name under /run/netns) that the controller enters first.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub namespace: Option<SpannedName>,
    /// How to reach Kubernetes.
    pub kubernetes: KubernetesFile,
    /// The networks.
    pub networks: Vec<NetworkFile>,
    /// The racks: what fails together.
    pub racks: Vec<RackFile>,
    /// Addresses that no fault may match, beside the controller's own.
    #[serde(default)]
    pub protected: Vec<IpAddr>,
    /// Known host keys, in the format of OpenSSH's known_hosts.
    #[serde(default)]
    pub known_hosts: Option<PathBuf>,
}

/// How to reach Kubernetes, and how it was built.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesFile {
    /// kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// systemd, kubeadm, k3s, rke2 or kubespray.
    #[serde(default = "kubeadm")]
    pub distribution: String,
    /// The kubectl to use; by default the one in PATH.
    #[serde(default)]
    pub kubectl: Option<PathBuf>,
    /// Image of the heartbeat containers: needs /bin/sh, cat, date, and sleep with fractions.
    #[serde(default = "busybox")]
    pub image: String,
    /// The API server of each control-plane host: host's name to URL, as the controller reaches it.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub api_servers: BTreeMap<String, Spanned<String>>,
    /// How etcdctl is called on an etcd host: environment assignments and the command.
    #[serde(default)]
    pub etcdctl: Option<String>,
}

/// A network.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkFile {
    /// Its name.
    #[schemars(with = "String")]
    pub name: SpannedName,
    /// What it is for.
    pub purpose: PurposeFile,
}

/// What a network is for.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PurposeFile {
    /// How the controller comes in; no fault may touch it.
    Management,
    /// What faults cut.
    Data,
}

impl From<PurposeFile> for Purpose {
    fn from(purpose: PurposeFile) -> Self {
        match purpose {
            PurposeFile::Management => Self::Management,
            PurposeFile::Data => Self::Data,
        }
    }
}

/// A rack.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RackFile {
    /// Its name.
    #[schemars(with = "String")]
    pub name: SpannedName,
    /// Its hosts.
    pub hosts: Vec<HostFile>,
}

/// A host.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Its name, unique in the lab.
    #[schemars(with = "String")]
    pub name: SpannedName,
    /// control-plane, worker, etcd, load-balancer, or names of your own that begin with x-.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub roles: Vec<SpannedName>,
    /// How to log in.
    pub ssh: SshFile,
    /// Addresses by network's name, v4 and v6.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<IpAddr>>")]
    pub addresses: BTreeMap<String, Vec<Spanned<IpAddr>>>,
    /// The node's name in Kubernetes, if it is one and its name differs.
    #[serde(default)]
    pub node: Option<String>,
    /// Address ranges of its pods, v4 and v6, where the network routes them as they are; without it, those that its
    /// node tells of. Pods of an overlay travel under the host's own addresses and need none.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub pods: Vec<Spanned<Block>>,
}

/// How to log in to a host.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SshFile {
    /// Address or name.
    pub address: String,
    /// Port.
    #[serde(default = "ssh_port")]
    pub port: u16,
    /// User.
    #[serde(default = "root")]
    pub user: String,
    /// Private key file; absent: the agent.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Whether scripts go through sudo -n.
    #[serde(default)]
    pub sudo: bool,
}

fn kubeadm() -> String {
    "kubeadm".to_owned()
}

fn busybox() -> String {
    "busybox:stable".to_owned()
}

fn ssh_port() -> u16 {
    22
}

fn root() -> String {
    "root".to_owned()
}
