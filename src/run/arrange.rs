//! Bringing leaders to the side where a scenario needs them.
//!
//! # Invariants
//! * A component is stopped only after its restart was armed on its host (a transient systemd timer), so a killed
//!   controller leaves no component stopped for longer than [`RESTART`].
//!
//! Stopping the others, not moving the lease by writing it: a forged record would be part of the history that is
//! judged.

use std::time::Duration;

use rackrift_checkers::facts::LeaseFacts;
use tokio::time::{Instant, sleep};

use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;
use crate::kube::lease::{self, Lease};
use crate::kube::proxy::ApiServer;
use crate::kube::{Answer, Request};
use crate::run::tell::Tell;

/// After this the host starts a stopped component by itself.
const RESTART: Duration = Duration::from_secs(60);

/// One question to an API server.
const ASK: Duration = Duration::from_secs(3);

/// Why the leaders are not where they should be.
#[derive(Debug, thiserror::Error)]
pub enum ArrangeError {
    /// No API server shows the lease.
    #[error("no API server shows the lease {lease}: {reason}")]
    NoLease {
        /// The lease.
        lease: String,
        /// What the last one answered.
        reason: String,
    },
    /// The scenario names a component that is not elected here.
    #[error("`{component}` has no lease in this cluster; elected are: {known}")]
    NotElected {
        /// The component.
        component: String,
        /// What there is.
        known: String,
    },
    /// A host refused.
    #[error("{host}: failed to {what} {component}: {reason}")]
    Host {
        /// The host.
        host: String,
        /// `stop` or `start`.
        what: &'static str,
        /// The component.
        component: String,
        /// How it ended.
        reason: String,
    },
    /// The lease did not move in time.
    #[error(
        "the lease of {component} stayed with {holder} for {waited} s although it was stopped there; wanted is one of {wanted}"
    )]
    Stayed {
        /// The component.
        component: String,
        /// Who holds it.
        holder: String,
        /// How long was waited, s.
        waited: u64,
        /// Who should.
        wanted: String,
    },
}

/// The host of a holder identity `hostname_uuid`.
#[must_use]
pub fn holder_host(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(host, _)| host)
}

/// Reads a lease from the first API server that shows it.
///
/// # Errors
/// What the last one answered.
pub async fn read_lease(servers: &[ApiServer], name: &str) -> Result<Lease, String> {
    let mut reason = "there is none".to_owned();
    let (namespace, lease) = name.split_once('/').unwrap_or(("kube-system", name));
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}");
    for server in servers {
        match server.client().send(&Request::get(path.as_str()), ASK).await {
            Answer::Came { status: 200, body } => match lease::from_json(&body) {
                Ok(lease) => return Ok(lease),
                Err(e) => reason = format!("{}: {e}", server.host),
            },
            other => reason = format!("{}: {other:?}", server.host),
        }
    }
    Err(reason)
}

/// Sees to it that each component's lease is held from one of the hosts `on`.
///
/// # Errors
/// See [`ArrangeError`].
pub async fn leaders(
    remote: &dyn Remote,
    inventory: &Inventory,
    servers: &[ApiServer],
    elected: &[LeaseFacts],
    components: &[String],
    on: &[String],
    tell: &dyn Tell,
) -> Result<(), ArrangeError> {
    for component in components {
        let Some(facts) = elected.iter().find(|l| l.component == *component) else {
            let known: Vec<&str> = elected.iter().map(|l| l.component.as_str()).collect();
            return Err(ArrangeError::NotElected { component: component.clone(), known: known.join(", ") });
        };
        let lease = read_lease(servers, &facts.lease)
            .await
            .map_err(|reason| ArrangeError::NoLease { lease: facts.lease.clone(), reason })?;
        let held = |holder: &str| on.iter().any(|h| h == holder_host(holder));
        if held(&lease.holder) {
            continue;
        }
        tell.say(&format!(
            "moving the lease of {component} from {} to {}",
            holder_host(&lease.holder),
            on.join(", ")
        ));
        let others: Vec<&str> = inventory
            .hosts()
            .filter(|h| h.has_role("control-plane") && !on.contains(&h.name))
            .map(|h| h.name.as_str())
            .collect();
        for host in &others {
            on_host(remote, host, component, "stop", &stop(component)).await?;
        }
        let moved = wait(servers, facts, &held).await;
        for host in &others {
            on_host(remote, host, component, "start", &start(component)).await?;
        }
        if let Err((holder, waited)) = moved {
            let (component, wanted) = (component.clone(), on.join(", "));
            return Err(ArrangeError::Stayed { component, holder, waited, wanted });
        }
    }
    Ok(())
}

/// Waits until the lease is held as wanted; else who holds it, and how long was waited.
async fn wait(
    servers: &[ApiServer],
    facts: &LeaseFacts,
    held: &impl Fn(&str) -> bool,
) -> Result<(), (String, u64)> {
    // An expiry, two tries with the largest jitter (bounds.rs, TAKE_MAX), and some latency.
    let flags = facts.flags;
    let limit = Duration::from_nanos(flags.lease_duration + 5 * flags.retry_period) + Duration::from_secs(10);
    let started = Instant::now();
    let mut holder = String::new();
    while started.elapsed() < limit {
        if let Ok(lease) = read_lease(servers, &facts.lease).await {
            if held(&lease.holder) {
                return Ok(());
            }
            holder = lease.holder;
        }
        sleep(Duration::from_millis(300)).await;
    }
    Err((holder, started.elapsed().as_secs()))
}

async fn on_host(
    remote: &dyn Remote,
    host: &str,
    component: &str,
    what: &'static str,
    script: &str,
) -> Result<(), ArrangeError> {
    let outcome = remote.run(host, &Script::new(script).limit(Duration::from_secs(40))).await;
    outcome.ok().map(drop).map_err(|reason| ArrangeError::Host {
        host: host.to_owned(),
        what,
        component: component.to_owned(),
        reason,
    })
}

fn stop(unit: &str) -> String {
    format!(
        "set -e\n\
         systemctl cat {unit}.service >/dev/null\n\
         systemctl stop start-{unit}-again.timer 2>/dev/null || :\n\
         systemd-run --quiet --collect --on-active={} --timer-property=AccuracySec=1s \
         --unit=start-{unit}-again systemctl start {unit}.service\n\
         systemctl stop {unit}.service\n",
        RESTART.as_secs()
    )
}

fn start(unit: &str) -> String {
    format!("systemctl start {unit}.service && systemctl stop start-{unit}-again.timer\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_stopped_only_after_its_restart_was_armed() {
        insta::assert_snapshot!(stop("kube-scheduler"));
        insta::assert_snapshot!(start("kube-scheduler"));
    }

    #[test]
    fn the_host_of_a_holder_is_what_stands_before_the_uuid() {
        assert_eq!(holder_host("m1_3f2a-77"), "m1");
        assert_eq!(holder_host("k3s-server"), "k3s-server");
        assert_eq!(holder_host(""), "");
    }
}
