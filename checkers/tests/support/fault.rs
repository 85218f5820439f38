//! The life of the partition: asked, applied, observed again and again, healed.

use rackrift_checkers::history::{Entry, FaultMark, FaultPhase, Note};

use super::facts::edges;
use super::{Jitter, Plan, Story, s};

/// Fault marks and notes of `plan`.
pub(crate) fn marks(plan: &Plan, story: &mut Story) {
    note(story, 0.0, "baseline: every lease held, every node Ready, every pod Running");
    let Some(cut) = plan.cut else { return };
    let mut jitter = Jitter::new(plan.seed + 1);
    let mut mark = |when: f64, phase, edge: Option<(String, String)>, detail: Option<&str>| {
        let fault = "rack-split-1".to_owned();
        let detail = detail.map(str::to_owned);
        story.line(s(when), Entry::Fault(FaultMark { time: s(when), fault, phase, edge, detail }));
    };
    mark(cut, FaultPhase::Asked, None, None);
    for edge in edges() {
        mark(cut + 0.001, FaultPhase::Asked, Some(edge.clone()), None);
        let applied = cut + 0.03 + 0.03 * jitter.next();
        mark(applied, FaultPhase::Applied, Some(edge.clone()), None);
        let mut seen = applied + 0.12 + 0.1 * jitter.next();
        while seen < plan.heal - 0.3 {
            mark(seen, FaultPhase::Observed, Some(edge.clone()), Some("probe unanswered, drop counter rose"));
            seen += 10.0;
        }
        mark(plan.heal + 0.001, FaultPhase::Healing, Some(edge.clone()), None);
        mark(plan.heal + 0.2 + 0.1 * jitter.next(), FaultPhase::Healed, Some(edge), Some("probe answered"));
    }
    mark(cut + 0.06, FaultPhase::Applied, None, None);
    mark(cut + 0.3, FaultPhase::Observed, None, None);
    mark(plan.heal, FaultPhase::Healing, None, None);
    mark(plan.heal + 0.3, FaultPhase::Healed, None, None);
    note(story, plan.heal + 8.6, "settled: leases held, nodes Ready, pods as wanted");
}

fn note(story: &mut Story, when: f64, text: &str) {
    story.line(s(when), Entry::Note(Note { time: s(when), text: text.to_owned() }));
}
