//! Which flags are in force: from each component's own command line and configuration, and the defaults of its
//! version for what it was not given.
//!
//! # Invariants
//! * No bound of a check is ever a constant of ours: it is computed from what [`read`] returns.
//! * Where hosts disagree on a value that a bound needs, that is an error that names both, not a guess.

use std::time::Duration;

use rackrift_checkers::facts::{LeaseFacts, LeaseFlags, NodeFlags};
use rackrift_checkers::history::Nanos;
use serde::Deserialize;

use super::objects::{List, Node, Version};
use super::processes::{self, Process};
use super::{ApiServer, duration};
use crate::host::remote::{Remote, Script};
use crate::inventory::{Host, Inventory};

/// How long an API server may take for each question of this module.
const LIMIT: Duration = Duration::from_secs(10);

const SECOND: Nanos = 1_000_000_000;

/// Defaults of `--leader-elect-*`: component-base `config/v1alpha1/defaults.go` and the scheduler's options, the
/// same in all versions that use Leases (1.20 and later).
const ELECTION: LeaseFlags =
    LeaseFlags { lease_duration: 15 * SECOND, renew_deadline: 10 * SECOND, retry_period: 2 * SECOND };

/// Default of `--node-monitor-period`: cloud-provider `config/v1alpha1/defaults.go`.
const MONITOR_PERIOD: Nanos = 5 * SECOND;

/// Default of the API server's `--default-unreachable-toleration-seconds`: its admission plugin.
const TOLERATION_S: u64 = 300;

/// The kubelet renews its lease after this part of the lease's duration: `pkg/kubelet/kubelet.go`.
const RENEW_PART: u64 = 4;

/// Default of `--node-monitor-grace-period`: 50 s since 1.32, 40 s before (nodelifecycle `config/v1alpha1/defaults.go`).
const fn grace_period(minor: (u32, u32)) -> Nanos {
    if minor.0 > 1 || minor.1 >= 32 { 50 * SECOND } else { 40 * SECOND }
}

/// Whether kube-controller-manager releases its lease on a clean stop: on by default since 1.37 (KEP-5366).
const fn controllers_release(minor: (u32, u32)) -> bool {
    minor.0 > 1 || minor.1 >= 37
}

/// Why the flags in force are not known.
#[derive(Debug, thiserror::Error)]
pub enum FlagsError {
    /// The inventory's distribution is not understood.
    #[error(
        "flags of a cluster of kind {0:?} cannot be read; kubernetes.distribution must be systemd, kubeadm or kubespray"
    )]
    Distribution(String),
    /// A host did not answer.
    #[error("{host}: cannot list the Kubernetes processes: {reason}")]
    Host {
        /// The host.
        host: String,
        /// How it ended.
        reason: String,
    },
    /// A component does not run where it should.
    #[error(
        "{component} does not run on {host}, which has the role control-plane; start it, or correct the inventory"
    )]
    Missing {
        /// The component.
        component: &'static str,
        /// The host.
        host: String,
    },
    /// A flag's value cannot be read.
    #[error("{host}: {component} runs with --{flag}={value}, which is no {what}")]
    Value {
        /// The host.
        host: String,
        /// The component.
        component: String,
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        what: &'static str,
    },
    /// Leader election is off.
    #[error("{component} on {host} runs with --leader-elect=false: there is no lease to observe")]
    NoElection {
        /// The component.
        component: String,
        /// The host.
        host: String,
    },
    /// A configuration file cannot be read.
    #[error("{host}: cannot read {path}, the configuration of {component}: {reason}")]
    Config {
        /// The host.
        host: String,
        /// The component.
        component: String,
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Two hosts run with different values.
    #[error(
        "{what} differs: {one} on {first}, {other} on {second}; bounds need one value, set the same on both"
    )]
    Differ {
        /// The flag.
        what: &'static str,
        /// One host.
        first: String,
        /// Its value.
        one: String,
        /// The other host.
        second: String,
        /// Its value.
        other: String,
    },
    /// No API server answered.
    #[error("no API server told {what}: {reason}")]
    NoAnswer {
        /// What was asked.
        what: String,
        /// What the last one said.
        reason: String,
    },
}

