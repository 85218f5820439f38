//! Packets that a host sends: delayed, lost, doubled, damaged, reordered, slowed down.
//!
//! One `htb` root with the handle `5b00:` on each device that leads there: class 1 is unshaped, class 10 has the
//! rate and, if more than a rate is asked for, a `netem` leaf. `htb` because its default class is ours to choose, so that
//! nothing unasked falls into class 10 (with `prio` it can, by its default priority map), and because kernels have it
//! that lack `prio`.
//!
//! # Invariants
//! * A root that is not an implicit default (handle `0:`) is refused, never replaced.
//! * Towards "all" means: but for protected addresses.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::amount::{BitRate, Percent};
use super::{Ground, Lines, No};
use crate::fault::script;
use crate::length::Length;

const TRAFFIC: &str = include_str!("../sh/traffic.sh");

/// A rate that shapes nothing.
const UNSHAPED: &str = "100gbit quantum 60000";

/// Bits a second for which a queue is made if no rate is asked for.
const FAST: u64 = 10_000_000_000;

/// What becomes of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Towards these hosts, as a selector; absent: towards all but protected addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Only TCP and UDP of this port, as source or as destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<NonZeroU16>,
    /// Each packet leaves so much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Length>,
    /// The delay varies by so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Length>,
    /// How it varies; uniformly if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// So many are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Percent>,
    /// Losses come in bursts of so many packets on average (Gilbert's model).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<NonZeroU16>,
    /// So many are sent twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Percent>,
    /// So many have a bit flipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Percent>,
    /// So many are sent at once, past those that wait for their delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Percent>,
    /// No more than so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
}

/// How a delay varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Bell-shaped.
    Normal,
    /// With a long tail.
    Pareto,
    /// A mix of both.
    Paretonormal,
}

/// Reads and refuses what does not fit together, where its line and column are still known.
pub(super) fn checked<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Traffic, D::Error> {
    let traffic = Traffic::deserialize(d)?;
    traffic.misfit().map_or(Ok(traffic), |wrong| Err(serde::de::Error::custom(wrong)))
}

impl Traffic {
    /// What does not fit together, if anything.
    fn misfit(&self) -> Option<String> {
        let needs = [
            ("reorder", self.reorder.is_some(), "delay", self.delay.is_some()),
            ("jitter", self.jitter.is_some(), "delay", self.delay.is_some()),
            ("distribution", self.distribution.is_some(), "jitter", self.jitter.is_some()),
            ("burst", self.burst.is_some(), "loss", self.loss.is_some()),
        ];
        if let Some((what, _, other, _)) = needs.iter().find(|(_, has, _, other)| *has && !other) {
            return Some(format!("`{what}` needs `{other}`"));
        }
        if self.jitter > self.delay {
            return Some("`jitter` is larger than `delay`".to_owned());
        }
        (self.netem().is_none() && self.rate.is_none())
            .then(|| "nothing is asked for: write delay, loss, duplicate, corrupt or rate".to_owned())
    }

