//! What the observers of the control plane saw: leases, beliefs, nodes, clocks.

use rackrift_checkers::history::{Belief, BeliefEvent, ClockSample, Entry, LeaseSeen, NodeSeen};

use super::facts::{OTHERS, RACK_A};
use super::{Jitter, LeasePlan, Plan, Story, host_time, s};

const OBSERVERS: [&str; 5] = ["etcd:e1", "etcd:e2", "etcd:e3", "api:m1", "api:m2"];

/// Renewals and takeovers of both leases, as each observer that can see them tells.
pub(crate) fn leases(plan: &Plan, story: &mut Story) {
    for lease in [&plan.kcm, &plan.scheduler] {
        let mut jitter = Jitter::new(plan.seed + lease.pids[0] as u64);
        let mut at = lease.last_renewal % 2.0;
        let last = if lease.takeover.is_some() { lease.last_renewal } else { plan.end };
        while at <= last + 0.001 {
            renewal(plan, story, &mut jitter, lease, at, "m1", 3);
            at += 2.0;
        }
        let Some(takeover) = lease.takeover else { continue };
        let mut at = takeover;
        while at < plan.end {
            renewal(plan, story, &mut jitter, lease, at, "m2", 3 + lease.transitions_step);
            at += 2.0 + 0.02 * jitter.next();
        }
    }
}

fn renewal(
    plan: &Plan,
    story: &mut Story,
    jitter: &mut Jitter,
    lease: &LeasePlan,
    at: f64,
    host: &str,
    transitions: u32,
) {
    let seen: Vec<(String, f64)> = OBSERVERS
        .iter()
        .filter(|via| !(**via == "api:m1" && plan.is_cut(at)))
        .map(|via| {
            // A member that was cut off shows after the heal, in order, what it learns then.
            let delay = 0.004 + 0.02 * jitter.next();
            let late = via.ends_with('1') && plan.is_cut(at);
            ((*via).to_owned(), if late { plan.heal + 0.3 + at / 1e3 } else { at + delay })
        })
        .collect();
    let lease_name = format!("kube-system/{}", lease.component);
    let holder = format!("{host}_{}", if host == "m1" { "5d0c1f6e" } else { "b31e77a2" });
    story.effect(s(at), move |version, story| {
        for (via, when) in seen {
            story.line(
                s(when),
                Entry::Lease(LeaseSeen {
                    time: s(when),
                    via,
                    lease: lease_name.clone(),
                    version,
                    uid: format!("uid-{lease_name}"),
                    holder: holder.clone(),
                    duration_s: 15,
                    transitions,
                    acquire_time: String::new(),
                    renew_time: String::new(),
                    deleted: false,
                    anew: false,
                }),
            );
        }
    });
}

/// What the logs of both components on both masters say.
pub(crate) fn beliefs(plan: &Plan, story: &mut Story) {
    for lease in [&plan.kcm, &plan.scheduler] {
        let name = format!("kube-system/{}", lease.component);
        let mut say = |when: f64, host: &str, pid: u32, event, line: String| {
            let belief = Belief {
                at: plan.at(when),
                host: host.to_owned(),
                component: lease.component.to_owned(),
                pid,
                event,
                host_time: host_time(host, when),
                line,
            };
            story.line(s(when + 0.3), Entry::Belief(belief));
        };
        let [first, second, other] = lease.pids;
        say(0.1, "m1", first, BeliefEvent::Leads, format!("successfully acquired lease {name}"));
        say(
            0.1,
            "m2",
            other,
            BeliefEvent::Candidate,
            format!("attempting to acquire leader lease {name}..."),
        );
        let Some(takeover) = lease.takeover else { continue };
        let lost = format!("failed to renew lease {name}: context deadline exceeded");
        say(lease.lost, "m1", first, BeliefEvent::Lost, lost);
        say(lease.exits, "m1", first, BeliefEvent::Exits, "leaderelection lost".to_owned());
        say(takeover + 0.02, "m2", other, BeliefEvent::Leads, format!("successfully acquired lease {name}"));
        say(lease.exits + 2.2, "m1", second, BeliefEvent::Starts, "systemd started the unit".to_owned());
        let candidate = format!("attempting to acquire leader lease {name}...");
        say(lease.exits + 2.9, "m1", second, BeliefEvent::Candidate, candidate);
    }
}

/// Both nodes as both API servers show them; m1's shows nothing new while it is cut off.
pub(crate) fn nodes(plan: &Plan, story: &mut Story) {
    let unreachable = || {
        vec![
            "node.kubernetes.io/unreachable:NoSchedule".to_owned(),
            "node.kubernetes.io/unreachable:NoExecute".to_owned(),
        ]
    };
    let mut version = 5_000;
    let mut seen = |when: f64, node: &str, ready: &str, taints: Vec<String>| {
        version += 1;
        for via in ["api:m1", "api:m2"] {
            if via == "api:m1" && plan.is_cut(when) {
                continue;
            }
            story.line(
                s(when),
                Entry::Node(NodeSeen {
                    time: s(when),
                    via: via.to_owned(),
                    node: node.to_owned(),
                    version,
                    ready: ready.to_owned(),
                    taints: taints.clone(),
                }),
            );
        }
    };
    seen(0.2, "w1", "True", Vec::new());
    seen(0.2, "w2", "True", Vec::new());
    if plan.cut.is_some() {
        seen(plan.w1_unknown, "w1", "Unknown", unreachable());
        seen(plan.w1_ready - 2.5, "w1", "True", unreachable());
        seen(plan.w1_ready, "w1", "True", Vec::new());
    }
    for tick in 1..6 {
        seen(f64::from(tick) * 25.0 + 0.7, "w2", "True", Vec::new());
    }
}

/// A clock sample of every host each ten seconds.
pub(crate) fn clocks(plan: &Plan, story: &mut Story) {
    let mut jitter = Jitter::new(plan.seed + 2);
    for host in RACK_A.iter().chain(&OTHERS) {
        let mut at = 0.5;
        while at < plan.end {
            let trip = 0.0006 + 0.0009 * jitter.next();
            let sample = ClockSample {
                host: (*host).to_owned(),
                sent: s(at),
                received: s(at + trip),
                host_time: host_time(host, at + trip / 2.0),
                resolution: 1_000,
                wall: None,
            };
            story.line(s(at + trip), Entry::Clock(sample));
            at += 10.0;
        }
    }
}
