//! The catalogue of partitions: every shape, and what each choice of packets takes of a connection.

use std::fmt::Write as _;

use crate::fault::packets::Packets;
use crate::fault::probe::Method;

/// A shape, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeWords {
    /// Its name.
    pub name: &'static str,
    /// How a scenario writes it.
    pub written: &'static str,
    /// Who no longer hears whom.
    pub does: &'static str,
}

/// Every shape.
pub const SHAPES: &[ShapeWords] = &[
    ShapeWords {
        name: "rack-split",
        written: "rack-split: [rack:a, others]",
        does: "two sets no longer hear each other; within each, all is as before",
    },
    ShapeWords {
        name: "isolate",
        written: "isolate: one of role:etcd",
        does: "the hosts of a set hear nobody outside it and are heard by nobody there",
    },
    ShapeWords {
        name: "one-way",
        written: "one-way: [rack:a, rack:b]",
        does: "packets of the first set no longer reach the second; UDP goes back, answers do not come",
    },
    ShapeWords {
        name: "bridge",
        written: "bridge: [rack:a, rack:b]",
        does: "two sets no longer hear each other; the hosts in neither hear both",
    },
    ShapeWords {
        name: "halves",
        written: "halves: role:control-plane + role:etcd",
        does: "a set is split in two in the order of the inventory, the smaller half first",
    },
    ShapeWords {
        name: "majorities-ring",
        written: "majorities-ring: role:etcd",
        does: "every host of a set hears a majority of it, itself included, no two the same one",
    },
    ShapeWords {
        name: "random",
        written: "random: {of: all, share: 20%}",
        does: "so many of the pairs of a set no longer hear each other, drawn from the seed of the run",
    },
    ShapeWords {
        name: "all-but",
        written: "all-but: [rack:a, role:etcd]",
        does: "the hosts of the first set hear nobody but the second, not even each other",
    },
];

/// Choices of packets as a scenario writes them.
const PACKETS: [&str; 7] = [
    "{}",
    "{reject: true}",
    "{new: true}",
    "{ports: [2379, 2380]}",
    "{ports: [6443], new: true}",
    "{ports: [6443], reject: true}",
    "{longer-than: 1000}",
];

/// The table of shapes for `docs/faults.md`.
#[must_use]
pub fn shapes() -> String {
    let mut text = String::from("| shape | written | who no longer hears whom |\n|---|---|---|\n");
    for s in SHAPES {
        let _ = writeln!(text, "| {} | `{}` | {} |", s.name, s.written, s.does);
    }
    text
}

/// What each choice of packets takes of an edge A → B, for `docs/faults.md`: as plans have it.
#[must_use]
pub fn packets() -> String {
    let mut text = String::from(
        "| `packets` | TCP opened by A | TCP opened by B | TCP open already | UDP to B | ping by A | ping by B | ping by A, long |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for written in PACKETS {
        let packets = parsed(written);
        let port = packets.ports.first().map_or(0, |p| p.get());
        let (tcp, long) = (Method::Tcp(port), Method::Long(packets.longer_than.unwrap_or(1_000) + 1));
        let taken = [
            packets.takes(tcp, false),
            packets.takes(tcp, true),
            packets.cuts_port(port),
            packets.takes(Method::Udp(port), false),
            packets.takes(Method::Ping, false),
            packets.takes(Method::Ping, true),
            packets.takes(long, false),
        ];
        let cells = taken.map(|t| if t { "x" } else { "." }).join(" | ");
        let _ = writeln!(text, "| `{written}` | {cells} |");
    }
    text
}

/// # Panics
/// If the catalogue holds what no scenario could; its test would have said so.
fn parsed(written: &'static str) -> Packets {
    crate::yaml::Source { origin: "the catalogue", text: written }
        .parse()
        .unwrap_or_else(|e| unreachable!("the catalogue: {e}"))
}

#[cfg(test)]
mod tests {
    use super::super::shape::ShapeSpec;
    use super::*;

    #[test]
    fn what_is_shown_can_be_written() {
        for shape in SHAPES {
            let source = crate::yaml::Source { origin: "the catalogue", text: shape.written };
            let spec: ShapeSpec = source.parse().unwrap();
            let word = serde_json::to_value(spec).unwrap();
            assert_eq!(word.as_object().unwrap().keys().next().unwrap(), shape.name);
        }
        assert!(packets().contains("`{}` | x | x | x | x | x | x | x |"));
    }
}