/// What is in force in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Versions by name: `kubernetes` (or one a host, where they differ), `kubelet`, `container-runtime`, `kernel`, `etcd`.
    pub versions: Vec<(String, String)>,
    /// The elected components, in the order kube-controller-manager, kube-scheduler.
    pub leases: Vec<LeaseFacts>,
    /// The node life cycle.
    pub nodes: NodeFlags,
}

/// Reads what is in force from every control-plane host and, through the API servers, from every kubelet.
///
/// # Errors
/// At the first thing that is not known; the message names the host and what to do.
pub async fn read(
    remote: &dyn Remote,
    inventory: &Inventory,
    servers: &[ApiServer],
) -> Result<InForce, FlagsError> {
    let distribution = inventory.kubernetes.distribution.as_str();
    if !["systemd", "kubeadm", "kubespray"].contains(&distribution) {
        return Err(FlagsError::Distribution(distribution.to_owned()));
    }
    let (versions, minor) = versions(remote, inventory, servers).await?;
    let mut hosts = Vec::new();
    for host in inventory.hosts().filter(|h| h.has_role("control-plane")) {
        hosts.push(Found::on(remote, host).await?);
    }
    let mut leases = Vec::new();
    for component in ["kube-controller-manager", "kube-scheduler"] {
        let mut each = Vec::new();
        for found in &hosts {
            let facts = election(remote, found, found.need(component)?, minor).await?;
            each.push((found.host.clone(), facts));
        }
        leases.extend(same("leader election", each)?);
    }
    let controllers = "kube-controller-manager";
    let period = |flag, default| {
        let each =
            hosts.iter().map(|f| Ok((f.host.clone(), f.duration(f.need(controllers)?, flag, default)?)));
        same(flag, each.collect::<Result<Vec<_>, FlagsError>>()?).map(|v| v.unwrap_or(default))
    };
    let tolerated = "default-unreachable-toleration-seconds";
    let seconds = hosts
        .iter()
        .map(|f| Ok((f.host.clone(), f.whole(f.need("kube-apiserver")?, tolerated, TOLERATION_S)?)));
    let seconds = same(tolerated, seconds.collect::<Result<Vec<_>, FlagsError>>()?)?.unwrap_or(TOLERATION_S);
    let nodes = NodeFlags {
        monitor_period: period("node-monitor-period", MONITOR_PERIOD)?,
        grace_period: period("node-monitor-grace-period", grace_period(minor))?,
        heartbeat: heartbeat(inventory, servers).await?,
        toleration: seconds * SECOND,
    };
    Ok(InForce { versions, leases, nodes })
}

/// The one value on which all agree; nothing if there is none.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &'static str,
    each: Vec<(String, T)>,
) -> Result<Option<T>, FlagsError> {
    let mut each = each.into_iter();
    let Some((first, one)) = each.next() else { return Ok(None) };
    for (second, other) in each {
        if other != one {
            let (one, other) = (format!("{one:?}"), format!("{other:?}"));
            return Err(FlagsError::Differ { what, first, one, second, other });
        }
    }
    Ok(Some(one))
}

/// The components found on a host.
struct Found {
    host: String,
    processes: Vec<Process>,
}

impl Found {
    async fn on(remote: &dyn Remote, host: &Host) -> Result<Self, FlagsError> {
        let processes = processes::list(remote, &host.name)
            .await
            .map_err(|reason| FlagsError::Host { host: host.name.clone(), reason })?;
        Ok(Self { host: host.name.clone(), processes })
    }

    fn need(&self, component: &'static str) -> Result<&Process, FlagsError> {
        self.processes
            .iter()
            .find(|p| p.component == component)
            .ok_or_else(|| FlagsError::Missing { component, host: self.host.clone() })
    }

