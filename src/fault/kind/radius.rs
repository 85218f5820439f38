//! How much harm a fault of hosts may do: what would take more is refused unless the scenario names it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Link, Process, Service, StaticPod, What};

/// Harm that a scenario has to name before it may be done.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// Fewer than a majority of etcd's members go on: the cluster can no longer be written.
    EtcdQuorum,
    /// No control plane goes on.
    LastControlPlane,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EtcdQuorum => "etcd-quorum",
            Self::LastControlPlane => "last-control-plane",
        })
    }
}

/// What a fault takes away from a host, by role.
struct Takes {
    etcd: bool,
    control_plane: bool,
}

impl What {
    fn takes(&self) -> Takes {
        let of = |name: &str| {
            let name = name.trim_end_matches(".service");
            // k3s and rke2 hold etcd and the control plane in one process.
            let whole = ["k3s", "k3s-server", "rke2", "rke2-server"].contains(&name);
            Takes { etcd: whole || name == "etcd", control_plane: whole || name == "kube-apiserver" }
        };
        match self {
            Self::Process(p @ (Process::Pause(_) | Process::Kill(_) | Process::CrashLoop(_))) => {
                of(p.program().as_str())
            }
            Self::Service(Service::Stop(name) | Service::Restart(name)) => of(name.as_str()),
            Self::StaticPod(StaticPod::Stop(name)) => of(name.as_str()),
            Self::Link(Link::Down(_)) | Self::Machine(_) | Self::Volume(_) => {
                Takes { etcd: true, control_plane: true }
            }
            Self::Traffic(_) | Self::Clock(_) | Self::Fill(_) | Self::Pressure(_) => {
                Takes { etcd: false, control_plane: false }
            }
        }
    }

    /// The harm that this does if it is done to all of `hosts` at once; `roles` are those of the whole lab.
    #[must_use]
    pub fn harm(&self, hosts: &[&str], roles: &BTreeMap<String, Vec<String>>) -> Vec<(Harm, String)> {
        let takes = self.takes();
        let of = |role: &str| -> Vec<&str> {
            let has = |all: &Vec<String>| all.iter().any(|r| r == role);
            roles.iter().filter(|(_, all)| has(all)).map(|(host, _)| host.as_str()).collect()
        };
        let mut harm = Vec::new();
        let etcd = of("etcd");
        let lost = etcd.iter().filter(|h| hosts.contains(h)).count();
        if takes.etcd && lost > 0 && etcd.len() - lost < etcd.len() / 2 + 1 {
            let sentence = format!("of {} members of etcd it takes {lost}: no majority is left", etcd.len());
            harm.push((Harm::EtcdQuorum, sentence));
        }
        let control = of("control-plane");
        if takes.control_plane && !control.is_empty() && control.iter().all(|h| hosts.contains(h)) {
            let sentence = format!("it takes every control plane ({})", control.join(", "));
            harm.push((Harm::LastControlPlane, sentence));
        }
        harm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harm(what: &str, hosts: &[&str]) -> Vec<Harm> {
        let what: What = crate::yaml::Source { origin: "a test", text: what }.parse().unwrap();
        let mut roles = BTreeMap::new();
        for (role, hosts) in [("etcd", ["e1", "e2", "e3"]), ("control-plane", ["m1", "m2", "m2"])] {
            for host in hosts {
                roles.insert(host.to_owned(), vec![role.to_owned()]);
            }
        }
        what.harm(hosts, &roles).into_iter().map(|(h, _)| h).collect()
    }

    #[test]
    fn a_majority_of_etcd_and_the_last_control_plane_are_told() {
        assert_eq!(harm("process: {kill: etcd}", &["e1"]), []);
        assert_eq!(harm("process: {kill: etcd}", &["e1", "e2"]), [Harm::EtcdQuorum]);
        assert_eq!(harm("process: {pause: kube-scheduler}", &["m1", "m2"]), []);
        assert_eq!(harm("service: {stop: kube-apiserver.service}", &["m1"]), []);
        assert_eq!(harm("service: {stop: kube-apiserver.service}", &["m1", "m2"]), [Harm::LastControlPlane]);
        let all = ["e1", "e2", "m1", "m2"];
        assert_eq!(harm("machine: reboot", &all), [Harm::EtcdQuorum, Harm::LastControlPlane]);
        assert_eq!(harm("process: {pause: k3s-server}", &all), [Harm::EtcdQuorum, Harm::LastControlPlane]);
    }
}
