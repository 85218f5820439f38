//! A fault that ends when the cluster is in a state, not when a time has passed.
//!
//! The API servers are asked in turn, twice a second. A state counts as reached when one of them shows it: with the racks
//! apart, the side that lost etcd goes on showing what was, so "each of them" would never be reached. The length of
//! the fault remains its longest time: a state that does not come must not keep a lab cut.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rackrift_checkers::facts::LeaseFacts;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::arrange::read_lease;
use super::recorder::Recorder;
use super::stop::Stop;
use crate::kube::objects::{List, Node};
use crate::kube::proxy::ApiServer;

/// One question to an API server.
const ASK: Duration = Duration::from_secs(3);

/// Between two rounds of questions.
const PERIOD: Duration = Duration::from_millis(500);

/// A state that ends a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Until {
    /// The lease of this component has another holder than when the fault began.
    LeaseMoved(String),
    /// All nodes on these hosts, a selector, have the Ready condition Unknown.
    NodesUnknown(String),
    /// All nodes on these hosts, a selector, have the Ready condition True, after one of them had not.
    NodesReady(String),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseMoved(component) => write!(f, "the lease of {component} has moved"),
            Self::NodesUnknown(hosts) => write!(f, "the nodes of {hosts} are Unknown"),
            Self::NodesReady(hosts) => write!(f, "the nodes of {hosts} are Ready again"),
        }
    }
}

/// A state with its names resolved, and what was there when the fault began.
#[derive(Debug)]
pub struct Awaited<'a> {
    servers: &'a [ApiServer],
    goal: Goal,
}

#[derive(Debug, PartialEq, Eq)]
enum Goal {
    Moved { lease: String, from: String },
    Ready { nodes: Vec<String>, wanted: &'static str, left: bool },
}

impl Goal {
    /// Whether what one API server shows of nodes, name → Ready condition, is the state.
    fn reached(&mut self, shown: &BTreeMap<String, String>) -> bool {
        let Self::Ready { nodes, wanted, left } = self else { return false };
        let all = nodes.iter().all(|n| shown.get(n).map(String::as_str) == Some(*wanted));
        *left |= !all;
        all && *left
    }
}

impl<'a> Awaited<'a> {
    /// Takes down how things stand before the fault begins. `nodes` are those of the selector in `until`.
    ///
    /// # Errors
    /// The lease is not known or not shown.
    pub async fn begin(
        until: &Until,
        nodes: Vec<String>,
        leases: &[LeaseFacts],
        servers: &'a [ApiServer],
    ) -> Result<Self, String> {
        let goal = match until {
            Until::LeaseMoved(component) => {
                let known = || leases.iter().map(|l| l.component.as_str()).collect::<Vec<_>>().join(", ");
                let facts = leases.iter().find(|l| l.component == *component).ok_or_else(|| {
                    format!("{component} has no lease here; there are leases of: {}", known())
                })?;
                let from = read_lease(servers, &facts.lease).await?.holder;
                Goal::Moved { lease: facts.lease.clone(), from }
            }
            // Nodes that are Unknown already are what was asked for; of a return to Ready there must be something seen.
            Until::NodesUnknown(_) => Goal::Ready { nodes, wanted: "Unknown", left: true },
            Until::NodesReady(_) => Goal::Ready { nodes, wanted: "True", left: false },
        };
        Ok(Self { servers, goal })
    }

    /// Waits for the state, at most `longest`, or until the run winds down. How long it took, if it was reached.
    pub async fn wait(mut self, longest: Duration, recorder: &Recorder, stop: &Stop) -> Option<Duration> {
        let began = Instant::now();
        let failed = recorder.failed();
        while began.elapsed() < longest && !stop.asked() && !failed.is_cancelled() {
            if self.is_reached().await {
                return Some(began.elapsed());
            }
            stop.wait(PERIOD.min(longest.saturating_sub(began.elapsed())), &failed).await;
        }
        None
    }

    async fn is_reached(&mut self) -> bool {
        for server in self.servers {
            let reached = match &mut self.goal {
                Goal::Moved { lease, from } => read_lease(std::slice::from_ref(server), lease)
                    .await
                    .is_ok_and(|l| !l.holder.is_empty() && l.holder != *from),
                goal @ Goal::Ready { .. } => match server.get::<List<Node>>("/api/v1/nodes", ASK).await {
                    Ok(nodes) => {
                        let nodes = nodes.items();
                        goal.reached(
                            &nodes.iter().map(|n| (n.metadata.name.clone(), n.ready().to_owned())).collect(),
                        )
                    }
                    Err(_) => false,
                },
            };
            if reached {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(n, r)| ((*n).to_owned(), (*r).to_owned())).collect()
    }

    fn nodes() -> Vec<String> {
        vec!["w1".to_owned(), "w2".to_owned()]
    }

    #[test]
    fn unknown_means_all_of_them() {
        let mut goal = Goal::Ready { nodes: nodes(), wanted: "Unknown", left: true };
        assert!(!goal.reached(&shown(&[("w1", "Unknown"), ("w2", "True")])));
        assert!(!goal.reached(&shown(&[("w1", "Unknown")])));
        assert!(goal.reached(&shown(&[("w1", "Unknown"), ("w2", "Unknown"), ("w3", "True")])));
    }

    #[test]
    fn ready_again_needs_one_that_was_not() {
        let mut goal = Goal::Ready { nodes: nodes(), wanted: "True", left: false };
        let well = shown(&[("w1", "True"), ("w2", "True")]);
        assert!(!goal.reached(&well));
        assert!(!goal.reached(&shown(&[("w1", "True"), ("w2", "False")])));
        assert!(goal.reached(&well));
    }

    #[test]
    fn a_state_is_written_and_read_back() {
        let text = "lease-moved: kube-scheduler";
        let until: Until = crate::yaml::Source { origin: "a scenario", text }.parse().unwrap();
        assert_eq!(until, Until::LeaseMoved("kube-scheduler".to_owned()));
        assert_eq!(until.to_string(), "the lease of kube-scheduler has moved");
    }
}