    fn value<T>(
        &self,
        process: &Process,
        flag: &'static str,
        default: T,
        what: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FlagsError> {
        let Some(value) = process.flags.get(flag) else { return Ok(default) };
        read(value).ok_or_else(|| FlagsError::Value {
            host: self.host.clone(),
            component: process.component.clone(),
            flag,
            value: value.to_owned(),
            what,
        })
    }

    fn duration(&self, p: &Process, flag: &'static str, default: Nanos) -> Result<Nanos, FlagsError> {
        self.value(p, flag, default, "duration", duration::parse)
    }

    fn whole(&self, p: &Process, flag: &'static str, default: u64) -> Result<u64, FlagsError> {
        self.value(p, flag, default, "whole number", |v| v.parse().ok())
    }
}

/// Leader election of one process: its flags, over its configuration file, over the defaults.
async fn election(
    remote: &dyn Remote,
    found: &Found,
    process: &Process,
    minor: (u32, u32),
) -> Result<LeaseFacts, FlagsError> {
    let component = process.component.as_str();
    let file = match process.flags.get("config") {
        Some(path) => config_file(remote, found, process, path).await?,
        None => Election::default(),
    };
    let on = |v: &str| v.parse().ok();
    let elects =
        found.value(process, "leader-elect", file.leader_elect.unwrap_or(true), "truth value", on)?;
    if !elects {
        return Err(FlagsError::NoElection { component: component.to_owned(), host: found.host.clone() });
    }
    let configured = |v: &Option<String>, default| v.as_deref().and_then(duration::parse).unwrap_or(default);
    let flags = LeaseFlags {
        lease_duration: found.duration(
            process,
            "leader-elect-lease-duration",
            configured(&file.lease_duration, ELECTION.lease_duration),
        )?,
        renew_deadline: found.duration(
            process,
            "leader-elect-renew-deadline",
            configured(&file.renew_deadline, ELECTION.renew_deadline),
        )?,
        retry_period: found.duration(
            process,
            "leader-elect-retry-period",
            configured(&file.retry_period, ELECTION.retry_period),
        )?,
    };
    let text = |flag, file: &Option<String>, default: &str| {
        process
            .flags
            .get(flag)
            .map(str::to_owned)
            .or_else(|| file.clone())
            .unwrap_or_else(|| default.to_owned())
    };
    let namespace = text("leader-elect-resource-namespace", &file.resource_namespace, "kube-system");
    let name = text("leader-elect-resource-name", &file.resource_name, component);
    Ok(LeaseFacts {
        lease: format!("{namespace}/{name}"),
        component: component.to_owned(),
        flags,
        exits_on_loss: true,
        releases: component == "kube-scheduler" || controllers_release(minor),
    })
}

/// `leaderElection` of a component's configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Election {
    leader_elect: Option<bool>,
    lease_duration: Option<String>,
    renew_deadline: Option<String>,
    retry_period: Option<String>,
    resource_namespace: Option<String>,
    resource_name: Option<String>,
}

async fn config_file(
    remote: &dyn Remote,
    found: &Found,
    process: &Process,
    path: &str,
) -> Result<Election, FlagsError> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Config {
        leader_election: Election,
    }
    let wrong = |reason| FlagsError::Config {
        host: found.host.clone(),
        component: process.component.clone(),
        path: path.to_owned(),
        reason,
    };
    // Through the process's own root and folder, so that a path inside a container and a relative one are right.
    let from = if path.starts_with('/') { "root" } else { "cwd/" };
    let quoted = path.replace('\'', r"'\''");
    let script = Script::new(format!("cat '/proc/{}/{from}{quoted}'", process.pid)).cap(1 << 20);
    let text = remote.run(&found.host, &script).await.ok().map_err(wrong)?;
    let config: Config = serde_saphyr::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    Ok(config.leader_election)
}

