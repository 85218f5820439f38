//! An inventory file: read, checked as a whole, and turned into the model.
//!
//! # Invariants
//! * Lists with `name:`, not maps, because in a map a second host of the same name could silently win.
//! * All flaws are found in one go, each with its line; none is repaired by guessing.
//! * Relative paths start at the file's own folder, `~/` at the home directory.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::file::{HostFile, InventoryFile, KubernetesFile, SpannedName};
use super::model::{Host, Inventory, Kubernetes, Network, Purpose, Rack, Ssh};
use crate::fault::address::Block;
use crate::yaml::{Flaw, Source, read};

/// Roles that rackrift gives a meaning to; others begin with `x-`.
pub const ROLES: [&str; 4] = ["control-plane", "worker", "etcd", "load-balancer"];

/// Most flaws that are shown at once.
const SHOWN: usize = 10;

/// Everything that is wrong with an inventory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct InventoryError(pub Vec<Flaw>);

impl fmt::Display for InventoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, flaw) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{flaw}", if i > 0 { "\n" } else { "" })?;
        }
        if self.0.len() > SHOWN {
            write!(f, "\n... and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// Reads an inventory file.
///
/// # Errors
/// All flaws, each with file, line, column and the line itself.
pub fn load(path: &Path) -> Result<Inventory, InventoryError> {
    let text = read(path).map_err(|flaw| InventoryError(vec![flaw]))?;
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
        _ => PathBuf::from("."),
    };
    parse(&text, &path.display().to_string(), &folder)
}

/// Reads an inventory's text. `origin` names it in errors; relative paths in it start at `folder`.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, origin: &str, folder: &Path) -> Result<Inventory, InventoryError> {
    let source = Source { origin, text };
    let file: InventoryFile = source.parse().map_err(|flaw| InventoryError(vec![flaw]))?;
    let mut check = Check { source, folder, flaws: Vec::new() };
    let inventory = check.inventory(file);
    if check.flaws.is_empty() { Ok(inventory) } else { Err(InventoryError(check.flaws)) }
}

struct Check<'a> {
    source: Source<'a>,
    folder: &'a Path,
    flaws: Vec<Flaw>,
}

