//! What a partition is on one host: chains with rules, and the sh lines that stage, hook, unhook and show them.
//!
//! # Invariants
//! * Protected addresses return before anything is dropped, whatever port and state; so do the four neighbour
//!   discovery messages of IPv6, or the exemption would die with the neighbour cache.
//! * Chains are filled before they are hooked, and hooked at position 1.
//! * What this host itself refuses is answered over its loopback, and that answer is never taken: it bears the
//!   peer's address.
//! * A legacy table is never named unless the kernel has it loaded already: naming it would load it.

use std::fmt::Write as _;

use super::address::{Block, Family};
use super::flap::{self, Flap};
use super::host_loop;
use super::id::{FaultId, Way};
use super::iptables::{Backend, Tool};

/// ICMPv6 router solicitation and advertisement, neighbour solicitation and advertisement (RFC 4861).
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=136;

/// The table and the built-in chains in which packets of one way are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// The table.
    pub table: &'static str,
    /// The built-in chains.
    pub bases: &'static [&'static str],
}

impl Place {
    /// Where packets of one way are lost, or refused with an answer.
    #[must_use]
    pub const fn of(way: Way, reject: bool) -> Self {
        let (table, bases): (_, &[&str]) = match (way, reject) {
            (Way::In, false) => ("raw", &["PREROUTING"]),
            (Way::Out, false) => ("mangle", &["POSTROUTING"]),
            // FORWARD for the pods behind the host.
            (Way::In, true) => ("filter", &["INPUT", "FORWARD"]),
            (Way::Out, true) => ("filter", &["OUTPUT", "FORWARD"]),
        };
        Self { table, bases }
    }
}

/// What becomes of a peer's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They are taken: lost, or refused.
    Drop,
    /// They are counted and go on: the proof that the way back of a one-way cut is open.
    Count,
}

/// A rule of a chain.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rule {
    /// The peer's addresses.
    pub block: Block,
    /// The peer.
    pub peer: String,
    /// What becomes of its packets.
    pub action: Action,
}

/// A chain of ours and where it hangs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Hook {
    /// With which command.
    pub tool: Tool,
    /// Which way.
    pub way: Way,
    /// Where it hangs.
    pub place: Place,
    /// What returns before any rule.
    pub protected: Vec<Block>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether a sender is told; see [`Hook::lines`].
    pub told: bool,
    /// Match and target of what takes a peer's packets, as [`Packets::matches`] has them.
    ///
    /// [`Packets::matches`]: super::packets::Packets::matches
    pub takes: Vec<String>,
}

impl Hook {
    /// The jump's text after the built-in chain's name.
    fn jump(&self, id: &FaultId) -> String {
        format!("-m comment --comment {} -j {}", id.tag(), id.chain(self.way))
    }

    /// The chain's rules, as `iptables-restore` takes them.
    fn lines(&self, id: &FaultId) -> Vec<String> {
        let (chain, tag, flag) = (id.chain(self.way), id.tag(), self.way.flag());
        let comment = format!("-m comment --comment {tag}");
        let mut lines: Vec<String> =
            self.protected.iter().map(|p| format!("-A {chain} {flag} {p} {comment} -j RETURN")).collect();
        if self.tool.family == Family::V6 {
            lines.extend(NEIGHBOUR_DISCOVERY.map(|kind| {
                format!("-A {chain} -p ipv6-icmp -m icmp6 --icmpv6-type {kind} {comment} -j RETURN")
            }));
        }
        if self.told && self.way == Way::In {
            lines.push(format!("-A {chain} -i lo {comment} -j RETURN"));
        }
        for rule in &self.rules {
            let to = format!("-A {chain} {flag} {} {comment}", rule.block);
            match rule.action {
                Action::Drop => lines.extend(self.takes.iter().map(|takes| format!("{to} {takes}"))),
                Action::Count => lines.push(to),
            }
        }
        lines
    }

    /// Takes every jump away.
    fn unhook(&self, id: &FaultId) -> String {
        let (call, table, jump) = (self.tool.waiting(), self.place.table, self.jump(id));
        let down = |base| format!("while {call} -t {table} -D {base} {jump}; do :; done 2>/dev/null\n");
        self.place.bases.iter().map(down).collect()
    }

    /// A condition that holds if the table may be named without being loaded by that.
    fn loaded(&self) -> Option<String> {
        let (family, table) = (self.tool.family.nft(), self.place.table);
        (self.tool.backend == Backend::Legacy)
            .then(|| format!("grep -qx {table} /proc/net/{family}_tables_names 2>/dev/null"))
    }
}

