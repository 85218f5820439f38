//! `rackrift preflight`: has each host, and each API server, what a run needs.

use std::io::Write;
use std::time::Duration;

use tabled::builder::Builder;
use tabled::settings::Style;
use tabled::settings::object::Columns;
use tabled::settings::{Modify, Width};

use super::{Failure, Lab};
use crate::exit::Exit;
use crate::fault::address::Family;
use crate::fault::survey::{HostFacts, Supervisor, survey};
use crate::inventory::{Host, Inventory, Purpose};
use crate::kube::kubectl::Kubectl;

/// How long an API server may take to say that it is ready.
const READY: Duration = Duration::from_secs(10);

/// Looks at every host and API server, prints a table and what is missing.
///
/// # Errors
/// If kubectl can't be used, or the answer can't be printed.
pub async fn preflight(lab: &Lab) -> Result<Exit, Failure> {
    let inventory = &lab.inventory;
    let names: Vec<String> = inventory.hosts().map(|h| h.name.clone()).collect();
    let found = survey(&lab.remote, &names).await;
    let mut table = Builder::default();
    table.push_record([
        "host",
        "rack",
        "roles",
        "root",
        "iptables",
        "ip6tables",
        "dead-man's switch",
        "probes by",
    ]);
    let mut wrong = Vec::new();
    for host in inventory.hosts() {
        match &found[&host.name] {
            Ok(facts) => {
                table.push_record(row(host, facts));
                wrong.extend(lacks(host, facts, inventory));
            }
            Err(why) => {
                let mut record =
                    vec![host.name.clone(), host.rack.clone(), host.roles.join(" "), "?".to_owned()];
                record.resize(8, String::new());
                table.push_record(record);
                // The message of a connection begins with the host's name already.
                let named = why.starts_with(&format!("{} (", host.name));
                wrong.push(if named { why.clone() } else { format!("{}: {why}", host.name) });
            }
        }
    }
    wrong.extend(api_servers(inventory).await);
    let mut table = table.build();
    table.with(Style::sharp()).with(Modify::new(Columns::last()).with(Width::wrap(40)));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{table}").map_err(Failure::harness)?;
    for line in &wrong {
        writeln!(out, "{line}").map_err(Failure::harness)?;
    }
    if wrong.is_empty() {
        let servers = inventory.kubernetes.api_servers.len();
        writeln!(out, "{} hosts and {servers} API servers have what a run needs", names.len())
            .map_err(Failure::harness)?;
        return Ok(Exit::Passed);
    }
    Ok(Exit::Harness)
}

fn row(host: &Host, facts: &HostFacts) -> Vec<String> {
    let tool = |family| facts.tool(family).map_or_else(|| "none".to_owned(), |t| t.command);
    let probes: Vec<&str> = ["ping", "bash", "perl", "python3", "busybox"]
        .into_iter()
        .filter(|c| facts.have.contains(*c))
        .collect();
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
        probes.join(" "),
    ]
}

/// What a host lacks, and what to do.
fn lacks(host: &Host, facts: &HostFacts, inventory: &Inventory) -> Vec<String> {
    let name = &host.name;
    let mut wrong = Vec::new();
    if !facts.root {
        wrong.push(format!("{name}: scripts do not run as root; log in as root or set `sudo: true`"));
    }
    let is_data = |n: &String| inventory.networks.iter().any(|w| w.name == *n && w.purpose == Purpose::Data);
    let data: Vec<_> = host.addresses.iter().filter(|(n, _)| is_data(n)).flat_map(|(_, a)| a).collect();
    for (family, what, used) in [
        (Family::V4, "iptables", data.iter().any(|a| a.is_ipv4())),
        (Family::V6, "ip6tables", data.iter().any(|a| a.is_ipv6())),
    ] {
        if used && facts.tool(family).is_none() {
            wrong.push(format!(
                "{name}: there is no {what} (with -save and -restore); install iptables there"
            ));
        }
    }
    if facts.supervisor.is_none() {
        wrong.push(format!(
            "{name}: neither systemd-run nor setsid: a dead-man's switch would die with the session"
        ));
    }
    wrong
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
