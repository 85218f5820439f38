//! Which packets a partition takes: all, or those of some ports, of new connections, above a size; and how.
//!
//! No connection tracking is used: a host that tracks nothing would begin to, and a connection that was open before
//! would look new. What opens a connection can be told from the packet alone in TCP (`SYN` without `ACK`) and in ping
//! (the request); UDP has no connections, so it is left alone by [`Packets::new`].
//!
//! # Invariants
//! * [`Packets::takes`] says of each kind of question what [`Packets::matches`] makes the kernel do.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::address::Family;
use super::probe::Method;

/// The most that one match of the kernel's `multiport` takes.
const MOST_PORTS: usize = 15;
/// Bounds of [`Packets::longer_than`], bytes: a connection can still be opened, and no tunnel's packet is split.
const LENGTHS: std::ops::RangeInclusive<u16> = 100..=1_400;

/// Which packets are taken. The default: all of them, without a word to the sender.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Packets {
    /// Only TCP and UDP with one of these as source or destination port, 15 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NonZeroU16>,
    /// Only what opens a connection: `SYN` of TCP, requests of ping. What is open stays open; UDP passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
    /// Only packets of more than so many bytes, headers of IP included: 100 to 1400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 1400))]
    pub longer_than: Option<u16>,
    /// The sender is told (a reset of TCP, "port unreachable" for the rest) instead of left waiting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reject: bool,
}

/// Reads and refuses what does not fit together, where its line and column are still known.
pub(crate) fn checked<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Packets, D::Error> {
    let packets = Packets::deserialize(d)?;
    packets.misfit().map_or(Ok(packets), |wrong| Err(serde::de::Error::custom(wrong)))
}

