//! Writes the lab's inventory: the same file that a user would write for a lab of bare metal.

use std::fmt::Write as _;
use std::path::Path;

use super::error::LabError;
use super::files::IMAGE;
use super::pki::server;
use super::settings::Settings;
use super::site::Site;
use super::topology::{CONTROLLER, MACHINES, Rack, Role, with_role};

const ETCDCTL: &str = "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/pki/ca.crt \
                       --cert=/etc/etcd/pki/healthcheck-client.crt --key=/etc/etcd/pki/healthcheck-client.key";

/// The inventory of a lab with default settings, for the source tree: what a newcomer reads is what `lab up` writes.
///
/// # Errors
/// If the lab's name were none.
pub fn example() -> Result<String, LabError> {
    let site = Site::new(Site::NAME, None)?;
    Ok(text(&site, &Settings::default(), Path::new("/usr/local/bin/kubectl"), true))
}

/// The inventory's text; file names in it are relative to its own folder. `ipv6`: whether machines have such addresses.
pub(super) fn text(site: &Site, settings: &Settings, kubectl: &Path, ipv6: bool) -> String {
    let single = settings.single_homed;
    let servers: Vec<String> =
        with_role(Role::ControlPlane).map(|m| format!("{}: \"{}\"", m.name, server(m, single))).collect();
    let mut t = String::new();
    let _ = write!(
        t,
        "# Written by `rackrift lab up`.\nlab: two-rack\nnamespace: {}\nknown_hosts: known_hosts\n\
         kubernetes:\n  kubeconfig: admin.conf\n  distribution: systemd\n  kubectl: {}\n  image: {IMAGE}\n  \
         api_servers: {{{}}}\n  etcdctl: >-\n    {ETCDCTL}\nnetworks:\n",
        site.namespace(),
        kubectl.display(),
        servers.join(", "),
    );
    if !single {
        t.push_str("  - {name: mgmt, purpose: management}\n");
    }
    t.push_str("  - {name: data, purpose: data}\nracks:\n");
    for rack in Rack::ALL {
        let _ = write!(t, "  - name: {}\n    hosts:\n", rack.name());
        for m in MACHINES.into_iter().filter(|m| m.rack == rack) {
            let mut data = m.data().to_string();
            if ipv6 {
                let _ = write!(data, ", \"{}\"", m.data6());
            }
            let management = if single { String::new() } else { format!("mgmt: [{}], ", m.management()) };
            let _ = write!(
                t,
                "      - name: {}\n        roles: [{}]\n        ssh: {{address: {}, user: root, key: id_ed25519}}\n        \
                 addresses: {{{management}data: [{data}]}}\n",
                m.name,
                m.role.name(),
                m.seat(single),
            );
        }
    }
    let _ = writeln!(t, "protected: [{}]", protected(single, ipv6).join(", "));
    t
}

/// The controller's own addresses: without a management network it comes in by each rack's gateway.
fn protected(single_homed: bool, ipv6: bool) -> Vec<String> {
    if !single_homed {
        return vec![CONTROLLER.to_string()];
    }
    let v4 = Rack::ALL.map(|r| r.gateway().to_string());
    let v6 = Rack::ALL.map(|r| format!("\"{}\"", r.gateway6()));
    v4.into_iter().chain(v6.into_iter().filter(|_| ipv6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventories() {
        let kubectl = Path::new("/var/cache/rackrift/kubernetes/kubectl");
        let site = Site::new("lab", None).expect("a name");
        let two = Settings::default();
        let one = Settings { single_homed: true, ..Settings::default() };
        insta::assert_snapshot!("inventory_two_networks", text(&site, &two, kubectl, true));
        insta::assert_snapshot!("inventory_single_homed", text(&site, &one, kubectl, true));
        assert!(!text(&site, &one, kubectl, false).contains("fd18"));
    }
}
