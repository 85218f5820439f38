//! What the processes believe: does the old leader give up in time, and before the new one leads.
//!
//! A process leads from its "leads" line until it is gone. Where a component releases its lease on the way out, it
//! goes on working until the release has been tried, so only its exit ends its leading; elsewhere its own "lost" does.

use std::collections::BTreeMap;

use super::finding::{Finding, MOST_WITNESSES, exhibit, witness};
use super::index::{Index, Line};
use super::takeover::{Moved, Outcome};
use super::wording::{counted, half_width, length, list, middle, seconds};
use crate::bounds::{LeaseBounds, SEEN_WITHIN, STOP_SLACK};
use crate::facts::LeaseFacts;
use crate::history::{At, Belief, BeliefEvent, Nanos};
use crate::verdict::{CheckResult, Class, Exhibit, Verdict, Witness};

/// One process's time as leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reign<'a> {
    /// Where.
    pub(super) host: &'a str,
    /// Which process.
    pub(super) pid: u32,
    /// When it began to lead; from 0 where only its end was seen.
    pub(super) begins: At,
    /// The line that says so, or the one that says that it stopped.
    pub(super) told: Line<'a, Belief>,
    /// When it stopped leading; `None`: nothing says that it ever did.
    pub(super) stops: Option<Line<'a, Belief>>,
    /// When the process ended.
    pub(super) exits: Option<Line<'a, Belief>>,
}

impl Reign<'_> {
    fn who(&self, component: &str) -> String {
        format!("{} {component} pid {}", self.host, self.pid)
    }

    fn exhibits(&self, component: &str) -> Vec<Exhibit> {
        let mut shown = vec![exhibit(
            self.who(component),
            format!("leads: {}", self.told.seen.line),
            self.begins,
            self.stops.map(|stop| stop.seen.at),
            Some(self.told.line),
        )];
        if let Some(stop) = self.stops {
            let what = format!("stops: {}", stop.seen.line);
            shown.push(exhibit(self.who(component), what, stop.seen.at, None, Some(stop.line)));
        }
        shown
    }
}

/// Each process's time as leader of `lease`, by when it began.
pub(super) fn reigns<'a>(index: &Index<'a>, lease: &LeaseFacts) -> Vec<Reign<'a>> {
    let Some(lines) = index.beliefs.get(lease.component.as_str()) else { return Vec::new() };
    let mut processes: BTreeMap<(&str, u32, &str), Vec<Line<'a, Belief>>> = BTreeMap::new();
    for line in lines {
        let Belief { host, pid, host_time, .. } = line.seen;
        processes.entry((host, *pid, &host_time.boot)).or_default().push(*line);
    }
    let mut reigns: Vec<Reign<'a>> = processes.values().flat_map(|lines| of_process(lease, lines)).collect();
    reigns.sort_by_key(|reign| (reign.begins, reign.told.line));
    reigns
}

/// The times as leader of one process.
fn of_process<'a>(lease: &LeaseFacts, lines: &[Line<'a, Belief>]) -> Vec<Reign<'a>> {
    let mut reigns: Vec<Reign<'a>> = Vec::new();
    let of_kind = |kind: BeliefEvent| lines.iter().filter(move |line| line.seen.event == kind);
    let leads = |line: &Line<'a, Belief>| line.seen.event == BeliefEvent::Leads;
    // Only a leader can fail to renew: such a process led, even if that line is older than the run.
    let begun = lines.iter().any(leads);
    let older = of_kind(BeliefEvent::Lost).take(if begun { 0 } else { usize::MAX });
    for begin in of_kind(BeliefEvent::Leads).chain(older) {
        let first = |events: &[BeliefEvent]| {
            let later = lines.iter().filter(|line| line.seen.at.hi >= begin.seen.at.lo);
            later.filter(|line| events.contains(&line.seen.event)).min_by_key(|line| line.seen.at).copied()
        };
        let exits = first(&[BeliefEvent::Exits]);
        let lost = first(&[BeliefEvent::Lost, BeliefEvent::Exits]);
        let stops = if lease.releases { exits.or(lost) } else { lost };
        let at = begin.seen.at;
        let begins = if leads(begin) { at } else { At { lo: 0, hi: at.lo } };
        let (host, pid) = (begin.seen.host.as_str(), begin.seen.pid);
        reigns.push(Reign { host, pid, begins, told: *begin, stops, exits });
    }
    reigns
}

/// Two reigns that share time: certainly for `lo`, possibly for up to `hi`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overlap<'a> {
    pub(super) old: Reign<'a>,
    pub(super) new: Reign<'a>,
    /// Shortest and longest shared time; `lo` is 0 if none is certain.
    pub(super) shared: At,
}

/// How two processes' beliefs lie in time.
pub(super) enum Apart<'a> {
    /// Some time is shared, or may be.
    Overlaps(Vec<Overlap<'a>>),
    /// Never shared: the smallest time between two leaders, if there were two.
    Clear(Option<At>),
}

