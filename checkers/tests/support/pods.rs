//! The pods of the workload: heartbeats and runtime on the nodes, and what m2's API server shows.

use rackrift_checkers::history::{Entry, PodSeen, PodSource, PodState};

use super::{Plan, Story, host_time, s};

/// One pod's life.
struct Pod<'a> {
    identity: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
    token: &'a str,
    node: &'a str,
    from: f64,
    to: f64,
    ends: bool,
    marked: Option<f64>,
}

/// All pods of `plan`.
pub(crate) fn pods(plan: &Plan, story: &mut Story) {
    let end = plan.end - 1.0;
    let pod = |identity, kind, name, uid, token, node, from, to: Option<f64>| Pod {
        identity,
        kind,
        name,
        uid,
        token,
        node,
        from,
        to: to.unwrap_or(end),
        ends: to.is_some(),
        marked: None,
    };
    let marked = |pod: Pod<'static>| Pod { marked: Some(plan.evicted), ..pod };
    let (web, db, job) = ("lab/web", "lab/db-0", "lab/batch");
    let mut all = vec![
        pod(web, "Deployment", "web-6d4c-cd2qp", "a2f1c7d0", "c-web-2", "w2", 0.6, None),
        pod("lab/agent@w2", "DaemonSet", "agent-7hx2k", "77be0a12", "c-agent-2", "w2", 0.6, None),
    ];
    let agent = ("lab/agent@w1", "DaemonSet", "agent-q8w4n", "1c9e55d3", "w1");
    match plan.agent_restart {
        None => all.push(pod(agent.0, agent.1, agent.2, agent.3, "c-agent-1", agent.4, 0.6, None)),
        Some(at) => {
            all.push(pod(agent.0, agent.1, agent.2, agent.3, "c-agent-1", agent.4, 0.6, Some(at)));
            all.push(pod(agent.0, agent.1, agent.2, agent.3, "c-agent-1b", agent.4, at + 1.2, None));
        }
    }
    if plan.cut.is_none() {
        all.push(pod(web, "Deployment", "web-6d4c-mpv74", "3f2a90b1", "c-web-1", "w1", 0.6, None));
        all.push(pod(db, "StatefulSet", "db-0", "3f8d2b66", "c-db-1", "w1", 0.6, None));
        all.push(pod(job, "Job", "batch-zk2lm", "90d1f3a8", "c-job-1", "w1", 0.6, None));
        all.push(pod("lab/bare", "Pod", "bare", "d41f00aa", "c-bare-1", "w1", 0.6, None));
    } else {
        let (web_end, db_end) = (Some(plan.web_old_end), Some(plan.db_old_end));
        let other_end = Some(plan.heal + 1.5);
        all.push(marked(pod(web, "Deployment", "web-6d4c-mpv74", "3f2a90b1", "c-web-1", "w1", 0.6, web_end)));
        all.push(pod(
            web,
            "Deployment",
            "web-6d4c-x7k2d",
            "c05be1f7",
            "c-web-3",
            "w2",
            plan.web_replacement,
            None,
        ));
        all.push(marked(pod(db, "StatefulSet", "db-0", "3f8d2b66", "c-db-1", "w1", 0.6, db_end)));
        all.push(pod(db, "StatefulSet", "db-0", "9a7be210", "c-db-2", "w2", plan.db_new_start, None));
        all.push(marked(pod(job, "Job", "batch-zk2lm", "90d1f3a8", "c-job-1", "w1", 0.6, other_end)));
        all.push(pod(
            job,
            "Job",
            "batch-p4v8t",
            "e2b7c919",
            "c-job-2",
            "w2",
            plan.web_replacement + 0.1,
            None,
        ));
        all.push(marked(pod("lab/bare", "Pod", "bare", "d41f00aa", "c-bare-1", "w1", 0.6, other_end)));
    }
    for pod in &all {
        node_evidence(plan, story, pod);
        api_evidence(plan, story, pod);
    }
}

fn span(plan: &Plan, pod: &Pod<'_>, source: PodSource, state: PodState, from: f64, to: f64) -> PodSeen {
    let node_clock = source != PodSource::Api;
    PodSeen {
        from: if node_clock { plan.at(from) } else { rackrift_checkers::history::At::exactly(s(from)) },
        to: if node_clock { plan.at(to) } else { rackrift_checkers::history::At::exactly(s(to)) },
        source,
        node: pod.node.to_owned(),
        via: None,
        owner_kind: pod.kind.to_owned(),
        identity: pod.identity.to_owned(),
        name: pod.name.to_owned(),
        uid: pod.uid.to_owned(),
        container: node_clock.then(|| pod.token.to_owned()),
        state,
        beats: 0,
        gap: 0,
        host_from: node_clock.then(|| host_time(pod.node, from)),
        host_to: node_clock.then(|| host_time(pod.node, to)),
    }
}

/// Heartbeat files are fetched each 20 s and once at the end; the runtime is asked in between.
fn node_evidence(plan: &Plan, story: &mut Story, pod: &Pod<'_>) {
    let mut from = pod.from;
    while from < pod.to {
        let to = (from + 20.0).min(pod.to);
        let beats = ((to - from) / 0.2).round() as u64 + 1;
        let seen = PodSeen {
            beats,
            gap: s(0.214),
            ..span(plan, pod, PodSource::Heartbeat, PodState::Running, from, to)
        };
        story.line(s(to + 0.5), Entry::Pod(seen));
        from = to;
    }
    let runtime = span(plan, pod, PodSource::Runtime, PodState::Running, pod.from, pod.to);
    story.line(s(plan.end - 0.4), Entry::Pod(runtime));
    if pod.ends {
        let gone = span(plan, pod, PodSource::Runtime, PodState::Stopped, pod.to + 0.01, pod.to + 0.01);
        story.line(s(plan.end - 0.4), Entry::Pod(gone));
    }
}

/// m2's API server shows the pod a little later, then its mark, then its end.
fn api_evidence(plan: &Plan, story: &mut Story, pod: &Pod<'_>) {
    let mut seen = |state, when: f64| {
        let via = Some("api:m2".to_owned());
        let seen = PodSeen { via, ..span(plan, pod, PodSource::Api, state, when, when) };
        story.line(s(when), Entry::Pod(seen));
    };
    seen(PodState::Running, if pod.from < 1.0 { pod.from } else { pod.from + 0.8 });
    if let Some(marked) = pod.marked {
        seen(PodState::Terminating, marked);
    }
    if pod.ends && pod.kind != "DaemonSet" {
        seen(PodState::Stopped, pod.to + 0.6);
    }
}
