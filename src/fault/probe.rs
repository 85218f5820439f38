//! Probes: does a peer answer?
//!
//! # Invariants
//! * An answer proves both directions; silence proves only that one of them is cut. Which one, the counters tell
//!   ([`super::observe`]).
//! * A method that got no answer before the fault says nothing by being silent during it.
//! * Probes go to what is cut: the peer's addresses on data networks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::packets::Packets;
use super::plan::{HostPlan, Plan};
use super::script;
use crate::host::remote::{Remote, Script};

const PROBE: &str = include_str!("sh/probe.sh");

/// How a peer was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// One ICMP echo.
    Ping,
    /// One ICMP echo in a packet of so many bytes in IPv4, 20 more in IPv6.
    Long(u16),
    /// Opening a TCP connection to a port.
    Tcp(u16),
    /// One datagram to a port. It has no answer, so no host is asked so.
    Udp(u16),
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ping => f.write_str("ping"),
            Self::Long(bytes) => write!(f, "ping of {bytes} bytes"),
            Self::Tcp(port) => write!(f, "tcp to port {port}"),
            Self::Udp(port) => write!(f, "udp to port {port}"),
        }
    }
}

/// A question of one host to an address of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Question {
    /// Who asks.
    pub from: String,
    /// Who is asked.
    pub to: String,
    /// At which address.
    pub address: IpAddr,
    /// How.
    pub method: Method,
}

/// What was answered: absent if the question could not be put.
pub type Answers = BTreeMap<Question, bool>;

/// A host's script, and whom each of its numbered questions is for.
struct Round {
    script: String,
    asked: Vec<Asked>,
}

/// Whom, at which address, and how.
type Asked = (String, IpAddr, Method);

/// Of the ports that a partition takes, so many are tried.
const PORTS: usize = 4;
/// Headers of IPv4 and ICMP, bytes.
const HEADERS: u16 = 28;

/// Ping and a connection always: of what a partition leaves alone they tell that it is left alone.
fn methods(packets: &Packets, probe_port: u16) -> BTreeSet<Method> {
    let ports = packets.ports.iter().map(|p| p.get()).take(PORTS).chain([probe_port]);
    let long = packets.longer_than.map(|n| Method::Long(n + HEADERS));
    ports.map(Method::Tcp).chain([Method::Ping]).chain(long).collect()
}

/// Every host asks every other host of the plan with which it shares an edge, either way, or of which it must not
/// be cut off.
fn round(plan: &Plan, host: &HostPlan) -> Round {
    let first =
        |names: &[&'static str]| names.iter().copied().find(|n| host.have.contains(*n)).unwrap_or("none");
    let ping = match first(&["ping", "busybox"]) {
        "ping" => "own",
        other => other,
    };
    let tcp = match first(&["bash", "perl", "python3"]) {
        // bash has no time limit of its own for a connection.
        "bash" if !host.have.contains("timeout") => first(&["perl", "python3"]),
        other => other,
    };
    let ping6 = if host.have.contains("ping6") || ping == "busybox" { "yes" } else { "no" };
    // Who refuses packets answers for a peer that does not hear them.
    let refused = if plan.packets.reject { "silent" } else { "answered" };
    let mut text = format!("set -u\nping={ping} ping6={ping6} tcp={tcp} refused={refused}\n{PROBE}");
    let mut asked = Vec::new();
    for peer in plan.hosts.values().filter(|p| p.target.host != host.target.host) {
        let shared: BTreeSet<_> = host.target.blocks.iter().map(|b| b.family()).collect();
        for address in
            peer.target.blocks.iter().filter(|b| shared.contains(&b.family())).filter_map(|b| b.alone())
        {
            for method in methods(&plan.packets, peer.target.probe_port) {
                let how = match method {
                    Method::Ping => "ping 56".to_owned(),
                    Method::Long(bytes) => format!("ping {}", bytes - HEADERS),
                    Method::Tcp(port) => format!("tcp {port}"),
                    Method::Udp(_) => continue,
                };
                let _ = writeln!(text, "try {} {how} {address} &", asked.len());
                asked.push((peer.target.host.clone(), address, method));
            }
        }
    }
    text.push_str("wait\necho end=probe\n");
    Round { script: text, asked }
}

/// All hosts of the plan ask all their peers, all at once. A host whose answer does not come is left out.
pub async fn ask(remote: &Arc<dyn Remote>, plan: &Plan) -> Answers {
    let rounds: BTreeMap<&String, Round> =
        plan.hosts.iter().map(|(name, h)| (name, round(plan, h))).collect();
    let scripts = rounds
        .iter()
        .map(|(name, r)| ((*name).clone(), Script::new(r.script.clone()).limit(Duration::from_secs(15))));
    let outcomes = script::on_each(remote, scripts.collect()).await;
    let mut answers = Answers::new();
    for (from, outcome) in outcomes {
        let Ok(output) = outcome.ok() else { continue };
        read(&from, &rounds[&from].asked, &output, &mut answers);
    }
    answers
}

fn read(from: &str, asked: &[Asked], output: &str, answers: &mut Answers) {
    for (_, value) in script::pairs(output).filter(|(key, _)| *key == "probe") {
        let mut words = value.split(' ');
        let number = words.next().and_then(|n| n.parse::<usize>().ok());
        let answered = match words.next() {
            Some("answered") => true,
            Some("silent") => false,
            _ => continue,
        };
        let Some((to, address, method)) = number.and_then(|n| asked.get(n)) else { continue };
        let question = Question { from: from.to_owned(), to: to.clone(), address: *address, method: *method };
        answers.insert(question, answered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_answers_to_questions_that_were_put_count() {
        let to = |method| ("m2".to_owned(), "198.18.2.12".parse().unwrap(), method);
        let asked = [to(Method::Ping), to(Method::Tcp(22)), to(Method::Tcp(2379))];
        let mut answers = Answers::new();
        let output = "probe=0 answered\nprobe=1 silent\nprobe=9 silent\nprobe=2 smoke\nx\nprobe=2\n";
        read("m1", &asked, output, &mut answers);
        let seen: Vec<_> = answers.iter().map(|(q, a)| (q.method, *a)).collect();
        assert_eq!(seen, [(Method::Ping, true), (Method::Tcp(22), false)]);
    }
}
