//! `rackrift preflight`: has each host, and each API server, what a run needs.
//!
//! # Invariants
//! * One message for one trouble: a host that can't be reached is not also said to lack everything.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tabled::builder::Builder;
use tabled::settings::Style;

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::address::Family;
use crate::fault::survey::{HostFacts, Supervisor, survey};
use crate::host::preflight::{self, Machine};
use crate::host::remote::Remote;
use crate::inventory::{Host, Inventory, Purpose};
use crate::kube::kubectl::Kubectl;

/// How long an API server may take to say that it is ready.
const READY: Duration = Duration::from_secs(10);

/// Looks at every host and API server, prints a table, what is missing and what to do.
///
/// # Errors
/// If the answer can't be printed.
pub async fn preflight(lab: &Lab) -> Result<Exit, Failure> {
    let mut found = look(&lab.remote, &lab.inventory).await;
    found.wrong.extend(api_servers(&lab.inventory).await);
    writeln!(std::io::stdout().lock(), "{found}").map_err(Failure::harness)?;
    Ok(found.exit())
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preflight {
    rows: Vec<Vec<String>>,
    /// What keeps a run from starting, and what to do; one line each.
    pub wrong: Vec<String>,
    /// What is worth knowing.
    pub remarks: Vec<String>,
    servers: usize,
}

impl Preflight {
    /// Passed, or 3: a run would fail.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.wrong.is_empty() { Exit::Passed } else { Exit::Harness }
    }
}

const COLUMNS: [&str; 11] = [
    "host",
    "rack",
    "roles",
    "root",
    "iptables",
    "ip6tables",
    "dead-man",
    "kernel",
    "free",
    "clock",
    "answers in",
];

impl fmt::Display for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Builder::default();
        table.push_record(COLUMNS);
        for row in &self.rows {
            table.push_record(row);
        }
        write!(f, "{}", table.build().with(Style::sharp()))?;
        for line in &self.wrong {
            write!(f, "\n{line}")?;
        }
        for line in &self.remarks {
            write!(f, "\nnote: {line}")?;
        }
        let (hosts, servers) = (self.rows.len(), self.servers);
        match self.wrong.len() {
            0 => write!(f, "\nevery host ({hosts}) and API server ({servers}) has what a run needs"),
            1 => write!(f, "\na run would fail: one thing is missing"),
            n => write!(f, "\na run would fail: {n} things are missing"),
        }
    }
}

/// Looks at every host of an inventory.
pub async fn look(remote: &Arc<dyn Remote>, inventory: &Inventory) -> Preflight {
    let names: Vec<String> = inventory.hosts().map(|h| h.name.clone()).collect();
    let machines = preflight::look(remote, &names).await;
    // Who could not be asked the first thing is not asked the second: each try has its time limit.
    let there: Vec<String> = names.into_iter().filter(|n| machines[n].is_ok()).collect();
    let mut surveyed = survey(remote, &there).await;
    let mut found = Preflight {
        rows: Vec::new(),
        wrong: Vec::new(),
        remarks: Vec::new(),
        servers: inventory.kubernetes.api_servers.len(),
    };
    for host in inventory.hosts() {
        let name = &host.name;
        let both = machines[name].clone().and_then(|machine| {
            Ok((machine, surveyed.remove(name).unwrap_or_else(|| Err("not asked".to_owned()))?))
        });
        match both {
            Ok((machine, facts)) => {
                found.rows.push(row(host, &machine, &facts));
                let lacks = lacks(host, &facts, &machine, inventory).into_iter().chain(machine.lacks());
                found.wrong.extend(lacks.map(|what| format!("{name}: {what}")));
                found.remarks.extend(machine.remarks().into_iter().map(|what| format!("{name}: {what}")));
            }
            Err(why) => {
                let mut row = vec![name.clone(), host.rack.clone(), host.roles.join(" ")];
                row.resize(COLUMNS.len(), "?".to_owned());
                found.rows.push(row);
                found.wrong.push(format!("{name}: {why}"));
            }
        }
    }
    for names in preflight::doubled(&machines) {
        found.wrong.push(format!(
            "{} are one machine under {} names; a fault on one would hit the other: correct `ssh: {{address}}`",
            names.join(" and "),
            names.len()
        ));
    }
    found
}