impl Check<'_> {
    fn flaw<T>(&mut self, at: &serde_saphyr::Spanned<T>, message: String, advice: impl Into<String>) {
        self.flaws.push(self.source.flaw(at, message, advice));
    }

    fn inventory(&mut self, file: InventoryFile) -> Inventory {
        self.name(&file.lab, "lab");
        let networks: Vec<Network> = file
            .networks
            .iter()
            .map(|n| Network { name: n.name.value.clone(), purpose: n.purpose.into() })
            .collect();
        self.unique(file.networks.iter().map(|n| &n.name), "network");
        self.unique(file.racks.iter().map(|r| &r.name), "rack");
        self.unique(file.racks.iter().flat_map(|r| &r.hosts).map(|h| &h.name), "host");
        self.one_address_one_host(file.racks.iter().flat_map(|r| &r.hosts));
        self.ranges_of_one_host(file.racks.iter().flat_map(|r| &r.hosts));
        if !networks.iter().any(|n| n.purpose == Purpose::Data) {
            let advice = "Add one under `networks:`, such as {name: data, purpose: data}.";
            self.flaws.push(
                self.source.flaw_of_all(
                    "no network has the purpose `data`: faults would have nothing to cut",
                    advice,
                ),
            );
        }
        let kubernetes = self.kubernetes(&file);
        let racks: Vec<Rack> = file
            .racks
            .into_iter()
            .map(|r| {
                let rack = r.name.value;
                let hosts = r.hosts.into_iter().map(|h| self.host(h, &rack, &networks)).collect();
                Rack { name: rack, hosts }
            })
            .collect();
        if racks.iter().all(|r| r.hosts.is_empty()) {
            self.flaws.push(self.source.flaw_of_all("no rack has a host", "Add hosts under `racks:`."));
        }
        Inventory {
            lab: file.lab.value,
            folder: self.folder.to_owned(),
            namespace: file.namespace.map(|n| {
                self.name(&n, "network namespace");
                n.value
            }),
            kubernetes,
            networks,
            racks,
            protected: file.protected,
            known_hosts: file.known_hosts.map(|p| self.path(&p)),
        }
    }

    fn kubernetes(&mut self, file: &InventoryFile) -> Kubernetes {
        let k: &KubernetesFile = &file.kubernetes;
        let mut api_servers = BTreeMap::new();
        for (host, url) in &k.api_servers {
            let roles =
                file.racks.iter().flat_map(|r| &r.hosts).find(|h| h.name.value == *host).map(|h| &h.roles);
            match roles {
                None => self.flaw(
                    url,
                    format!("`api_servers` names `{host}`, which is no host of this inventory"),
                    "",
                ),
                Some(roles) if !roles.iter().any(|r| r.value == "control-plane") => {
                    self.flaw(
                        url,
                        format!("`api_servers` names `{host}`, which has not the role control-plane"),
                        "",
                    );
                }
                Some(_) => {}
            }
            if !url.value.starts_with("https://") {
                let advice = "Write it as the controller reaches it, such as https://198.18.0.11:6443.";
                self.flaw(url, format!("`{}` is no https:// address of an API server", url.value), advice);
            }
            api_servers.insert(host.clone(), url.value.clone());
        }
        Kubernetes {
            kubeconfig: self.path(&k.kubeconfig),
            distribution: k.distribution.clone(),
            kubectl: k.kubectl.as_deref().map(|p| self.path(p)),
            image: k.image.clone(),
            api_servers,
            etcdctl: k.etcdctl.clone(),
        }
    }

    fn host(&mut self, h: HostFile, rack: &str, networks: &[Network]) -> Host {
        for role in &h.roles {
            if !ROLES.contains(&role.value.as_str()) && !role.value.starts_with("x-") {
                let advice = format!("Roles are {}; one of your own begins with `x-`.", ROLES.join(", "));
                self.flaw(role, format!("there is no role `{}`", role.value), advice);
            }
        }
        let mut addresses = BTreeMap::new();
        for (network, list) in h.addresses {
            if !networks.iter().any(|n| n.name == network) {
                let known: Vec<&str> = networks.iter().map(|n| n.name.as_str()).collect();
                let advice = format!("Networks are: {}.", known.join(", "));
                match list.first() {
                    Some(at) => self.flaw(at, format!("there is no network `{network}`"), advice),
                    None => self.flaw(&h.name, format!("there is no network `{network}`"), advice),
                }
            }
            addresses.insert(network, list.into_iter().map(|a| a.value).collect());
        }
        Host {
            name: h.name.value,
            rack: rack.to_owned(),
            roles: h.roles.into_iter().map(|r| r.value).collect(),
            ssh: Ssh {
                address: h.ssh.address,
                port: h.ssh.port,
                user: h.ssh.user,
                key: h.ssh.key.map(|k| self.path(&k)),
                sudo: h.ssh.sudo,
            },
            addresses,
            node: h.node,
            pods: h.pods.into_iter().map(|b| b.value).collect(),
        }
    }

    /// A name as it may stand in file names, chains' comments and selectors.
    fn name(&mut self, name: &SpannedName, what: &str) {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let v = &name.value;
        if v.is_empty() || v.len() > 63 || !v.chars().all(fits) || v.starts_with(['.', '-']) {
            let advice = "Names are 1 to 63 of a-z A-Z 0-9 . _ - and begin with a letter or digit.";
            self.flaw(name, format!("`{v}` cannot be the name of a {what}"), advice);
        }
    }

    fn unique<'n>(&mut self, names: impl Iterator<Item = &'n SpannedName>, what: &str) {
        let mut first: HashMap<&str, u64> = HashMap::new();
        for name in names {
            self.name(name, what);
            match first.get(name.value.as_str()) {
                Some(line) => {
                    let message = format!("{what} `{}` is there twice: first in line {line}", name.value);
                    self.flaw(name, message, "Rename or remove one of them.");
                }
                None => {
                    first.insert(&name.value, name.referenced.line());
                }
            }
        }
    }

    /// Two hosts with one address: a fault on one would hit the other.
    fn one_address_one_host<'h>(&mut self, hosts: impl Iterator<Item = &'h HostFile>) {
        let mut owner: HashMap<(&str, IpAddr), &str> = HashMap::new();
        for host in hosts {
            for (network, list) in &host.addresses {
                for address in list {
                    if let Some(other) = owner.insert((network, address.value), &host.name.value) {
                        let message = format!("{} is the address of `{other}` already", address.value);
                        self.flaw(address, message, "Each address belongs to one host, once.");
                    }
                }
            }
        }
    }

    /// A range of pods that holds what belongs to another host: a cut would take that too.
    fn ranges_of_one_host<'h>(&mut self, hosts: impl Iterator<Item = &'h HostFile> + Clone) {
        for host in hosts.clone() {
            for range in &host.pods {
                for other in hosts.clone().filter(|o| o.name.value != host.name.value) {
                    let theirs = other.addresses.values().flatten().map(|a| Block::single(a.value));
                    let both =
                        theirs.chain(other.pods.iter().map(|b| b.value)).find(|b| b.meets(range.value));
                    if let Some(both) = both {
                        let message =
                            format!("{} has addresses of `{}` in it: {both}", range.value, other.name.value);
                        self.flaw(range, message, "Each address belongs to one host.");
                    }
                }
            }
        }
    }

    fn path(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), std::env::var_os("HOME")) {
            (Ok(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.folder.join(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(text: &str) -> String {
        parse(text, "lab.yaml", Path::new("/labs")).unwrap_err().to_string()
    }

    const HEAD: &str =
        "lab: x\nkubernetes: {kubeconfig: admin.conf}\nnetworks: [{name: data, purpose: data}]\nracks:\n";

    #[test]
    fn shipped_inventories_are_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "yaml") {
                load(&path).unwrap();
                seen += 1;
            }
        }
        assert!(seen >= 2, "{seen} inventories");
    }

    #[test]
    fn paths_start_at_the_files_folder() {
        let text = format!("{HEAD}  - {{name: a, hosts: [{{name: m1, ssh: {{address: m1, key: id}}}}]}}\n");
        let inventory = parse(&text, "lab.yaml", Path::new("/labs")).unwrap();
        assert_eq!(inventory.kubernetes.kubeconfig, Path::new("/labs/admin.conf"));
        assert_eq!(inventory.hosts().next().unwrap().ssh.key.as_deref(), Some(Path::new("/labs/id")));
    }

    #[test]
    fn messages() {
        let host = |line: &str| format!("{HEAD}  - name: a\n    hosts:\n{line}");
        let one = "      - {name: m1, roles: [control-plane], ssh: {address: m1}}\n";
        let cases = [
            host(&format!("{one}{one}")),
            host("      - {name: m1, roles: [contol-plane], ssh: {address: m1}}\n"),
            host("      - {name: m1, ssh: {address: m1}, addresses: {date: [198.18.1.1]}}\n"),
            host("      - {name: m1, ssh: {address: m1}, addresses: {data: [198.18.1.300]}}\n"),
            host("      - {name: m1, ssh: {address: m1}, adresses: {}}\n"),
            host("      - {name: m1, name: m2, ssh: {address: m1}}\n"),
            host("      - {name: m1}\n"),
            host("      - {name: 'm 1', ssh: {address: m1}}\n"),
            host(
                "      - {name: m1, ssh: {address: m1}, addresses: {data: [198.18.1.1]}}\n      \
                 - {name: m2, ssh: {address: m2}, addresses: {data: [198.18.1.1]}}\n",
            ),
            host(
                "      - {name: m1, ssh: {address: m1}, pods: [10.244.0.0/16, 10.244.1.0/33]}\n      \
                 - {name: m2, ssh: {address: m2}, pods: [10.244.1.0/24]}\n",
            ),
            host(
                "      - {name: m1, ssh: {address: m1}, pods: [10.244.0.0/16]}\n      \
                 - {name: m2, ssh: {address: m2}, pods: [10.244.1.0/24]}\n      \
                 - {name: m3, ssh: {address: m3}, addresses: {data: [10.244.3.1]}}\n",
            ),
            format!("{HEAD}  - {{name: a, hosts: []}}\n"),
            "lab: x\nkubernetes: {kubeconfig: a, api_servers: {m9: 'http://x'}}\nnetworks: []\nracks: []\n"
                .to_owned(),
            "lab: [\n".to_owned(),
            String::new(),
        ];
        let all: Vec<String> = cases.iter().map(|c| flaws(c)).collect();
        insta::assert_snapshot!(all.join("\n\n"));
    }

    #[test]
    fn unreadable_files() {
        let folder = tempfile::tempdir().unwrap();
        let absent = load(&folder.path().join("none.yaml")).unwrap_err().to_string();
        assert!(absent.contains("none.yaml: cannot be read"), "{absent}");
        let path = folder.path().join("binary.yaml");
        std::fs::write(&path, [0xff, 0xfe, 0]).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("is not UTF-8 text: byte 0"));
        std::fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("1048577 bytes are more than"));
    }
}