impl Packets {
    fn misfit(&self) -> Option<String> {
        if self.ports.len() > MOST_PORTS {
            return Some(format!("`ports` names {} and may name {MOST_PORTS}", self.ports.len()));
        }
        if let Some(port) = (1..self.ports.len()).find(|i| self.ports[..*i].contains(&self.ports[*i])) {
            return Some(format!("`ports` names {} twice", self.ports[port]));
        }
        match self.longer_than {
            Some(n) if !LENGTHS.contains(&n) => {
                Some(format!("`longer-than: {n}` is not from {} to {} bytes", LENGTHS.start(), LENGTHS.end()))
            }
            Some(_) if self.new => Some(
                "`new` and `longer-than` take nothing together: what opens a connection is short".to_owned(),
            ),
            Some(_) if !self.ports.is_empty() => Some(
                "`ports` and `longer-than` do not go together: no probe could tell whether it bites"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Whether all are taken, silently.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a packet is taken that puts a question of this kind, or is the answer to it.
    #[must_use]
    pub fn takes(&self, method: Method, answer: bool) -> bool {
        let opens = !(self.new && answer);
        let of_ports = |port| self.ports.is_empty() || self.ports.iter().any(|p| p.get() == port);
        match method {
            Method::Ping => self.ports.is_empty() && self.longer_than.is_none() && opens,
            Method::Long(bytes) => {
                self.ports.is_empty() && self.longer_than.is_none_or(|n| bytes > n) && opens
            }
            Method::Tcp(port) => of_ports(port) && self.longer_than.is_none() && opens,
            Method::Udp(port) => of_ports(port) && self.longer_than.is_none() && !self.new,
        }
    }

    /// Whether every connection to a port of TCP is cut, those that are open too.
    #[must_use]
    pub fn cuts_port(&self, port: u16) -> bool {
        self.takes(Method::Tcp(port), false) && self.takes(Method::Tcp(port), true)
    }

    /// Each rule's match and target, as iptables takes them: `-p tcp -j DROP`.
    pub(super) fn matches(&self, family: Family) -> Vec<String> {
        let mut common = String::new();
        if !self.ports.is_empty() {
            let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
            let _ = write!(common, " -m multiport --ports {}", ports.join(","));
        }
        if let Some(longest) = self.longer_than {
            let _ = write!(common, " -m length --length {}:65535", longest + 1);
        }
        let echo = match family {
            Family::V4 => "-p icmp -m icmp --icmp-type 8",
            Family::V6 => "-p ipv6-icmp -m icmp6 --icmpv6-type 128",
        };
        let tcp = if self.new { "-p tcp -m tcp --syn" } else { "-p tcp" };
        let mut kinds = Vec::new();
        if self.new || self.reject || !self.ports.is_empty() {
            kinds.push(tcp);
        }
        match (self.new, self.ports.is_empty()) {
            (true, true) => kinds.push(echo),
            (true, false) => {}
            (false, true) => kinds.push(""),
            (false, false) => kinds.push("-p udp"),
        }
        kinds
            .into_iter()
            .map(|kind| {
                let target = match (self.reject, kind.starts_with("-p tcp"), family) {
                    (false, _, _) => "DROP",
                    (true, true, _) => "REJECT --reject-with tcp-reset",
                    (true, false, Family::V4) => "REJECT --reject-with icmp-port-unreachable",
                    (true, false, Family::V6) => "REJECT --reject-with icmp6-port-unreachable",
                };
                format!("{kind}{common} -j {target}").trim_start().to_owned()
            })
            .collect()
    }

    /// What is taken, in a few words; none if it is everything, silently.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let mut words = Vec::new();
        if self.new {
            words.push("new connections".to_owned());
        }
        match self.ports.as_slice() {
            [] => {}
            [one] => words.push(format!("port {one}")),
            all => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                words.push(format!("ports {}", all.join(", ")));
            }
        }
        words.extend(self.longer_than.map(|n| format!("longer than {n} bytes")));
        if self.reject {
            words.push("refused".to_owned());
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::yaml::Source;

    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(deserialize_with = "checked")]
        packets: Packets,
    }

    fn read(text: &str) -> Result<Packets, String> {
        let text = format!("packets: {text}");
        let read: Result<Holder, _> = Source { origin: "a test", text: &text }.parse();
        read.map(|h| h.packets).map_err(|e| e.to_string())
    }

    #[test]
    fn rules_of_each_mode() {
        let mut told = String::new();
        for text in [
            "{}",
            "{reject: true}",
            "{new: true}",
            "{new: true, ports: [6443]}",
            "{ports: [2379, 2380]}",
            "{ports: [2379], reject: true}",
            "{longer-than: 1000}",
            "{longer-than: 1000, reject: true}",
        ] {
            let packets = read(text).unwrap();
            let _ = writeln!(told, "{text}: {}", packets.words().unwrap_or_default());
            for family in Family::ALL {
                for rule in packets.matches(family) {
                    let _ = writeln!(told, "  {family}: {rule}");
                }
            }
        }
        insta::assert_snapshot!(told);
    }

    #[test]
    fn what_takes_nothing_or_what_the_kernel_does_not_take_is_refused_with_its_place() {
        let wrong = [
            "{ports: [0]}",
            "{ports: [70000]}",
            "{ports: [22, 22]}",
            "{ports: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}",
            "{longer-than: 20}",
            "{longer-than: 1000, new: true}",
            "{longer-than: 1000, ports: [8472]}",
            "{port: 22}",
        ];
        let said: Vec<String> = wrong.iter().map(|w| read(w).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    fn packets() -> impl Strategy<Value = Packets> {
        let ports = proptest::collection::btree_set(1_u16..60, 0..4);
        (ports, any::<bool>(), proptest::option::of(100_u16..=1_400), any::<bool>()).prop_map(
            |(ports, new, longer_than, reject)| {
                let no_ports = ports.is_empty();
                Packets {
                    ports: ports.into_iter().filter_map(NonZeroU16::new).collect(),
                    new,
                    longer_than: longer_than.filter(|_| !new && no_ports),
                    reject,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(p in packets()) {
            let text = serde_json::to_string(&p).unwrap();
            prop_assert_eq!(read(&text).unwrap(), p);
        }

        /// The rule's text against the table, by a reader of the text that knows nothing of the table.
        #[test]
        fn the_table_agrees_with_the_rules(p in packets(), port in 1_u16..60, answer: bool) {
            for family in Family::ALL {
                let rules = p.matches(family);
                let taken = |kind: &str, opening: bool, length: u32| {
                    rules.iter().any(|rule| {
                        let proto = rule.split("-p ").nth(1).and_then(|r| r.split(' ').next());
                        let proto_fits = proto.is_none_or(|p| p == kind || (kind == "ping" && p.contains("icmp")));
                        let opens_only = rule.contains("--syn") || rule.contains("-type");
                        let ports = rule.split("--ports ").nth(1).and_then(|r| r.split(' ').next());
                        let port_fits = ports.is_none_or(|l| kind != "ping" && l.split(',').any(|x| x == port.to_string()));
                        let least = rule.split("--length ").nth(1).and_then(|r| r.split(':').next());
                        let least: u32 = least.map_or(0, |l| l.parse().unwrap());
                        proto_fits && port_fits && length >= least && (opening || !opens_only)
                    })
                };
                prop_assert_eq!(taken("tcp", !answer, 60), p.takes(Method::Tcp(port), answer));
                prop_assert_eq!(taken("udp", !answer, 60), p.takes(Method::Udp(port), answer));
                prop_assert_eq!(taken("ping", !answer, 84), p.takes(Method::Ping, answer));
                prop_assert_eq!(taken("ping", !answer, 1_448), p.takes(Method::Long(1_448), answer));
            }
        }
    }
}
