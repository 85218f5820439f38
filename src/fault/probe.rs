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
    /// Opening a TCP connection.
    Tcp,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ping => "ping",
            Self::Tcp => "tcp",
        })
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
    asked: Vec<(String, IpAddr)>,
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
    let mut text = format!("set -u\nping={ping} ping6={ping6} tcp={tcp}\n{PROBE}");
    let mut asked = Vec::new();
    for peer in plan.hosts.values().filter(|p| p.target.host != host.target.host) {
        let shared: BTreeSet<_> = host.target.blocks.iter().map(|b| b.family()).collect();
        for address in
            peer.target.blocks.iter().filter(|b| shared.contains(&b.family())).filter_map(|b| b.alone())
        {
            let _ = writeln!(text, "try {} {address} {} &", asked.len(), peer.target.probe_port);
            asked.push((peer.target.host.clone(), address));
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

fn read(from: &str, asked: &[(String, IpAddr)], output: &str, answers: &mut Answers) {
    for (_, value) in script::pairs(output).filter(|(key, _)| *key == "probe") {
        let mut words = value.split(' ');
        let number = words.next().and_then(|n| n.parse::<usize>().ok());
        let method = match words.next() {
            Some("ping") => Method::Ping,
            Some("tcp") => Method::Tcp,
            _ => continue,
        };
        let answered = match words.next() {
            Some("answered") => true,
            Some("silent") => false,
            _ => continue,
        };
        let Some((to, address)) = number.and_then(|n| asked.get(n)) else { continue };
        let question = Question { from: from.to_owned(), to: to.clone(), address: *address, method };
        answers.insert(question, answered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_answers_to_questions_that_were_put_count() {
        let asked = [("m2".to_owned(), "198.18.2.12".parse().unwrap())];
        let mut answers = Answers::new();
        let output = "probe=0 ping answered\nprobe=0 tcp silent\nprobe=9 ping silent\nprobe=0 smoke silent\nx\nprobe=0 ping\n";
        read("m1", &asked, output, &mut answers);
        let seen: Vec<_> = answers.iter().map(|(q, a)| (q.method, *a)).collect();
        assert_eq!(seen, [(Method::Ping, true), (Method::Tcp, false)]);
    }
}
