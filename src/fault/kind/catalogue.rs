//! The catalogue of faults: what `docs/faults.md` shows of each kind.

/// A kind of fault, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its name in reports.
    pub name: &'static str,
    /// How a scenario writes it.
    pub written: &'static str,
    /// What it does on the host.
    pub does: &'static str,
    /// What the host must have.
    pub needs: &'static str,
    /// How it is seen in force.
    pub seen: &'static str,
    /// How it is undone.
    pub undone: &'static str,
    /// What it cannot do.
    pub cannot: &'static str,
}

/// Every kind but partitions, whose shapes have a table of their own.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "process/pause",
        written: "process: {pause: kube-scheduler}",
        does: "SIGSTOP to every process of the program; pid and start time are written down before",
        needs: "the program runs",
        seen: "each process is in state T",
        undone: "SIGCONT to those same processes",
        cannot: "processes started afterwards go on; a watchdog may kill a paused one, which is told as a gap",
    },
    Kind {
        name: "process/kill",
        written: "process: {kill: etcd}",
        does: "SIGKILL to every process of the program, once",
        needs: "the program runs",
        seen: "the processes are gone",
        undone: "a unit of systemd that does not run by then is started",
        cannot: "what neither systemd nor the kubelet starts again stays away; the plan says so",
    },
    Kind {
        name: "process/crash-loop",
        written: "process: {crash-loop: {program: kubelet, every: 3s}}",
        does: "SIGKILL to the program whenever it is there",
        needs: "the program runs",
        seen: "the loop runs and has killed",
        undone: "the loop is ended; the unit is started, its failures are reset",
        cannot: "a program that lives for less than the time between two looks may be missed",
    },
    Kind {
        name: "service/stop",
        written: "service: {stop: kubelet}",
        does: "`systemctl stop`",
        needs: "systemd; the unit is active",
        seen: "the unit is inactive",
        undone: "`systemctl start`, and the unit is active",
        cannot: "a unit that another one pulls in may come back by itself",
    },
    Kind {
        name: "service/restart",
        written: "service: {restart: containerd}",
        does: "`systemctl restart`, once",
        needs: "systemd; the unit is active",
        seen: "the unit's invocation is another one",
        undone: "nothing to undo; the unit is active",
        cannot: "",
    },
    Kind {
        name: "static-pod/stop",
        written: "static-pod: {stop: kube-apiserver}",
        does: "moves the pod's file out of /etc/kubernetes/manifests, within its file system",
        needs: "the file is there; the program is called as the pod",
        seen: "no process of that name runs",
        undone: "the file is moved back",
        cannot: "other manifest folders; k3s has no such file",
    },
    Kind {
        name: "traffic",
        written: "traffic: {to: rack:b, delay: 100ms, loss: 1%}",
        does: "an htb root 5b00: on each device that leads there, with a netem leaf for what is more than a rate",
        needs: "tc; sch_netem for all but a rate; the device's root qdisc is an implicit default",
        seen: "packets went through the class; the round trip is told",
        undone: "the root 5b00: is deleted, and the kernel puts its default back",
        cannot: "what the host receives is shaped at the senders; two at once on one device; ports behind IP options or in fragments",
    },
    Kind {
        name: "clock/jump",
        written: "clock: {ahead: 1h}",
        does: "stops time daemons and sets the wall clock, `ahead` or `back`",
        needs: "a machine of its own, with systemd",
        seen: "wall clock less time since boot",
        undone: "the clock is set by the time since boot; daemons are started",
        cannot: "containers share the clock and are refused; the hardware clock is left alone",
    },
    Kind {
        name: "clock/rate",
        written: "clock: {gain: 500}",
        does: "stops time daemons and sets the kernel's tick, `gain` or `lose` in parts of 10,000",
        needs: "a machine of its own, with systemd; adjtimex",
        seen: "the tick; how far the clock is off is told",
        undone: "the tick and the clock are set back",
        cannot: "as clock/jump; clocks that count from boot run fast or slow too, so the host's own timeouts do",
    },
    Kind {
        name: "clock/strobe",
        written: "clock: {strobe: {by: 5s, every: 2s}}",
        does: "jumps ahead and back again and again",
        needs: "a machine of its own, with systemd",
        seen: "the jumps are counted",
        undone: "the loop is ended, the clock is set back",
        cannot: "as clock/jump",
    },
    Kind {
        name: "disk/fill",
        written: "fill: {path: /var/lib/etcd, leave: 64MiB}",
        does: "one file takes all room of the file system but for the reserve",
        needs: "fallocate; more room than the reserve",
        seen: "the room that is left",
        undone: "the file is deleted; `rackrift heal` finds it after a reboot too",
        cannot: "blocks that the file system keeps for root stay free for root",
    },
    Kind {
        name: "volume/delay, /fail-writes, /fail, /hang",
        written: "volume: {name: etcd, does: {delay: 200ms}}",
        does: "gives a prepared volume of the device mapper another table, or suspends it",
        needs: "dmsetup; a volume of one linear piece; the kernel's delay or flakey target",
        seen: "the table, or that it is suspended",
        undone: "its own table is loaded again",
        cannot: "volumes must be prepared; a reboot gives the volume back as the host's boot makes it",
    },
    Kind {
        name: "pressure/cpu",
        written: "pressure: {cpu: 4}",
        does: "so many busy loops",
        needs: "",
        seen: "the loops run; the load is told",
        undone: "the loops are killed",
        cannot: "limits of cgroups",
    },
    Kind {
        name: "pressure/memory",
        written: "pressure: {memory: 512MiB}",
        does: "a file of that size in /dev/shm",
        needs: "/dev/shm with that much room; 128 MiB are left to the host",
        seen: "the file's size; the memory left is told",
        undone: "the file is deleted",
        cannot: "swap may take it out of memory",
    },
    Kind {
        name: "link/down",
        written: "link: {down: eth1}",
        does: "saves addresses and routes of both families, then takes the device down",
        needs: "iproute2; not the way of the controller",
        seen: "the device is not up",
        undone: "the device is up, and each address and route of before is back",
        cannot: "neighbour entries and settings of other programs (bonds, DHCP leases)",
    },
    Kind {
        name: "machine/reboot",
        written: "machine: reboot",
        does: "`systemctl reboot`",
        needs: "a machine of its own, with systemd",
        seen: "another boot id",
        undone: "nothing to undo: the heal waits until it is back, ten minutes at most",
        cannot: "machines that do not come back by themselves",
    },
    Kind {
        name: "machine/crash",
        written: "machine: crash",
        does: "sysrq `b`: boots at once, what was not written is lost",
        needs: "a machine of its own, with systemd; sysrq",
        seen: "another boot id",
        undone: "as machine/reboot",
        cannot: "as machine/reboot",
    },
];

/// The table for `docs/faults.md`.
#[must_use]
pub fn table() -> String {
    let mut text = String::from(
        "| kind | written | does | needs | seen by | undone by | cannot |\n|---|---|---|---|---|---|---|\n",
    );
    for k in KINDS {
        let cells = [k.name, &format!("`{}`", k.written), k.does, k.needs, k.seen, k.undone, k.cannot];
        text += &format!("| {} |\n", cells.map(|c| if c.is_empty() { "–" } else { c }).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::What;
    use super::*;

    #[test]
    fn what_is_shown_can_be_written_and_is_of_that_kind() {
        let mut seen = BTreeSet::new();
        for kind in KINDS {
            let source = crate::yaml::Source { origin: "the catalogue", text: kind.written };
            let what: What = source.parse().unwrap();
            assert!(kind.name.starts_with(what.kind()), "{} is {}", kind.written, what.kind());
            assert!(seen.insert(what.kind()));
        }
    }
}