fn row(host: &Host, machine: &Machine, facts: &HostFacts) -> Vec<String> {
    let tool = |family| facts.tool(family).map_or_else(|| "none".to_owned(), |t| t.command);
    vec![
        host.name.clone(),
        host.rack.clone(),
        host.roles.join(" "),
        if facts.root { "yes" } else { "no" }.to_owned(),
        tool(Family::V4),
        tool(Family::V6),
        match facts.supervisor {
            Some(Supervisor::Systemd) => "systemd",
            Some(Supervisor::Setsid) => "setsid",
            None => "none",
        }
        .to_owned(),
        machine.kernel.clone(),
        machine.least_free().map_or_else(|| "?".to_owned(), size),
        machine.ahead.map_or_else(|| "?".to_owned(), offset),
        format!("{} ms", machine.answers_in.as_millis()),
    ]
}

/// `1.2 GiB`.
fn size(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib < 1024 { format!("{mib} MiB") } else { format!("{:.1} GiB", mib as f64 / 1024.0) }
}

/// The middle of the interval and how far the truth may be from it: `+2.0 ± 1.5 ms`.
fn offset((lo, hi): (i64, i64)) -> String {
    let (middle, reach) = ((lo as f64 + hi as f64) / 2e6, (hi as f64 - lo as f64) / 2e6);
    if middle.abs() < 10_000.0 {
        format!("{middle:+.1} ± {reach:.1} ms")
    } else {
        format!("{:+.1} ± {:.1} s", middle / 1000.0, reach / 1000.0)
    }
}

/// What a host's firewall and dead-man's switch lack, and what to do.
fn lacks(host: &Host, facts: &HostFacts, machine: &Machine, inventory: &Inventory) -> Vec<String> {
    let mut lacks = Vec::new();
    if !facts.root {
        // Without root nothing else can be said.
        return vec!["scripts do not run as root; log in as root or set `sudo: true`".to_owned()];
    }
    let is_data = |n: &String| inventory.networks.iter().any(|w| w.name == *n && w.purpose == Purpose::Data);
    let data: Vec<_> = host.addresses.iter().filter(|(n, _)| is_data(n)).flat_map(|(_, a)| a).collect();
    let mut none = Vec::new();
    for (family, plain, used) in [
        (Family::V4, "iptables", data.iter().any(|a| a.is_ipv4())),
        (Family::V6, "ip6tables", data.iter().any(|a| a.is_ipv6())),
    ] {
        match facts.tool(family) {
            None if used => none.push(plain),
            Some(tool) if used => {
                lacks.extend(machine.broken_tables(&tool.command).into_iter().map(|(table, said)| {
                    format!(
                        "{} has no table {table} ({said}); load the kernel module {plain}_{table}",
                        tool.command,
                        plain = if family == Family::V4 { "iptable" } else { "ip6table" }
                    )
                }));
            }
            _ => {}
        }
    }
    if !none.is_empty() {
        lacks.push(format!(
            "there is no {} (each with -save and -restore), so it cannot be cut off; install iptables there",
            none.join(" and no ")
        ));
    }
    if facts.supervisor.is_none() {
        lacks.push(
            "there is neither systemd-run nor setsid: a dead-man's switch would die with its session; install \
             util-linux there"
                .to_owned(),
        );
    }
    if !["ping", "busybox", "bash", "perl", "python3"].iter().any(|c| facts.have.contains(*c)) {
        lacks.push(
            "there is none of ping, busybox, bash, perl, python3: a cut could not be observed; install one"
                .to_owned(),
        );
    }
    lacks
}