/// The sh lines of a partition on one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// See [`super::script::HostPart::stage`].
    pub stage: String,
    /// See [`super::script::HostPart::commit`].
    pub commit: String,
    /// See [`super::script::HostPart::undo`].
    pub undo: String,
    /// See [`super::script::HostPart::left`].
    pub left: String,
    /// See [`super::script::HostPart::look`].
    pub look: String,
}

impl Lines {
    /// The lines for a host's chains.
    #[must_use]
    pub fn of(id: &FaultId, hooks: &[Hook], flap: Option<&Flap>) -> Self {
        let mut lines = Self::default();
        for family in Family::ALL {
            let of_family: Vec<&Hook> = hooks.iter().filter(|h| h.tool.family == family).collect();
            lines.stage(id, &of_family);
        }
        let (mut up, mut down) = (String::new(), String::new());
        for hook in hooks {
            up += &lines.hook(id, hook);
            down += &hook.unhook(id);
        }
        if let Some(flap) = flap {
            lines.stage += &flap.stage(&up, &down);
            // After the first hooks, and not if one of them failed.
            lines.commit += &format!("if [ -z \"$bad\" ]; then\n{}fi\n", host_loop::start(flap::NAME));
            lines.undo.insert_str(0, &host_loop::end(flap::NAME));
            lines.left.insert_str(0, &host_loop::left(flap::NAME));
            lines.look.insert_str(0, &flap::look());
        }
        lines
    }

    /// One `restore` a family: each table's part of it comes into the kernel whole or not at all.
    fn stage(&mut self, id: &FaultId, hooks: &[&Hook]) {
        let Some(first) = hooks.first() else { return };
        let (command, restore) = (&first.tool.command, first.tool.restore());
        let s = &mut self.stage;
        for hook in hooks.iter().filter(|h| h.tool.backend == Backend::Nft) {
            for base in hook.place.bases {
                let (family, table) = (hook.tool.family.nft(), hook.place.table);
                let _ = writeln!(s, "note_made {command} {family} {table} {base}");
            }
        }
        let _ =
            writeln!(s, "{restore} <<'RACKRIFT-RULES' || fail '{command}-restore did not take the rules'");
        for hook in hooks {
            let _ = writeln!(s, "*{}\n:{} - [0:0]", hook.place.table, id.chain(hook.way));
            for line in hook.lines(id) {
                let _ = writeln!(s, "{line}");
            }
            let _ = writeln!(s, "COMMIT");
        }
        let _ = writeln!(s, "RACKRIFT-RULES");
        for hook in hooks {
            let table = hook.place.table;
            let (chain, count) = (id.chain(hook.way), hook.lines(id).len());
            let _ = writeln!(
                s,
                "[ \"$({command}-save -t {table} | grep -c -e '^-A {chain} ')\" = {count} ] || \
                 fail '{command}: {chain} in {table} does not hold the rules it was given'"
            );
        }
    }

    /// Gives back what makes the chain act.
    fn hook(&mut self, id: &FaultId, hook: &Hook) -> String {
        let (table, jump, chain) = (hook.place.table, hook.jump(id), id.chain(hook.way));
        let (call, command) = (hook.tool.waiting(), &hook.tool.command);
        let mut up = String::new();
        let mut shown = String::new();
        for base in hook.place.bases {
            let _ = writeln!(
                up,
                "{call} -t {table} -C {base} {jump} 2>/dev/null ||\n    \
                 {call} -t {table} -I {base} 1 {jump} ||\n    bad=\"$bad {command}/{table}\""
            );
            let _ = write!(shown, "-e ' -A {base} ' ");
        }
        self.commit += &up;
        let undo = hook.unhook(id)
            + &format!(
                "{call} -t {table} -F {chain} 2>/dev/null\n\
                 {call} -t {table} -X {chain} 2>/dev/null\n"
            );
        let left = format!(
            "if seen=$({command}-save -t {table} 2>&1); then\n    \
             printf '%s\\n' \"$seen\" | grep -e '{chain}' | sed 's|^|{command} {table}: |'\n\
             else\n    echo \"{command} {table}: could not look: $seen\"\nfi\n"
        );
        let look = format!(
            "echo 'save={command} {table} {chain}'\n{} | grep {shown}-e '{chain}'\n",
            hook.tool.save(table)
        );
        for (to, text) in [(&mut self.undo, undo), (&mut self.left, left), (&mut self.look, look)] {
            match hook.loaded() {
                Some(condition) => {
                    let _ = write!(to, "if {condition}; then\n{text}fi\n");
                }
                None => to.push_str(&text),
            }
        }
        up
    }
}
