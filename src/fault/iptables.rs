//! The iptables of a host: which there are, which its Kubernetes uses, and how each is called.
//!
//! # Invariants
//! * One back end is chosen per family, by where Kubernetes' own chains live, and everything of a fault is done
//!   and undone with the same command.
//! * Never `-S` text back as `-D`: it does not round-trip. Own chains are flushed and deleted by name, the one jump
//!   by the text it was made with.

use super::address::Family;

/// How rules reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// nf_tables.
    Nft,
    /// The older x_tables.
    Legacy,
}

/// One iptables command of a host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Tool {
    /// The command, such as `ip6tables-nft`; `-save` and `-restore` are appended.
    pub command: String,
    /// Its family.
    pub family: Family,
    /// Its back end.
    pub backend: Backend,
    /// Its version.
    pub version: (u16, u16, u16),
    /// How many chains or rules of Kubernetes' hints it shows.
    pub hints: u32,
}

/// Seconds to wait for the lock that all iptables of a host share.
const LOCK_WAIT: u8 = 10;

impl Tool {
    /// Reads `COMMAND HINTS VERSION-LINE`, such as `iptables-nft 2 iptables v1.8.9 (nf_tables)`.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let command = words.next()?.to_owned();
        let hints = words.next()?.parse().ok()?;
        let version = words.find_map(|w| w.strip_prefix('v'))?;
        let mut numbers = version.split('.').map_while(|n| n.parse().ok());
        let version = (numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0));
        // Before 1.8 there was only one back end and the version line named none.
        let backend = if line.contains("nf_tables") { Backend::Nft } else { Backend::Legacy };
        let family = if command.starts_with("ip6tables") { Family::V6 } else { Family::V4 };
        Some(Self { command, family, backend, version, hints })
    }

    /// The command with its option to wait for the lock: `-w SECONDS` since 1.6.0, a bare `-w` since 1.4.20, before
    /// that none.
    #[must_use]
    pub fn waiting(&self) -> String {
        match self.version {
            v if v >= (1, 6, 0) => format!("{} -w {LOCK_WAIT}", self.command),
            v if v >= (1, 4, 20) => format!("{} -w", self.command),
            _ => self.command.clone(),
        }
    }

    /// The restore command that adds to what is there; it learnt `-w` in 1.6.2.
    #[must_use]
    pub fn restore(&self) -> String {
        let wait = if self.version >= (1, 6, 2) { format!(" -w {LOCK_WAIT}") } else { String::new() };
        format!("{}-restore --noflush{wait}", self.command)
    }

    /// The command that prints one table with counters.
    #[must_use]
    pub fn save(&self, table: &str) -> String {
        format!("{}-save -c -t {table}", self.command)
    }

    /// The tool to use of those of one family: the back end that shows Kubernetes' hints, else what the plain
    /// command is. Of two names for one back end the explicit one, so that a changed alternative in mid-fault
    /// changes nothing.
    #[must_use]
    pub fn choose(tools: &[Self], family: Family) -> Option<Self> {
        let of_family = || tools.iter().filter(|t| t.family == family);
        let plain = of_family().find(|t| t.command == family.command());
        let hinted = of_family().filter(|t| t.hints > 0).max_by_key(|t| (t.backend == Backend::Nft, t.hints));
        let backend = hinted.or(plain).or_else(|| of_family().next())?.backend;
        of_family().filter(|t| t.backend == backend).max_by_key(|t| t.command.len()).cloned()
    }

    /// Why this one, for people.
    #[must_use]
    pub fn reason(&self) -> String {
        let backend = match self.backend {
            Backend::Nft => "nf_tables",
            Backend::Legacy => "legacy",
        };
        let (a, b, c) = self.version;
        let why = if self.hints > 0 { "Kubernetes' own chains are there" } else { "the host's default" };
        format!("{} {a}.{b}.{c} ({backend}; {why})", self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(lines: &[&str]) -> Vec<Tool> {
        lines.iter().map(|l| Tool::parse(l).unwrap_or_else(|| panic!("not read: {l}"))).collect()
    }

    #[test]
    fn t19_the_back_end_with_kubernetes_hints_wins() {
        let tools = tools(&[
            "iptables-nft 0 iptables v1.8.9 (nf_tables)",
            "iptables-legacy 2 iptables v1.8.9 (legacy)",
            "iptables 0 iptables v1.8.9 (nf_tables)",
            "ip6tables-nft 0 ip6tables v1.8.9 (nf_tables)",
            "ip6tables-legacy 0 ip6tables v1.8.9 (legacy)",
            "ip6tables 0 ip6tables v1.8.9 (nf_tables)",
        ]);
        let v4 = Tool::choose(&tools, Family::V4).unwrap();
        assert_eq!(v4.command, "iptables-legacy");
        assert_eq!(v4.reason(), "iptables-legacy 1.8.9 (legacy; Kubernetes' own chains are there)");
        let v6 = Tool::choose(&tools, Family::V6).unwrap();
        assert_eq!(v6.reason(), "ip6tables-nft 1.8.9 (nf_tables; the host's default)");
    }

    #[test]
    fn hints_on_both_sides_mean_nft_because_newer_kubernetes_writes_there() {
        let both =
            ["iptables-nft 1 iptables v1.8.9 (nf_tables)", "iptables-legacy 9 iptables v1.8.9 (legacy)"];
        assert_eq!(Tool::choose(&tools(&both), Family::V4).unwrap().backend, Backend::Nft);
        assert_eq!(Tool::choose(&tools(&both), Family::V6), None);
    }

    #[test]
    fn t19_old_versions_get_no_option_they_do_not_know() {
        let called = |line: &str| {
            let tool = Tool::parse(line).unwrap();
            (tool.waiting(), tool.restore())
        };
        assert_eq!(
            called("iptables 0 iptables v1.4.19"),
            ("iptables".into(), "iptables-restore --noflush".into())
        );
        assert_eq!(called("iptables 0 iptables v1.4.21").0, "iptables -w");
        assert_eq!(called("iptables 0 iptables v1.6.1").1, "iptables-restore --noflush");
        assert_eq!(
            called("iptables 0 iptables v1.8.9 (nf_tables)"),
            ("iptables -w 10".into(), "iptables-restore --noflush -w 10".into())
        );
        assert_eq!(Tool::parse("iptables 0 sh: not found"), None);
    }
}