    pub(super) fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(delay) = self.delay {
            let jitter = self.jitter.map_or_else(String::new, |j| format!(" ± {j}"));
            parts.push(format!("{delay}{jitter} late"));
        }
        for (share, what) in [
            (self.loss, "lost"),
            (self.duplicate, "doubled"),
            (self.corrupt, "damaged"),
            (self.reorder, "out of order"),
        ] {
            parts.extend(share.map(|s| format!("{s} {what}")));
        }
        parts.extend(self.rate.map(|r| format!("at most {r}/s")));
        let port = self.port.map_or_else(String::new, |p| format!(" of port {p}"));
        let to = self.to.as_ref().map_or_else(String::new, |t| format!(" to {t}"));
        format!("packets{port}{to}: {}", parts.join(", "))
    }

    /// The arguments of `netem`; none if a rate is all that is asked for.
    fn netem(&self) -> Option<String> {
        let mut s = String::new();
        if let Some(delay) = self.delay {
            let _ = write!(s, " delay {delay}");
            if let Some(jitter) = self.jitter {
                let _ = write!(s, " {jitter}");
                let word = self.distribution.map(|d| match d {
                    Distribution::Normal => "normal",
                    Distribution::Pareto => "pareto",
                    Distribution::Paretonormal => "paretonormal",
                });
                let _ = word.map(|w| write!(s, " distribution {w}"));
            }
        }
        match (self.loss, self.burst) {
            (Some(loss), None) => {
                let _ = write!(s, " loss random {loss}");
            }
            (Some(loss), Some(burst)) => {
                let (p, r) = gilbert(loss, burst);
                let _ = write!(s, " loss gemodel {p:.4}% {r:.4}%");
            }
            (None, _) => {}
        }
        for (share, word) in
            [(self.duplicate, "duplicate"), (self.corrupt, "corrupt"), (self.reorder, "reorder")]
        {
            let _ = share.map(|share| write!(s, " {word} {share}"));
        }
        (!s.is_empty()).then(|| format!("limit {}{s}", self.limit()))
    }

    /// How many packets the queue must hold so that it loses none by itself: twice what is under way at 800 bytes a
    /// packet (small for a mean, so the queue is large), at least netem's own default.
    fn limit(&self) -> u64 {
        let longest = self.delay.map_or(0, |d| d.duration().as_millis())
            + self.jitter.map_or(0, |j| j.duration().as_millis());
        let rate = self.rate.map_or(FAST, BitRate::bits);
        let bytes = u128::from(rate) / 8 * longest / 1_000;
        u64::try_from((bytes / 800 * 2).clamp(1_000, 10_000_000)).unwrap_or(1_000)
    }

    /// `device=DEVICE ROOT` for each device that leads there, `netem=yes`, `tc=yes`, `kernel=`, `os=`.
    pub(super) fn scout(&self, peers: &[IpAddr]) -> String {
        let devices = if self.to.is_some() {
            let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
            format!(
                "for rr_a in {}; do ip -o route get \"$rr_a\" 2>/dev/null | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p'; done",
                peers.join(" ")
            )
        } else {
            "ip -o addr show scope global 2>/dev/null | while read -r _ rr_d _; do echo \"$rr_d\"; done"
                .to_owned()
        };
        format!(
            r#"{TRAFFIC}command -v tc >/dev/null 2>&1 && echo tc=yes
unshare --net tc qdisc add dev lo root netem delay 1ms 2>/dev/null && echo netem=yes
echo "kernel=$(uname -r)"
echo "os=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null)"
{{ {devices}; }} | sort -u | while read -r rr_d; do
    [ "$rr_d" = lo ] || echo "device=$rr_d $(rr_root "$rr_d")"
done
"#
        )
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let told = |key| script::value(ground.scouted, key);
        if told("tc") != Some("yes") {
            return Err(No::Missing("tc; install iproute2 there".to_owned()));
        }
        if self.netem().is_some() && told("netem") != Some("yes") {
            return Err(No::Missing(no_netem(told("os").unwrap_or(""), told("kernel").unwrap_or(""))));
        }
        let devices: Vec<(&str, &str)> = script::pairs(ground.scouted)
            .filter(|(key, _)| *key == "device")
            .filter_map(|(_, value)| value.split_once(' '))
            .collect();
        if devices.is_empty() {
            return Err(No::Refused("no device there leads to them".to_owned()));
        }
        let mut lines = Lines { undo: TRAFFIC.to_owned(), look: TRAFFIC.to_owned(), ..Lines::default() };
        lines.commit.push_str(TRAFFIC);
        for (device, root) in devices {
            // `qdisc KIND HANDLE root ...`; what the kernel put there by itself has the handle 0.
            if root.split(' ').nth(2) != Some("0:") {
                return Err(No::Refused(format!(
                    "{device} has a qdisc of its own ({root}); it is left alone"
                )));
            }
            self.device(device, ground, &mut lines);
        }
        Ok(lines)
    }

    fn device(&self, device: &str, ground: &Ground<'_>, lines: &mut Lines) {
        let (default, chosen, class) = if self.to.is_some() || self.port.is_some() {
            (1, ground.peers, 10)
        } else {
            (10, ground.protected, 1)
        };
        let rate = self.rate.map_or_else(|| UNSHAPED.to_owned(), |r| format!("{}bit", r.bits()));
        let mut steps = vec![
            format!("qdisc add dev {device} root handle 5b00: htb default {default}"),
            format!("class add dev {device} parent 5b00: classid 5b00:1 htb rate {UNSHAPED}"),
        ];
        let shaped = [
            Some(format!("class add dev {device} parent 5b00: classid 5b00:10 htb rate {rate}")),
            self.netem().map(|n| format!("qdisc add dev {device} parent 5b00:10 handle 5b10: netem {n}")),
        ];
        let filters = self.filters(device, chosen, class);
        // What is spared comes first, so that nothing protected passes through the shaped class even for a moment.
        if class == 1 {
            steps.extend(filters);
            steps.extend(shaped.into_iter().flatten());
        } else {
            steps.extend(shaped.into_iter().flatten());
            steps.extend(filters);
        }
        let _ = write!(
            lines.commit,
            "if ! rr_ours {device}; then\n    echo {device} >>\"$dir/devices\"\n    {} || bad=\"$bad tc on {device};\"\nfi\n",
            steps.iter().map(|s| format!("tc {s}")).collect::<Vec<_>>().join(" &&\n        ")
        );
        let _ = writeln!(
            lines.undo,
            "if grep -qx {device} \"$dir/devices\" 2>/dev/null && rr_ours {device}; then tc qdisc del dev {device} root handle 5b00:; fi"
        );
        let _ = writeln!(
            lines.left,
            "if grep -qx {device} \"$dir/devices\" 2>/dev/null && rr_ours {device}; then echo 'the qdisc on {device} is still there'; fi"
        );
        let probe = ground.peers.first().map_or_else(String::new, |peer| {
            let six = if peer.is_ipv6() { " -6" } else { "" };
            format!("rr_trip=$(ping{six} -n -c 3 -i 0.2 -W 2 {peer} 2>/dev/null </dev/null | sed -n 's|^r.* = [^/]*/\\([^/]*\\)/.*|, a round trip to {peer} takes \\1 ms|p')\n    ")
        });
        let _ = write!(
            lines.look,
            r#"if rr_ours {device}; then
    rr_trip=
    {probe}rr_sent=$(tc -s class show dev {device} | sed -n '/^class htb 5b00:10 /,/^ rate/s/^ Sent [0-9]* bytes \([0-9]*\) pkt (dropped \([0-9]*\),.*/\1 \2/p' | head -n 1)
    if [ "${{rr_sent%% *}}" -gt 0 ] 2>/dev/null; then
        echo "sign=yes {device}: ${{rr_sent%% *}} packets went through it, ${{rr_sent#* }} were dropped$rr_trip"
    else
        echo "sign=no {device}: no packet went through it yet"
    fi
else
    echo "sign=no {device}: the qdisc is gone"
fi
"#
        );
    }

    /// Filters that put packets towards these addresses, of the port if there is one, into a class.
    fn filters(&self, device: &str, addresses: &[IpAddr], class: u8) -> Vec<String> {
        let mut all = Vec::new();
        let mut add = |v6: bool, matches: String| {
            let (protocol, priority) = if v6 { ("ipv6", 11) } else { ("ip", 10) };
            all.push(format!(
                "filter add dev {device} parent 5b00: protocol {protocol} prio {priority} u32 {matches} flowid 5b00:{class}"
            ));
        };
        let ports = |v6: bool| -> Vec<String> {
            let word = if v6 { "ip6" } else { "ip" };
            match self.port {
                None => vec![String::new()],
                Some(port) => ["dport", "sport"].map(|p| format!(" match {word} {p} {port} 0xffff")).to_vec(),
            }
        };
        for address in addresses {
            let v6 = address.is_ipv6();
            let one = if v6 {
                format!("match ip6 dst {address}/128")
            } else {
                format!("match ip dst {address}/32")
            };
            for port in if class == 1 { vec![String::new()] } else { ports(v6) } {
                add(v6, format!("{one}{port}"));
            }
        }
        if self.to.is_none() && self.port.is_some() {
            for v6 in [false, true] {
                for port in ports(v6) {
                    add(v6, port.trim_start().to_owned());
                }
            }
        }
        all
    }
}