/// A quarter of the longest `nodeLeaseDurationSeconds` of all kubelets: the longest makes the widest bounds.
async fn heartbeat(inventory: &Inventory, servers: &[ApiServer]) -> Result<Nanos, FlagsError> {
    #[derive(Deserialize)]
    struct Configz {
        kubeletconfig: Kubelet,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kubelet {
        node_lease_duration_seconds: u64,
    }
    let mut longest = 0;
    for host in inventory.hosts().filter(|h| h.has_role("worker")) {
        let node = host.node_name();
        let config: Configz = ask(servers, &format!("/api/v1/nodes/{node}/proxy/configz")).await?;
        longest = longest.max(config.kubeletconfig.node_lease_duration_seconds);
    }
    Ok(longest * SECOND / RENEW_PART)
}

/// The first answer of any API server.
async fn ask<T: serde::de::DeserializeOwned>(servers: &[ApiServer], path: &str) -> Result<T, FlagsError> {
    let mut reason = "the inventory names none".to_owned();
    for server in servers {
        match server.get(path, LIMIT).await {
            Ok(answer) => return Ok(answer),
            Err(e) => reason = e,
        }
    }
    Err(FlagsError::NoAnswer { what: path.to_owned(), reason })
}

/// Versions for the record, and the oldest minor version of the API servers.
async fn versions(
    remote: &dyn Remote,
    inventory: &Inventory,
    servers: &[ApiServer],
) -> Result<(Vec<(String, String)>, (u32, u32)), FlagsError> {
    let mut list = Vec::new();
    let mut oldest: Option<(u32, u32)> = None;
    for server in servers {
        let version: Version = ask(std::slice::from_ref(server), "/version").await?;
        let minor = version.minor().ok_or_else(|| FlagsError::NoAnswer {
            what: "/version".into(),
            reason: format!("API server {} calls itself {:?}", server.host, version.git_version),
        })?;
        oldest = Some(oldest.map_or(minor, |o| o.min(minor)));
        list.push(("kubernetes".to_owned(), server.host.clone(), version.git_version));
    }
    let nodes: List<Node> = ask(servers, "/api/v1/nodes").await?;
    for node in nodes.items() {
        let (info, at) = (node.info(), &node.metadata.name);
        for (what, version) in [
            ("kubelet", &info.kubelet_version),
            ("container-runtime", &info.container_runtime_version),
            ("kernel", &info.kernel_version),
            ("os", &info.os_image),
        ] {
            list.push((what.to_owned(), at.clone(), version.clone()));
        }
    }
    if let Some(etcdctl) = &inventory.kubernetes.etcdctl {
        for host in inventory.hosts().filter(|h| h.has_role("etcd")) {
            let script = Script::new(format!("{etcdctl} endpoint status -w json"));
            // For the record only: a member that is down is no reason not to run.
            if let Ok(out) = remote.run(&host.name, &script).await.ok() {
                list.extend(etcd_version(&out).map(|v| ("etcd".to_owned(), host.name.clone(), v)));
            }
        }
    }
    let oldest = oldest.ok_or_else(|| FlagsError::NoAnswer {
        what: "/version".into(),
        reason: "the inventory names none".into(),
    })?;
    Ok((merged(&list), oldest))
}

/// `version` of the first endpoint of `etcdctl endpoint status -w json`.
fn etcd_version(output: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(output).ok()?;
    Some(value.get(0)?.get("Status")?.get("version")?.as_str()?.to_owned())
}

/// One entry for each thing on whose version all hosts agree; one a host where they do not.
fn merged(list: &[(String, String, String)]) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for (what, host, version) in list {
        let agree = list.iter().filter(|(w, ..)| w == what).all(|(.., v)| v == version);
        let name = if agree { what.clone() } else { format!("{what}@{host}") };
        if !out.iter().any(|(n, _)| *n == name) {
            out.push((name, version.clone()));
        }
    }
    out
}
