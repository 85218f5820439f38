//! A plan as people read it: who no longer hears whom, and for each host every command and its undo.

use std::fmt::{self, Write as _};

use super::packets::Packets;
use super::plan::Plan;
use super::probe::Method;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "fault {} ({}): {} directed edges on {} hosts",
            self.name,
            self.id,
            self.edges.len(),
            self.hosts.len()
        )?;
        writeln!(f, "a host that hears nothing of its controller for {} s undoes it by itself", self.ttl_s)?;
        self.matrix(f)?;
        writeln!(f, "\nnever matched by a rule:")?;
        for (address, why) in &self.protected {
            writeln!(f, "  {address}  {why}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "note: {warning}")?;
        }
        for (host, plan) in &self.hosts {
            writeln!(f, "\n{host}: staged (nothing acts yet)")?;
            indented(f, &plan.part.stage)?;
            writeln!(f, "{host}: committed")?;
            indented(f, &plan.part.commit)?;
            writeln!(f, "{host}: undone")?;
            indented(f, &plan.part.undo)?;
        }
        Ok(())
    }
}

/// Packets of one kind, in words; of a question, whether the pair hears each other depends on the answer too.
struct Class {
    words: String,
    method: Method,
    question: bool,
}

impl Class {
    /// Every kind of which a plan may take some.
    fn of(packets: &Packets) -> Vec<Self> {
        let class = |words: String, method, question| Self { words, method, question };
        if let Some(longest) = packets.longer_than {
            let words = format!("packets of more than {longest} bytes");
            return vec![class(words, Method::Long(longest + 1), false)];
        }
        let ports: Vec<String> = packets.ports.iter().map(ToString::to_string).collect();
        let to = match ports.as_slice() {
            [] => String::new(),
            [one] => format!(" to port {one}"),
            many => format!(" to ports {}", many.join(", ")),
        };
        let port = packets.ports.first().map_or(0, |p| p.get());
        let mut classes = vec![
            class(format!("UDP datagrams{to}"), Method::Udp(port), false),
            class(format!("TCP connections{to}"), Method::Tcp(port), true),
        ];
        if ports.is_empty() {
            classes.push(class("ping".to_owned(), Method::Ping, true));
        }
        classes
    }

    fn passes(&self, plan: &Plan, from: &str, to: &str) -> bool {
        if self.question { plan.answered(from, to, self.method) } else { plan.heard(from, to, self.method) }
    }
}

impl Plan {
    /// What is taken of the edges, and for each kind of packets who reaches whom. Kinds that fare alike share a table.
    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(words) = self.packets.words() {
            writeln!(f, "taken: {words}")?;
        }
        if let Some(flap) = self.flap {
            writeln!(f, "it comes and goes: {}", flap.words())?;
        }
        let mut tables: Vec<(Vec<String>, String)> = Vec::new();
        let mut untouched = Vec::new();
        for class in Class::of(&self.packets) {
            let (table, cut) = self.table(&class);
            if !cut {
                untouched.push(class.words);
            } else if let Some((words, _)) = tables.iter_mut().find(|(_, t)| *t == table) {
                words.push(class.words);
            } else {
                tables.push((vec![class.words], table));
            }
        }
        writeln!(f, "\nwho is heard by whom (row to column; x: no longer):")?;
        for (words, table) in &tables {
            write!(f, "  {}\n{table}", words.join(", "))?;
        }
        if !self.packets.ports.is_empty() || self.packets.longer_than.is_some() {
            untouched.push("everything else".to_owned());
        }
        if !untouched.is_empty() {
            writeln!(f, "  as before: {}", untouched.join(", "))?;
        }
        Ok(())
    }

    /// The table, and whether anything in it is cut.
    fn table(&self, class: &Class) -> (String, bool) {
        let names: Vec<&String> = self.hosts.keys().collect();
        let width = names.iter().map(|n| n.len()).max().unwrap_or_default().max(2);
        let mut text = format!("  {:width$}", "");
        let mut cut = false;
        for to in &names {
            let _ = write!(text, " {to:>width$}");
        }
        text.push('\n');
        for from in &names {
            let _ = write!(text, "  {from:width$}");
            for to in &names {
                let mark = match (from == to, class.passes(self, from, to)) {
                    (true, _) => "",
                    (false, true) => ".",
                    (false, false) => {
                        cut = true;
                        "x"
                    }
                };
                let _ = write!(text, " {mark:>width$}");
            }
            text.push('\n');
        }
        (text, cut)
    }
}