/// How the reigns of `lease` lie in time.
pub(super) fn apart<'a>(reigns: &[Reign<'a>], end: Nanos) -> Apart<'a> {
    let mut overlaps: Vec<Overlap<'a>> = Vec::new();
    let mut nearest: Option<At> = None;
    for (i, old) in reigns.iter().enumerate() {
        for new in &reigns[i + 1..] {
            let leads = new.begins;
            // Without a word of its end a reign certainly lasts for its first moment only, and possibly for ever.
            let stop = old.stops.map_or(At { lo: old.begins.hi, hi: end }, |stop| stop.seen.at);
            let shared = At { lo: stop.lo.saturating_sub(leads.hi), hi: stop.hi.saturating_sub(leads.lo) };
            if shared.hi > 0 {
                overlaps.push(Overlap { old: *old, new: *new, shared });
                continue;
            }
            let gap = At { lo: leads.lo - stop.hi, hi: leads.hi.saturating_sub(stop.lo) };
            nearest = Some(nearest.map_or(gap, |near| if gap.lo < near.lo { gap } else { near }));
            // Whoever began later still is further off.
            break;
        }
    }
    overlaps.sort_by_key(|overlap| std::cmp::Reverse((overlap.shared.lo, overlap.shared.hi)));
    if overlaps.is_empty() { Apart::Clear(nearest) } else { Apart::Overlaps(overlaps) }
}

/// Two checks a component of which a takeover is expected, one of each that must not move.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for lease in &index.facts.leases {
        if let Some(expected) = index.facts.expect.takeovers.iter().find(|t| t.component == lease.component) {
            if let Outcome::Moved(moved) = Outcome::of(index, expected) {
                results.push(gives_up(index, lease, &moved));
                results.push(one_believer(index, lease, Some(&moved)));
            } else {
                results.push(one_believer(index, lease, None));
            }
        } else {
            results.push(one_believer(index, lease, None));
        }
    }
    results
}

fn gives_up(index: &Index<'_>, lease: &LeaseFacts, moved: &Moved<'_, '_>) -> CheckResult {
    let component = &lease.component;
    let bounds = LeaseBounds::of(lease);
    let finding = Finding::new(
        format!("leader-stops/{component}"),
        format!("Old leader gives up in time: {component}"),
        Class::FromCode,
    )
    .bound(format!("{} after the last renewal", seconds(bounds.exit_max)))
    .evidence(format!("log and process of {} on {}", component, moved.from));
    let reigns = reigns(index, lease);
    let Some(old) = reigns.iter().rfind(|r| r.host == moved.from && r.begins.lo <= moved.first.first) else {
        return finding.unknown(format!(
            "No log line says when {component} on {} led or stopped, so whether it gave up in time is not known.",
            moved.from
        ));
    };
    let ended = if lease.exits_on_loss { old.exits } else { old.stops };
    let Some(ended) = ended else {
        let what = if old.stops.is_some() {
            "lost the lease, but nothing says that it ended"
        } else {
            "never said that it stopped"
        };
        return finding
            .checked("1 process")
            .unknown(format!("{} {what}: whether it gave up in time is not known.", old.who(component)));
    };
    let renewed = moved.last.committed();
    let (stop, end) = (old.stops.unwrap_or(ended).seen.at, ended.seen.at);
    let took = middle(end).saturating_sub(moved.last.first);
    let finding = finding.measured(seconds(took)).checked("1 process").value(took);
    let certain = end.lo.saturating_sub(renewed.hi);
    if certain > bounds.exit_max {
        let sentence = format!(
            "{} went on for {} after its last renewal (revision {}); it must be gone within {}.",
            old.who(component),
            seconds(took),
            moved.last.seen.version,
            seconds(bounds.exit_max)
        );
        let mut exhibits = vec![super::takeover::shown(moved.last, "last renewal")];
        exhibits.push(exhibit(
            old.who(component),
            format!("ends: {}", ended.seen.line),
            end,
            None,
            Some(ended.line),
        ));
        let mut witness = witness("late-stop", sentence, exhibits);
        witness.margin = Some(certain - bounds.exit_max);
        witness.excused_by =
            Some((certain - bounds.exit_max).saturating_add(half_width(end)).saturating_add(SEEN_WITHIN));
        return finding.fail(witness);
    }
    let nominal = if lease.releases {
        format!("{} by its flags, two tries to release", seconds(bounds.stop_max))
    } else {
        format!("{} by its flags", seconds(bounds.stop_max))
    };
    let lost = middle(stop).saturating_sub(moved.last.first);
    let lost = if stop == end { String::new() } else { format!(", having given up after {}", seconds(lost)) };
    finding.pass(format!(
        "{component} on {} was gone {} after its last renewal{lost}; {} are allowed ({nominal}, {} to exit).",
        moved.from,
        seconds(took),
        seconds(bounds.exit_max),
        seconds(STOP_SLACK)
    ))
}

