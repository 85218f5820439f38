//! Nodes as each API server shows them.

use rackrift_checkers::history::{Entry, Nanos, NodeSeen};

use super::{Group, Lane, Look, Ordered, Span, observer};

/// A lane for each node and API server, nodes that changed first kept when there are many.
pub(super) fn group(entries: &[Entry], end: Nanos) -> Group {
    let mut nodes: Ordered<&str, Ordered<&str, Vec<&NodeSeen>>> = Ordered::new();
    for entry in entries {
        if let Entry::Node(seen) = entry {
            nodes.entry(&seen.node).entry(&seen.via).push(seen);
        }
    }
    let mut lanes = Vec::new();
    for (node, views) in &nodes.items {
        for (place, (via, seen)) in views.items.iter().enumerate() {
            let name = if place == 0 { (*node).to_owned() } else { String::new() };
            let note = format!("as {} sees it", observer(via));
            lanes.push(Lane { name, note, spans: spans(seen, end), ..Lane::default() });
        }
    }
    // A stable sort: order stays the history's, but where lanes must be left out, the eventless ones go.
    if lanes.len() > super::MOST_LANES {
        for lane in &mut lanes {
            if lane.name.is_empty() {
                lane.name.clone_from(&lane.note);
            }
        }
        lanes.sort_by_key(|lane| lane.spans.len() < 2);
    }
    Group { title: "Nodes".to_owned(), lanes, ..Group::default() }
}

fn spans(seen: &[&NodeSeen], end: Nanos) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (i, state) in seen.iter().enumerate() {
        let to = seen.get(i + 1).map_or(end, |n| n.time).max(state.time);
        let mut taints: Vec<&str> = state.taints.iter().map(|t| taint(t)).collect();
        taints.dedup();
        let (look, word) = match state.ready.as_str() {
            "True" if taints.is_empty() => (Look::Good, "Ready".to_owned()),
            "True" => (Look::Bad, "Ready".to_owned()),
            "False" => (Look::Bad, "not Ready".to_owned()),
            other => (Look::Bad, other.to_owned()),
        };
        let label = [word.as_str()].into_iter().chain(taints).collect::<Vec<_>>().join(", ");
        let tip = if state.taints.is_empty() {
            format!("{label}, no taints")
        } else {
            format!("{word}; taints: {}", state.taints.join(", "))
        };
        match spans.last_mut() {
            Some(last) if last.label == label && last.tip == tip => last.to = to,
            _ => spans.push(Span { from: state.time, to, look, label, tip }),
        }
    }
    spans
}

/// `unreachable` of `node.kubernetes.io/unreachable:NoExecute`: the tooltip has the whole.
fn taint(taint: &str) -> &str {
    let short = taint.rsplit_once('/').map_or(taint, |(_, short)| short);
    short.split(':').next().unwrap_or(short)
}