fn indented(f: &mut fmt::Formatter<'_>, script: &str) -> fmt::Result {
    script.lines().try_for_each(|line| writeln!(f, "    {line}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::address::Block;
    use super::super::flap::Flap;
    use super::super::plan::{Request, Sides, Target};
    use super::super::shape::Shape;
    use super::super::survey::{HostFacts, Survey};
    use super::*;

    fn plan(shape: &Shape, packets: &str, flap: Option<Flap>) -> Plan {
        let packets = crate::yaml::Source { origin: "a test", text: packets }.parse().unwrap();
        let facts = "boot=b1\nuid=0\nclient=198.18.0.1 4 22\nsupervisor=systemd\n\
                     tool=iptables-nft 1 iptables v1.8.9 (nf_tables)\nend=survey\n";
        let facts = HostFacts::parse(facts).unwrap();
        let hosts = BTreeMap::from([("m1", "198.18.1.11"), ("m2", "198.18.2.12"), ("w2", "198.18.2.22")]);
        let survey: Survey = hosts.keys().map(|h| ((*h).to_owned(), Ok(facts.clone()))).collect();
        let target = |(host, address): (&&str, &&str)| {
            let address = address.parse().unwrap();
            Target {
                host: (*host).to_owned(),
                blocks: vec![Block::single(address)],
                known: vec![address],
                probe_port: 22,
                run_dir: "/run/rackrift".to_owned(),
            }
        };
        let request = Request {
            id: "k3x9a2bq-1".parse().unwrap(),
            name: format!("{}-1", shape.name()),
            edges: shape.edges().unwrap(),
            targets: hosts.iter().map(target).collect(),
            protected: vec![],
            ttl: Duration::from_secs(20),
            sides: Sides::Both,
            packets,
            flap,
        };
        Plan::build(&request, &survey).unwrap()
    }

    fn names(hosts: &[&str]) -> Vec<String> {
        hosts.iter().map(|h| (*h).to_owned()).collect()
    }

    #[test]
    fn kinds_of_packets_that_fare_alike_share_a_table() {
        let split = Shape::RackSplit { a: names(&["m1"]), b: names(&["m2", "w2"]) };
        let one_way = Shape::OneWay { from: names(&["m1"]), to: names(&["m2", "w2"]) };
        let flap = Flap {
            on: "5s".parse().unwrap(),
            off: "3s".parse().unwrap(),
            jitter: Some("1s".parse().unwrap()),
            seed: 1,
        };
        let mut told = String::new();
        for (shape, packets, flap) in [
            (&split, "{}", None),
            (&one_way, "{}", None),
            (&one_way, "{new: true}", None),
            (&split, "{ports: [2379, 2380], reject: true}", None),
            (&split, "{longer-than: 1000}", Some(flap)),
        ] {
            let text = plan(shape, packets, flap).to_string();
            told += text.split("\nnever matched").next().unwrap();
            told += "\n";
        }
        insta::assert_snapshot!(told);
    }

    #[test]
    fn a_plan_shows_every_command_and_its_undo() {
        let split = Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) };
        let flap = Flap { on: "5s".parse().unwrap(), off: "3s".parse().unwrap(), jitter: None, seed: 0 };
        let text = plan(&split, "{ports: [2379], reject: true}", Some(flap)).to_string();
        // All 64 times are alike without jitter.
        insta::assert_snapshot!(text.replace(&"    5.000 3.000\n".repeat(62), "    ...\n"));
    }
}