/// Gilbert's model: the chances in percent to enter and to leave the state in which all packets are lost.
///
/// Bursts of `n` packets on average leave it with 1/n a packet; with `loss` in the long run, entering it has the
/// chance `loss / (1 - loss) / n` (Gilbert 1960, "Capacity of a burst-noise channel").
fn gilbert(loss: Percent, burst: NonZeroU16) -> (f64, f64) {
    let loss = f64::from(loss.thousandths()) / 100_000.0;
    let leave = 1.0 / f64::from(burst.get());
    let enter = if loss >= 1.0 { 1.0 } else { (loss / (1.0 - loss) * leave).min(1.0) };
    (enter * 100.0, leave * 100.0)
}

/// What is missing, and the package that has it for the kernel that runs.
fn no_netem(os: &str, kernel: &str) -> String {
    let os = os.trim_matches('"');
    let package = match os {
        "debian" => format!("linux-image-{kernel} (not the cloud flavour without modules)"),
        "ubuntu" => format!("linux-modules-extra-{kernel}"),
        "rhel" | "centos" | "rocky" | "almalinux" | "fedora" | "ol" => {
            format!("kernel-modules-extra-{kernel}")
        }
        _ => "the package with the extra modules of this kernel".to_owned(),
    };
    format!("the kernel {kernel} has no sch_netem; it comes with {package}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Traffic, String> {
        let text = &format!("traffic: {text}");
        match (crate::yaml::Source { origin: "a test", text }).parse() {
            Ok(super::super::What::Traffic(traffic)) => Ok(traffic),
            other => Err(format!("{}", other.unwrap_err())),
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_its_place() {
        let wrong = [
            "{reorder: 5%}",
            "{delay: 10ms, jitter: 20ms}",
            "{delay: 10ms, distribution: normal}",
            "{burst: 3, delay: 1ms}",
            "{to: rack:a}",
            "{port: 0, loss: 1%}",
            "{loss: 5}",
        ];
        let said: Vec<String> = wrong.iter().map(|w| read(w).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn netem_is_asked_for_what_is_written() {
        let of = |text: &str| read(text).unwrap().netem().unwrap();
        assert_eq!(
            of("{delay: 100ms, jitter: 10ms, distribution: normal, loss: 1%, rate: 10mbit}"),
            "limit 1000 delay 100ms 10ms distribution normal loss random 1%"
        );
        // 10 gbit/s for 0.1 s are 125 MB, 156,250 packets of 800 bytes.
        assert_eq!(of("{delay: 100ms, reorder: 25%}"), "limit 312500 delay 100ms reorder 25%");
        assert_eq!(of("{loss: 20%, burst: 4}"), "limit 1000 loss gemodel 6.2500% 25.0000%");
        assert!(read("{rate: 1mbit}").unwrap().netem().is_none());
    }
}
