//! The lab's network: one namespace, a bridge a rack, a management bridge, and the routes that keep it all in.
//!
//! # Invariants
//! * Before anything else exists, the lab's address blocks are unreachable in the root namespace, so that nothing
//!   meant for the lab can leave the machine by its default route, and in the lab's own namespace, which has no default route.
//! * Every step may be repeated.

use super::call::{Call, CallError};
use super::error::{During as _, Failure};
use super::site::{PREFIX, Site};
use super::topology::{BLOCK, BLOCK6, CONTROLLER, MACHINES, MANAGEMENT_BRIDGE, Machine, Rack};

/// Which of the labs' address blocks could leave the machine now: IPv4, IPv6.
pub(super) fn open() -> Result<(bool, bool), Failure> {
    let missing = |family, block| has_route(family, block).map(|has| !has);
    let look = || Ok::<_, CallError>((missing("-4", BLOCK)?, has_ipv6() && missing("-6", BLOCK6)?));
    look().during(|| "looking at routes".to_owned())
}

/// Closes the root namespace to the labs' addresses.
pub(super) fn close() -> Result<(), Failure> {
    let (v4, v6) = open()?;
    for (family, block, missing) in [("-4", BLOCK, v4), ("-6", BLOCK6, v6)] {
        if missing {
            Call::new("ip", [family, "route", "add", "unreachable", block])
                .run()
                .during(|| format!("making {block} unreachable from this machine"))?;
        }
    }
    Ok(())
}

/// Takes the routes of [`close`] away.
pub(super) fn reopen(v4: bool, v6: bool) -> Result<(), Failure> {
    for (family, block, ours) in [("-4", BLOCK, v4), ("-6", BLOCK6, v6)] {
        if ours && has_route(family, block).during(|| "looking at routes".to_owned())? {
            Call::new("ip", [family, "route", "del", "unreachable", block])
                .run()
                .during(|| format!("removing the unreachable route of {block}"))?;
        }
    }
    Ok(())
}

fn has_route(family: &str, block: &str) -> Result<bool, CallError> {
    let routes = Call::new("ip", [family, "route", "show", "type", "unreachable"]).run()?;
    Ok(routes.lines().any(|l| l.split_whitespace().any(|w| w == block)))
}

/// Whether this machine's kernel has IPv6.
pub(super) fn has_ipv6() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|t| t.trim() == "0")
}

/// Whether the lab's namespace exists: a name that is a mounted namespace, not an empty file that a crash left.
pub(super) fn namespace_exists(site: &Site) -> bool {
    use std::os::linux::fs::MetadataExt as _;
    let device = |path: &str| std::fs::metadata(path).map(|m| m.st_dev()).ok();
    let own = device("/proc/self/ns/net");
    own.is_some() && device(&site.namespace_path()) == own
}

/// Makes the namespace with its bridges, addresses and routes.
pub(super) fn make(site: &Site, single_homed: bool) -> Result<(), Failure> {
    let name = site.namespace();
    if !namespace_exists(site) {
        // A name without a namespace behind it is left by a crash.
        let _ = std::fs::remove_file(site.namespace_path());
        Call::new("ip", ["netns", "add", &name])
            .run()
            .during(|| format!("making the network namespace {name}"))?;
    }
    Call::script_inside(site, script(single_homed, has_ipv6()))
        .run()
        .map(drop)
        .during(|| "making the lab's bridges".to_owned())
}

/// Removes the namespace, and every link in it with it.
pub(super) fn remove(site: &Site) -> Result<(), Failure> {
    let name = site.namespace();
    if !std::fs::exists(site.namespace_path()).unwrap_or(false) {
        return Ok(());
    }
    Call::new("ip", ["netns", "del", &name])
        .run()
        .map(drop)
        .during(|| format!("removing the network namespace {name}"))
}

/// Whether any lab has a namespace on this machine.
pub(super) fn any_lab() -> bool {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.into_iter().any(|e| e.file_name().to_string_lossy().starts_with(PREFIX))
}

/// The ends of a machine's links that a dead life left in the namespace; nspawn would not start over them.
pub(super) fn remove_links(site: &Site, machine: Machine) {
    for link in [format!("vb-{}", site.machine(machine)), machine.management_link()] {
        // Absence is the usual case.
        let _ = Call::inside(site, "ip", ["link", "del", &link]).run();
    }
}

/// What is run in the namespace.
fn script(single_homed: bool, ipv6: bool) -> String {
    let mut lines = vec![
        "ip link set lo up".to_owned(),
        format!("ip route replace unreachable {BLOCK}"),
        "sysctl -qw net.ipv4.ip_forward=1".to_owned(),
        // Frames between two machines of one rack are the switch's business, not the core router's rules'.
        "[ ! -e /proc/sys/net/bridge ] || sysctl -qw net.bridge.bridge-nf-call-iptables=0 \
         net.bridge.bridge-nf-call-ip6tables=0"
            .to_owned(),
    ];
    if ipv6 {
        lines.push(format!("ip -6 route replace unreachable {BLOCK6}"));
        lines.push("sysctl -qw net.ipv6.conf.all.forwarding=1".to_owned());
    }
    let mut bridge = |name: &str| {
        lines.push(format!("ip link show {name} >/dev/null 2>&1 || ip link add {name} type bridge"));
        lines.push(format!("ip link set {name} up"));
    };
    for rack in Rack::ALL {
        bridge(rack.bridge());
    }
    if !single_homed {
        bridge(MANAGEMENT_BRIDGE);
        lines.push(format!("ip addr replace {CONTROLLER}/24 dev {MANAGEMENT_BRIDGE}"));
    }
    for rack in Rack::ALL {
        lines.push(format!("ip addr replace {}/24 dev {}", rack.gateway(), rack.bridge()));
        if ipv6 {
            lines.push(format!("ip -6 addr replace {}/64 dev {} nodad", rack.gateway6(), rack.bridge()));
        }
    }
    for machine in MACHINES {
        if let Some(pods) = machine.pods() {
            lines.push(format!("ip route replace {pods} via {}", machine.data()));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts() {
        insta::assert_snapshot!("two_networks", script(false, true));
        insta::assert_snapshot!("single_homed", script(true, false));
    }
}
