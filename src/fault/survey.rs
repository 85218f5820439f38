//! What must be known of a host before a fault is planned for it. Reads only.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Family, peer_address};
use super::iptables::Tool;
use super::script;
use crate::host::remote::{Remote, Script};

/// What keeps the dead-man's switch running when our session has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Supervisor {
    /// A transient unit of systemd, started again if killed.
    Systemd,
    /// A process in a session of its own.
    Setsid,
}

impl Supervisor {
    /// As the scripts name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Setsid => "setsid",
        }
    }
}

/// A host's facts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HostFacts {
    /// The kernel's boot id.
    pub boot: String,
    /// Whether scripts run as root.
    pub root: bool,
    /// How the host names the controller's address, as SSH tells it; absent without SSH.
    pub client: Option<String>,
    /// The best supervisor there is; absent if none.
    pub supervisor: Option<Supervisor>,
    /// All iptables commands.
    pub tools: Vec<Tool>,
    /// Other commands that are there.
    pub have: BTreeSet<String>,
    /// Global addresses on its devices, with the device.
    pub addresses: Vec<(String, IpAddr)>,
}

/// What was found out about each host; for a host that could not be asked, why.
pub type Survey = BTreeMap<String, Result<HostFacts, String>>;

impl HostFacts {
    /// Reads what the survey script printed.
    ///
    /// # Errors
    /// The output is not whole.
    pub fn parse(output: &str) -> Result<Self, String> {
        let mut facts = Self {
            boot: String::new(),
            root: false,
            client: None,
            supervisor: None,
            tools: Vec::new(),
            have: BTreeSet::new(),
            addresses: Vec::new(),
        };
        let mut whole = false;
        for (key, value) in script::pairs(output) {
            match key {
                "boot" => value.clone_into(&mut facts.boot),
                "uid" => facts.root = value == "0",
                "client" if !value.is_empty() => facts.client = Some(value.to_owned()),
                "supervisor" if value == "systemd" => facts.supervisor = Some(Supervisor::Systemd),
                "supervisor" if value == "setsid" => facts.supervisor = Some(Supervisor::Setsid),
                "tool" => facts.tools.extend(Tool::parse(value)),
                "have" => {
                    facts.have.insert(value.to_owned());
                }
                "address" => {
                    let parsed =
                        value.split_once(' ').and_then(|(d, a)| Some((d.to_owned(), a.parse().ok()?)));
                    facts.addresses.extend(parsed);
                }
                "end" => whole = true,
                _ => {}
            }
        }
        if whole && !facts.boot.is_empty() {
            Ok(facts)
        } else {
            Err("the survey's output is not whole".to_owned())
        }
    }

    /// The controller's address as this host sees it.
    #[must_use]
    pub fn controller(&self) -> Option<IpAddr> {
        peer_address(self.client.as_deref()?)
    }

    /// The iptables to use for a family.
    #[must_use]
    pub fn tool(&self, family: Family) -> Option<Tool> {
        Tool::choose(&self.tools, family)
    }
}

/// Surveys hosts, all at once.
pub async fn survey(remote: &Arc<dyn Remote>, hosts: &[String]) -> Survey {
    let script = Script::new(script::survey()).limit(Duration::from_secs(20));
    let asked = hosts.iter().map(|h| (h.clone(), script.clone())).collect();
    let answers = script::on_each(remote, asked).await;
    answers
        .into_iter()
        .map(|(host, outcome)| {
            let facts = outcome.ok().and_then(|text| HostFacts::parse(&text));
            (host, facts)
        })
        .collect()
}