/// Whether a shared belief would be a breach: not for pauses and clocks, nor where a release may be swallowed.
fn class_of(index: &Index<'_>, lease: &LeaseFacts) -> Class {
    let cuts_only = index.facts.faults.iter().all(|fault| fault.kind.starts_with("partition"));
    if cuts_only && !lease.releases { Class::FromCode } else { Class::NotPromised }
}

fn one_believer(index: &Index<'_>, lease: &LeaseFacts, moved: Option<&Moved<'_, '_>>) -> CheckResult {
    let component = &lease.component;
    let class = class_of(index, lease);
    let bound = if class == Class::FromCode { "no overlap" } else { "not promised; measured" };
    let finding = Finding::new(
        format!("belief-overlap/{component}"),
        format!("Old leader stops before the new one leads: {component}"),
        class,
    )
    .bound(bound);
    let reigns = reigns(index, lease);
    let missing: Vec<&str> = moved
        .map(|moved| {
            [moved.from, moved.to].into_iter().filter(|h| !reigns.iter().any(|r| r.host == *h)).collect()
        })
        .unwrap_or_default();
    if reigns.is_empty() || !missing.is_empty() {
        let whose = if missing.is_empty() { "any host".to_owned() } else { list(&missing) };
        return finding.unknown(format!(
            "No log line of {component} on {whose} says when it led, so whether two led at once is not known."
        ));
    }
    let hosts: Vec<String> = reigns.iter().map(|reign| format!("{} pid {}", reign.host, reign.pid)).collect();
    let finding = finding
        .checked(counted(reigns.len(), "time as leader", "times as leader"))
        .evidence(format!("logs of {}", list(&hosts)));
    match apart(&reigns, index.end) {
        Apart::Clear(None) => finding.measured("one leader").value(0).pass(format!(
            "Only {} on {} led; no change of leader was exercised.",
            component, reigns[0].host
        )),
        Apart::Clear(Some(gap)) => {
            let nobody = format!("{} apart", length(middle(gap)));
            finding.measured(nobody).value(middle(gap)).pass(format!(
                "No two led at once: the old leader of {component} had stopped {} ± {} before the new one began, and \
                 nobody led in between.",
                length(middle(gap)),
                length(half_width(gap))
            ))
        }
        Apart::Overlaps(overlaps) => overlapping(index, lease, class, &overlaps, finding),
    }
}

fn overlapping(
    index: &Index<'_>,
    lease: &LeaseFacts,
    class: Class,
    overlaps: &[Overlap<'_>],
    finding: Finding,
) -> CheckResult {
    let gravest = &overlaps[0];
    let witnesses: Vec<Witness> = overlaps
        .iter()
        .take(MOST_WITNESSES)
        .map(|overlap| overlap_witness(index, &lease.component, overlap))
        .collect();
    let sentence = witnesses[0].sentence.clone();
    let finding = witnesses.into_iter().fold(finding, Finding::witness);
    let shared = gravest.shared;
    if shared.lo > 0 {
        let finding =
            finding.measured(format!("two led for {}, certain", length(shared.lo))).value(shared.lo);
        return if class == Class::FromCode {
            finding.say(Verdict::Fail, sentence)
        } else {
            finding.pass(format!("{sentence} That is not promised."))
        };
    }
    if gravest.old.stops.is_none() {
        return finding.measured("no end seen").unknown(sentence);
    }
    let finding = finding.measured(format!("at most {} shared, none certain", length(shared.hi))).value(0);
    if class == Class::FromCode { finding.unknown(sentence) } else { finding.pass(sentence) }
}

fn overlap_witness(index: &Index<'_>, component: &str, overlap: &Overlap<'_>) -> Witness {
    let Overlap { old, new, shared } = overlap;
    let sentence = match old.stops {
        None => format!(
            "Nothing says when {} stopped leading; {} began {}, so whether both led at once is not known.",
            old.who(component),
            new.who(component),
            index.moment(middle(new.begins))
        ),
        Some(_) if shared.lo > 0 => format!(
            "Two led at once: {} went on for {} after {} had begun to lead ({}).",
            old.who(component),
            length(shared.lo),
            new.who(component),
            index.moment(middle(new.begins))
        ),
        Some(_) => format!(
            "{} and {} may both have led for up to {}, but the clocks are only known to {}, so they need not have.",
            old.who(component),
            new.who(component),
            length(shared.hi),
            length(
                half_width(new.begins).saturating_add(old.stops.map_or(0, |stop| half_width(stop.seen.at)))
            )
        ),
    };
    let mut exhibits = old.exhibits(component);
    exhibits.truncate(2);
    exhibits.push(new.exhibits(component).swap_remove(0));
    let mut witness = witness("two-leaders", sentence, exhibits);
    witness.margin = (shared.lo > 0).then_some(shared.lo);
    witness.excused_by = (shared.lo > 0).then(|| shared.lo.midpoint(shared.hi));
    witness
}
