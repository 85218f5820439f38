//! The lab's machines, racks and addresses: two racks of a master, a worker and an etcd each, and a witness place
//! with the third etcd and the load balancer.
//!
//! # Invariants
//! * Every IPv4 address lies in 198.18.0.0/15, which is reserved for benchmarks (RFC 2544), so that no network of the
//!   user is hit; every IPv6 address lies in fd18::/16, a unique local prefix (RFC 4193).
//! * A machine's last octet is the same on both networks, and in IPv6 the same digits.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What may never leave the machine, IPv4.
pub(super) const BLOCK: &str = "198.18.0.0/15";
/// What may never leave the machine, IPv6.
pub(super) const BLOCK6: &str = "fd18::/16";
/// The range of the cluster's service addresses.
pub(super) const SERVICES: &str = "198.19.0.0/16";
/// The bridge of the management network.
pub(super) const MANAGEMENT_BRIDGE: &str = "brmgmt";
/// The controller on the management network.
pub(super) const CONTROLLER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// What fails together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rack {
    /// Rack a: m1, w1, e1.
    A,
    /// Rack b: m2, w2, e2.
    B,
    /// The witness place: e3, lb.
    Witness,
}

impl Rack {
    /// All three, in order.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::Witness];

    /// Its name in the inventory, and the zone label of its nodes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::Witness => "witness",
        }
    }

    /// Its bridge on the data network.
    #[must_use]
    pub const fn bridge(self) -> &'static str {
        match self {
            Self::A => "bra",
            Self::B => "brb",
            Self::Witness => "brc",
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::A => 1,
            Self::B => 2,
            Self::Witness => 3,
        }
    }

    /// The core router's address in this rack: its machines' default gateway.
    #[must_use]
    pub const fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number(), 1)
    }

    /// The same, IPv6.
    #[must_use]
    pub const fn gateway6(self) -> Ipv6Addr {
        data6(self, 1)
    }
}

/// What a machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// kube-apiserver, kube-controller-manager, kube-scheduler.
    ControlPlane,
    /// kubelet and containerd.
    Worker,
    /// One member of etcd.
    Etcd,
    /// haproxy in front of both API servers, for the kubelets.
    Balancer,
}

impl Role {
    /// Its name in the inventory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "control-plane",
            Self::Worker => "worker",
            Self::Etcd => "etcd",
            Self::Balancer => "load-balancer",
        }
    }
}

/// A machine of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub rack: Rack,
    /// What it does.
    pub role: Role,
    /// Its last octet.
    number: u8,
}

const fn machine(name: &'static str, rack: Rack, role: Role, number: u8) -> Machine {
    Machine { name, rack, role, number }
}

/// All machines, rack by rack.
pub const MACHINES: [Machine; 8] = [
    machine("m1", Rack::A, Role::ControlPlane, 11),
    machine("w1", Rack::A, Role::Worker, 21),
    machine("e1", Rack::A, Role::Etcd, 31),
    machine("m2", Rack::B, Role::ControlPlane, 12),
    machine("w2", Rack::B, Role::Worker, 22),
    machine("e2", Rack::B, Role::Etcd, 32),
    machine("e3", Rack::Witness, Role::Etcd, 33),
    machine("lb", Rack::Witness, Role::Balancer, 40),
];

impl Machine {
    /// The machine of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        MACHINES.into_iter().find(|m| m.name == name)
    }

    /// Its address on the management network.
    #[must_use]
    pub const fn management(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 0, self.number)
    }

    /// Its address on the data network.
    #[must_use]
    pub const fn data(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.rack.number(), self.number)
    }

    /// Its IPv6 address on the data network.
    #[must_use]
    pub const fn data6(self) -> Ipv6Addr {
        data6(self.rack, self.number)
    }

    /// The address by which the controller reaches it.
    #[must_use]
    pub const fn seat(self, single_homed: bool) -> Ipv4Addr {
        if single_homed { self.data() } else { self.management() }
    }

    /// The range of its pods, if it runs any: 198.18.101.0/24 in rack a.
    #[must_use]
    pub fn pods(self) -> Option<String> {
        (self.role == Role::Worker).then(|| format!("198.18.{}.0/24", 100 + self.rack.number()))
    }

    /// The controller's end of its management link; interface names end at 15 bytes.
    #[must_use]
    pub fn management_link(self) -> String {
        format!("mg-{}", self.name)
    }
}

/// The machines of a role, in order.
pub(super) fn with_role(role: Role) -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(move |m| m.role == role)
}

/// The load balancer.
#[must_use]
pub(super) const fn balancer() -> Machine {
    MACHINES[7]
}

/// `number` in decimal digits is the last group, so that 198.18.1.11 and fd18:198:18:1::11 are seen to be one host.
const fn data6(rack: Rack, number: u8) -> Ipv6Addr {
    let digits = (number / 10 * 16 + number % 10) as u16;
    Ipv6Addr::new(0xfd18, 0x198, 0x18, rack.number() as u16, 0, 0, 0, digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let all: String = MACHINES
            .iter()
            .map(|m| {
                let pods = m.pods().unwrap_or_default();
                format!("{} {} {} {} {} {pods}\n", m.name, m.rack.name(), m.management(), m.data(), m.data6())
            })
            .collect();
        insta::assert_snapshot!(all);
        assert_eq!(balancer().role, Role::Balancer);
        assert_eq!(Machine::named("w2").map(|m| m.data()), Some(Ipv4Addr::new(198, 18, 2, 22)));
        assert_eq!(Machine::named("w9"), None);
    }

    #[test]
    fn no_two_machines_share_an_address() {
        for (i, a) in MACHINES.iter().enumerate() {
            for b in &MACHINES[i + 1..] {
                assert_ne!(a.management(), b.management());
                assert_ne!(a.data(), b.data());
                assert_ne!(a.data6(), b.data6());
            }
        }
    }
}
