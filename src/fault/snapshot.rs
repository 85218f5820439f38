//! A host's packet filter rules, made comparable: what stood before a fault must stand after it.
//!
//! # Invariants
//! * Compared are all rules, chains and policies of both families and both back ends, in order.
//! * Left out are counters, comments with dates, and tables that have neither rule nor own chain nor another policy
//!   than ACCEPT: the legacy kernel modules register such a table at the first question and cannot take it back.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::script;
use crate::host::remote::{Remote, Script};

const SNAPSHOT: &str = include_str!("sh/snapshot.sh");

/// The rules of a host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Snapshot {
    /// The rules as the save commands print them, each section headed by its command.
    pub raw: String,
    /// The same without what may change by itself.
    pub normal: String,
    /// SHA-256 of `normal`, hexadecimal.
    pub digest: String,
}

impl Snapshot {
    /// Makes what the snapshot script printed comparable.
    ///
    /// # Errors
    /// The output is not whole, or a command failed.
    pub fn parse(output: &str) -> Result<Self, String> {
        if script::value(output, "end") != Some("snapshot") {
            return Err("the answer is not whole".to_owned());
        }
        if let Some((_, command)) = script::pairs(output).find(|(key, _)| *key == "failed") {
            return Err(format!("{command} failed"));
        }
        let raw = output.replace("end=snapshot\n", "");
        let normal = normal(&raw);
        let digest = Sha256::digest(normal.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        Ok(Self { raw, normal, digest })
    }
}

/// Snapshots of hosts, all at once; for a host without one, why.
pub async fn snapshot(
    remote: &Arc<dyn Remote>,
    hosts: &[String],
) -> BTreeMap<String, Result<Snapshot, String>> {
    let script = Script::new(script::over_tools("", SNAPSHOT)).cap(32 << 20);
    let scripts = hosts.iter().map(|h| (h.clone(), script.clone())).collect();
    let outcomes = script::on_each(remote, scripts).await;
    outcomes.into_iter().map(|(host, o)| (host, o.ok().and_then(|text| Snapshot::parse(&text)))).collect()
}

fn normal(raw: &str) -> String {
    let mut out = String::new();
    let mut table: Vec<String> = Vec::new();
    for line in raw.lines() {
        let line = without_counters(line);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if line.starts_with("save=") {
            out.push_str(&line);
            out.push('\n');
        } else if line == "COMMIT" {
            if table.iter().any(|l| says_something(l)) {
                for line in table.drain(..) {
                    out.push_str(&line);
                    out.push('\n');
                }
            }
            table.clear();
        } else {
            table.push(line);
        }
    }
    out
}

/// Everything but a table's head and a built-in chain that accepts.
fn says_something(line: &str) -> bool {
    let accepting_chain = line.starts_with(':') && line.ends_with(" ACCEPT");
    !accepting_chain && !line.starts_with('*')
}

/// Without `[packets:bytes]`, which stands before a rule and after a chain.
fn without_counters(line: &str) -> String {
    let is_counter = |w: &str| {
        let inner = w.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        let pair = inner.and_then(|i| i.split_once(':'));
        pair.is_some_and(|(a, b)| {
            [a, b].iter().all(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
        })
    };
    if let Some((first, rest)) = line.split_once(' ')
        && is_counter(first)
    {
        return rest.to_owned();
    }
    match line.rsplit_once(' ') {
        Some((rest, last)) if line.starts_with(':') && is_counter(last) => rest.to_owned(),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Snapshot {
        Snapshot::parse(&format!("{text}\nend=snapshot\n")).unwrap()
    }

    #[test]
    fn counters_dates_and_empty_tables_do_not_count_but_all_else_does() {
        let before = "save=iptables-nft\n# Generated on Monday\n*filter\n:INPUT DROP [1:2]\n:KUBE-FORWARD - [0:0]\n\
                      [3:4] -A INPUT -i lo -j ACCEPT\nCOMMIT\n# Completed";
        let after = "save=iptables-nft\n# Generated on Tuesday\n*raw\n:PREROUTING ACCEPT [9:9]\nCOMMIT\n*filter\n\
                     :INPUT DROP [10:20]\n:KUBE-FORWARD - [0:0]\n[30:40] -A INPUT -i lo -j ACCEPT\nCOMMIT";
        assert_eq!(of(before).digest, of(after).digest);
        assert_eq!(of(before).normal.lines().count(), 5);
        for change in [("INPUT DROP", "INPUT ACCEPT"), ("-i lo", "-i eth0"), (":KUBE-FORWARD - [0:0]\n", "")]
        {
            assert_ne!(of(before).digest, of(&before.replace(change.0, change.1)).digest, "{change:?}");
        }
    }

    #[test]
    fn what_is_not_whole_is_no_snapshot() {
        assert!(Snapshot::parse("save=iptables-nft\n*filter\n").is_err());
        assert_eq!(
            Snapshot::parse("failed=iptables-nft-save\nend=snapshot\n"),
            Err("iptables-nft-save failed".into())
        );
    }
}