async fn api_servers(inventory: &Inventory) -> Vec<String> {
    let kubectl = match Kubectl::new(inventory) {
        Ok(kubectl) => kubectl,
        Err(e) => return vec![e.to_string()],
    };
    let mut wrong = Vec::new();
    for (host, url) in &inventory.kubernetes.api_servers {
        let asked = kubectl.on(url).run(&["get", "--raw", "/readyz"], None, READY).await;
        if let Err(e) = asked {
            wrong.push(format!("API server of {host} ({url}) does not answer that it is ready: {e}"));
        }
    }
    if inventory.kubernetes.api_servers.is_empty() {
        wrong.push("the inventory names no `api_servers`: nothing could be observed".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::local::Namespaces;
    use crate::inventory::{Kubernetes, Network, Rack, Ssh};

    fn inventory() -> Inventory {
        let host = |name: &str| Host {
            name: name.to_owned(),
            rack: "a".to_owned(),
            roles: vec!["worker".to_owned()],
            ssh: Ssh { address: String::new(), port: 22, user: String::new(), key: None, sudo: false },
            addresses: [(
                "data".to_owned(),
                vec!["198.18.1.11".parse().unwrap(), "fd00::1".parse().unwrap()],
            )]
            .into(),
            node: None,
            pods: Vec::new(),
        };
        Inventory {
            lab: "here".to_owned(),
            folder: std::path::PathBuf::new(),
            namespace: None,
            kubernetes: Kubernetes {
                kubeconfig: std::path::PathBuf::new(),
                distribution: "systemd".to_owned(),
                kubectl: None,
                image: String::new(),
                api_servers: [("w1".to_owned(), "https://198.18.0.11:6443".to_owned())].into(),
                etcdctl: None,
            },
            networks: vec![Network { name: "data".to_owned(), purpose: Purpose::Data }],
            racks: vec![Rack { name: "a".to_owned(), hosts: vec![host("w1"), host("w2")] }],
            protected: Vec::new(),
            known_hosts: None,
        }
    }

    fn whole() -> (Machine, HostFacts) {
        let machine = Machine {
            kernel: "6.1.0-13-amd64".to_owned(),
            have: ["ip".to_owned()].into(),
            free: [("/run".to_owned(), 812 << 20), ("/var".to_owned(), 9 << 30)].into(),
            ahead: Some((-1_500_000, 3_700_000)),
            answers_in: Duration::from_millis(5),
            ..Machine::default()
        };
        let survey = "boot=x\nuid=0\nsupervisor=systemd\ntool=iptables-nft 2 iptables v1.8.9 (nf_tables)\n\
                      tool=ip6tables-nft 2 ip6tables v1.8.9 (nf_tables)\nhave=ping\nend=survey\n";
        (machine, HostFacts::parse(survey).unwrap())
    }

    fn shown(found: &[(&str, Machine, HostFacts)]) -> Preflight {
        let inventory = inventory();
        let mut all = Preflight { rows: Vec::new(), wrong: Vec::new(), remarks: Vec::new(), servers: 1 };
        for (name, machine, facts) in found {
            let host = inventory.host(name).unwrap();
            all.rows.push(row(host, machine, facts));
            all.wrong.extend(lacks(host, facts, machine, &inventory).iter().map(|w| format!("{name}: {w}")));
        }
        all
    }

    #[test]
    fn a_lab_that_has_all_it_needs() {
        let (machine, facts) = whole();
        let far = Machine { ahead: Some((-86_400_500_000_000, -86_400_100_000_000)), ..machine.clone() };
        let all = shown(&[("w1", machine, facts.clone()), ("w2", far, facts)]);
        assert_eq!(all.exit(), Exit::Passed);
        insta::assert_snapshot!(all);
    }

    #[test]
    fn what_is_missing_is_told_once() {
        let (machine, facts) = whole();
        let bare = HostFacts::parse("boot=x\nuid=0\nend=survey\n").unwrap();
        let user = HostFacts::parse("boot=x\nuid=1000\nend=survey\n").unwrap();
        let said = "can't initialize iptables table `raw': Table does not exist";
        let no_raw = Machine {
            no_tables: [(("iptables-nft".to_owned(), "raw".to_owned()), said.to_owned())].into(),
            ..machine.clone()
        };
        let all = shown(&[("w1", machine.clone(), bare), ("w1", machine, user), ("w2", no_raw, facts)]);
        assert_eq!(all.exit(), Exit::Harness);
        insta::assert_snapshot!(all);
    }

    #[tokio::test]
    async fn hosts_are_asked_and_a_silent_one_is_told_once() {
        let remote: Arc<dyn Remote> = Arc::new(Namespaces::new().here("w1"));
        let found = look(&remote, &inventory()).await;
        let of_w2: Vec<_> = found.wrong.iter().filter(|w| w.contains("w2")).collect();
        assert_eq!(of_w2, ["w2: there is no such host"]);
        assert_eq!((found.rows.len(), found.rows[1][4].as_str()), (2, "?"));
    }
}
