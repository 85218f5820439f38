//! `lab status`: what runs, what leads, what is ready; looked at, not remembered.

use std::path::PathBuf;
use std::time::Duration;

use super::cgroup;
use super::error::LabError;
use super::machine::Place;
use super::network;
use super::ready::{API_READY, Access, ELECTED, ETCD_HEALTH, ask, holder, nodes};
use super::record::Record;
use super::site::Site;
use super::topology::{MACHINES, Machine, Role, balancer};

/// A machine of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineStatus {
    /// Which one.
    pub machine: Machine,
    /// Since when it runs; absent if it is off.
    pub up: Option<Duration>,
    /// The memory that its processes hold beside the page cache, bytes.
    pub memory: Option<u64>,
    /// Its services, and the state of each in systemd's words.
    pub services: Vec<(&'static str, String)>,
    /// Its own answer whether it is healthy: etcd and API servers have one. Absent if that is yes or not asked.
    pub trouble: Option<String>,
}

/// A lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its inventory.
    pub inventory: PathBuf,
    /// Its machines, rack by rack.
    pub machines: Vec<MachineStatus>,
    /// Components that elect a leader, and the host that holds the lease, or why that is not known.
    pub leaders: Vec<(&'static str, Result<String, String>)>,
    /// Nodes and whether each is ready, or why that is not known.
    pub nodes: Result<Vec<(String, bool)>, String>,
}

impl Status {
    /// Whether all is as `up` leaves it.
    #[must_use]
    pub fn healthy(&self) -> bool {
        let active = |s: &(&str, String)| s.1 == "active";
        let well = |m: &MachineStatus| m.up.is_some() && m.trouble.is_none() && m.services.iter().all(active);
        self.machines.iter().all(well)
            && self.leaders.iter().all(|(_, holder)| holder.is_ok())
            && self.nodes.as_ref().is_ok_and(|all| !all.is_empty() && all.iter().all(|(_, ready)| *ready))
    }
}

/// The services that a machine is there for.
const fn services(role: Role) -> &'static [&'static str] {
    match role {
        Role::ControlPlane => &["kube-apiserver", ELECTED[0], ELECTED[1]],
        Role::Worker => &["containerd", "kubelet"],
        Role::Etcd => &["etcd"],
        Role::Balancer => &["haproxy"],
    }
}

/// Looks at a lab.
///
/// # Errors
/// [`LabError::Down`] if there is none of that name.
pub fn status(site: &Site) -> Result<Status, LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let record = Record::load(site)?.filter(|_| network::namespace_exists(site));
    let record = record.ok_or_else(|| LabError::Down(site.name().to_owned()))?;
    let access = Access {
        site: site.clone(),
        settings: record.settings,
        kubectl: record.kubernetes.join("kubectl"),
        kubeconfigs: site.state().join("kubeconfigs"),
        places: MACHINES.into_iter().map(|m| Place::new(site, m)).collect(),
    };
    let machines = std::thread::scope(|scope| {
        let looks: Vec<_> = access.places.iter().map(|p| scope.spawn(|| look(p))).collect();
        looks.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    let leaders = ELECTED.map(|c| (c, holder(&access, balancer(), c))).to_vec();
    let nodes = nodes(&access, balancer());
    Ok(Status { name: site.name().to_owned(), inventory: site.inventory(), machines, leaders, nodes })
}

fn look(place: &Place) -> MachineStatus {
    let machine = place.machine;
    let Some(init) = place.init() else {
        return MachineStatus { machine, up: None, memory: None, services: Vec::new(), trouble: None };
    };
    let names = services(machine.role);
    let args: Vec<&str> = ["is-active"].iter().chain(names).copied().collect();
    // is-active's exit status says that one is not active; its lines say which.
    let said = place.inside("sh", &["-c", "systemctl \"$@\" || :", "sh"]).map(|c| c.args(&args).run());
    let states = said.ok().and_then(Result::ok).unwrap_or_default();
    let states = states.lines().map(str::to_owned).chain(std::iter::repeat("unknown".to_owned()));
    let trouble = match machine.role {
        Role::ControlPlane => ask(place, API_READY).err(),
        Role::Etcd => ask(place, ETCD_HEALTH).err(),
        Role::Worker | Role::Balancer => None,
    };
    MachineStatus {
        machine,
        up: Some(init.age()),
        memory: cgroup::memory(&place.site, machine.name),
        services: names.iter().copied().zip(states).collect(),
        trouble,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> Status {
        let well = |machine: Machine| MachineStatus {
            machine,
            up: Some(Duration::from_secs(60)),
            memory: Some(1 << 20),
            services: services(machine.role).iter().map(|s| (*s, "active".to_owned())).collect(),
            trouble: None,
        };
        Status {
            name: "lab".into(),
            inventory: "/state/inventory.yaml".into(),
            machines: MACHINES.map(well).to_vec(),
            leaders: ELECTED.map(|c| (c, Ok("m1".to_owned()))).to_vec(),
            nodes: Ok(vec![("w1".into(), true), ("w2".into(), true)]),
        }
    }

    #[test]
    fn each_part_counts_for_health() {
        assert!(lab().healthy());
        let mut off = lab();
        off.machines[3].up = None;
        let mut inactive = lab();
        inactive.machines[0].services[2].1 = "activating".into();
        let mut troubled = lab();
        troubled.machines[2].trouble = Some("no leader".into());
        let mut leaderless = lab();
        leaderless.leaders[1].1 = Err("nobody holds the lease".into());
        let mut unready = lab();
        unready.nodes = Ok(vec![("w1".into(), true), ("w2".into(), false)]);
        let mut empty = lab();
        empty.nodes = Ok(Vec::new());
        for sick in [off, inactive, troubled, leaderless, unready, empty] {
            assert!(!sick.healthy(), "{sick:?}");
        }
    }
}
