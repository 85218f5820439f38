//! What a partition is on one host: chains with rules, and the sh lines that stage, hook, unhook and show them.
//!
//! # Invariants
//! * Protected addresses return before anything is dropped, whatever port and state; so do the four neighbour
//!   discovery messages of IPv6, or the exemption would die with the neighbour cache.
//! * Chains are filled before they are hooked, and hooked at position 1.
//! * A legacy table is never named unless the kernel has it loaded already: naming it would load it.

use std::fmt::Write as _;

use super::address::{Block, Family};
use super::id::{FaultId, Way};
use super::iptables::{Backend, Tool};

/// ICMPv6 router solicitation and advertisement, neighbour solicitation and advertisement (RFC 4861).
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=136;

/// What becomes of a peer's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They are lost.
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
    /// What returns before any rule.
    pub protected: Vec<Block>,
    /// The rules.
    pub rules: Vec<Rule>,
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
        lines.extend(self.rules.iter().map(|r| match r.action {
            Action::Drop => format!("-A {chain} {flag} {} {comment} -j DROP", r.block),
            Action::Count => format!("-A {chain} {flag} {} {comment}", r.block),
        }));
        lines
    }

    /// A condition that holds if the table may be named without being loaded by that.
    fn loaded(&self, table: &str) -> Option<String> {
        let family = self.tool.family.nft();
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
    pub fn of(id: &FaultId, hooks: &[Hook]) -> Self {
        let mut lines = Self::default();
        for family in Family::ALL {
            let of_family: Vec<&Hook> = hooks.iter().filter(|h| h.tool.family == family).collect();
            lines.stage(id, &of_family);
        }
        for hook in hooks {
            lines.hook(id, hook);
        }
        lines
    }

    /// One `restore` a family: each table's part of it comes into the kernel whole or not at all.
    fn stage(&mut self, id: &FaultId, hooks: &[&Hook]) {
        let Some(first) = hooks.first() else { return };
        let (command, restore) = (&first.tool.command, first.tool.restore());
        let s = &mut self.stage;
        for hook in hooks.iter().filter(|h| h.tool.backend == Backend::Nft) {
            let (table, base) = hook.way.hook();
            let _ = writeln!(s, "note_made {command} {} {table} {base}", hook.tool.family.nft());
        }
        let _ =
            writeln!(s, "{restore} <<'RACKRIFT-RULES' || fail '{command}-restore did not take the rules'");
        for hook in hooks {
            let (table, _) = hook.way.hook();
            let _ = writeln!(s, "*{table}\n:{} - [0:0]", id.chain(hook.way));
            for line in hook.lines(id) {
                let _ = writeln!(s, "{line}");
            }
            let _ = writeln!(s, "COMMIT");
        }
        let _ = writeln!(s, "RACKRIFT-RULES");
        for hook in hooks {
            let (table, _) = hook.way.hook();
            let (chain, count) = (id.chain(hook.way), hook.lines(id).len());
            let _ = writeln!(
                s,
                "[ \"$({command}-save -t {table} | grep -c -e '^-A {chain} ')\" = {count} ] || \
                 fail '{command}: {chain} in {table} does not hold the rules it was given'"
            );
        }
    }

    fn hook(&mut self, id: &FaultId, hook: &Hook) {
        let (table, base) = hook.way.hook();
        let (call, jump, chain) = (hook.tool.waiting(), hook.jump(id), id.chain(hook.way));
        let command = &hook.tool.command;
        let _ = writeln!(
            self.commit,
            "{call} -t {table} -C {base} {jump} 2>/dev/null ||\n    \
             {call} -t {table} -I {base} 1 {jump} ||\n    bad=\"$bad {command}/{table}\""
        );
        let undo = format!(
            "while {call} -t {table} -D {base} {jump}; do :; done 2>/dev/null\n\
             {call} -t {table} -F {chain} 2>/dev/null\n\
             {call} -t {table} -X {chain} 2>/dev/null\n"
        );
        let left = format!(
            "if seen=$({command}-save -t {table} 2>&1); then\n    \
             printf '%s\\n' \"$seen\" | grep -e '{chain}' | sed 's|^|{command} {table}: |'\n\
             else\n    echo \"{command} {table}: could not look: $seen\"\nfi\n"
        );
        let look = format!(
            "echo 'save={command} {table}'\n{} | grep -e ' -A {base} ' -e '{chain}'\n",
            hook.tool.save(table)
        );
        for (to, text) in [(&mut self.undo, undo), (&mut self.left, left), (&mut self.look, look)] {
            match hook.loaded(table) {
                Some(condition) => {
                    let _ = write!(to, "if {condition}; then\n{text}fi\n");
                }
                None => to.push_str(&text),
            }
        }
    }
}
