//! What the page's tables and cards say: plain values for the template.
//!
//! # Invariants
//! - Nothing here is markup: the template escapes every string.
//! - Every list has an upper size, and says how many more there were.

use std::collections::HashSet;

use rackrift_checkers::facts::{Facts, HostFacts};
use rackrift_checkers::history::{Entry, Nanos};
use rackrift_checkers::verdict::{CheckResult, Class, RunVerdict, Verdict};

use super::drawing::Flag;
use crate::bounds::Bounds;
use crate::escape::slug;
use crate::findings::Finding;
use crate::story::{ClientLane, Done, FaultStory, Look, Story};
use crate::words::{self, Word};

/// Most rows of a table.
pub(super) const MOST: usize = 500;
/// Most rows of the timeline's table.
const MOST_MOMENTS: usize = 600;
/// Most notes.
const MOST_NOTES: usize = 100;

/// A sentence in pieces; lengths of time are bold.
pub(super) type Pieces = Vec<(bool, String)>;

/// One headline answer.
pub(super) struct AnswerRow {
    pub(super) question: String,
    /// Its sentences.
    pub(super) answer: Vec<Pieces>,
    /// Anchor and title of each check that it rests on.
    pub(super) checks: Vec<(String, String)>,
}

/// An anchor for each check in the verdict's order: its id as a slug, told apart where two ids make one slug.
pub(super) fn anchors(verdict: &RunVerdict) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let anchor = |(place, check): (usize, &CheckResult)| {
        let mut anchor = format!("check-{}", slug(&check.id));
        while !taken.insert(anchor.clone()) {
            anchor = format!("{anchor}-{place}");
        }
        anchor
    };
    verdict.checks.iter().take(MOST).enumerate().map(anchor).collect()
}

/// The anchor of a check, or of the table where it has no row.
pub(super) fn anchor(anchors: &[String], place: usize) -> String {
    anchors.get(place).cloned().unwrap_or_else(|| "checks".to_owned())
}

/// The headline answers.
pub(super) fn answers(verdict: &RunVerdict, anchors: &[String]) -> Vec<AnswerRow> {
    let title = |id: &String| {
        let place = verdict.checks.iter().take(MOST).position(|c| c.id == *id)?;
        Some((anchor(anchors, place), verdict.checks[place].title.clone()))
    };
    let row = |a: &rackrift_checkers::verdict::Answer| AnswerRow {
        question: a.question.clone(),
        answer: words::sentences(&a.answer).into_iter().map(words::lengths).collect(),
        checks: a.checks.iter().filter_map(title).collect(),
    };
    verdict.answers.iter().map(row).collect()
}

/// Where the bar and its parts lie, in percent of its axis.
pub(super) struct BarRow {
    pub(super) from: f64,
    pub(super) width: f64,
    pub(super) value: f64,
    pub(super) holds: bool,
    pub(super) low: Option<String>,
    pub(super) high: String,
}

impl BarRow {
    /// The verdict says whether it holds; the bar never contradicts it over a rounding.
    fn new(bounds: Bounds, verdict: Verdict) -> Self {
        let percent = |ns: f64| 100.0 * ns / bounds.axis();
        let from = percent(bounds.low.unwrap_or(0.0));
        let words = |ns: f64| words::length(ns as u64);
        Self {
            from,
            width: percent(bounds.high) - from,
            value: percent(bounds.value),
            holds: verdict == Verdict::Pass || bounds.holds(),
            low: bounds.low.map(words),
            high: words(bounds.high),
        }
    }
}

/// One check.
pub(super) struct CheckRow<'a> {
    pub(super) check: &'a CheckResult,
    pub(super) anchor: String,
    pub(super) word: Word,
    pub(super) class: &'static str,
    pub(super) sentence: Pieces,
    pub(super) bar: Option<BarRow>,
    pub(super) why: Option<&'static str>,
}

impl<'a> CheckRow<'a> {
    pub(super) fn new(check: &'a CheckResult, anchor: String) -> Self {
        let not_promised = check.class == Class::NotPromised && !check.witnesses.is_empty();
        Self {
            check,
            anchor,
            word: words::of_check(check),
            class: words::class(check.class),
            sentence: words::lengths(&check.sentence),
            bar: Bounds::of(check).map(|bounds| BarRow::new(bounds, check.verdict)),
            why: not_promised.then(|| words::why_not_promised(&check.id)),
        }
    }
}

/// Keeps each explanation where it stands first.
pub(super) fn explained(mut rows: Vec<CheckRow<'_>>) -> Vec<CheckRow<'_>> {
    let mut told = HashSet::new();
    for row in &mut rows {
        row.why = row.why.filter(|why| told.insert(*why));
    }
    rows
}

/// The classes that occur, with their meaning.
pub(super) fn classes(verdict: &RunVerdict) -> Vec<(&'static str, &'static str)> {
    [Class::Promised, Class::FromCode, Class::NotPromised, Class::Evidence]
        .into_iter()
        .filter(|class| verdict.checks.iter().any(|c| c.class == *class))
        .map(|class| (words::class(class), words::class_meaning(class)))
        .collect()
}

/// One thing that a witness points at.
pub(super) struct ExhibitRow {
    pub(super) when: String,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) line: Option<u64>,
}

/// One witness.
pub(super) struct FindingRow<'a> {
    pub(super) number: usize,
    pub(super) title: &'a str,
    pub(super) anchor: String,
    pub(super) rule: &'a str,
    pub(super) word: Word,
    pub(super) when: Option<String>,
    pub(super) sentence: Pieces,
    pub(super) exhibits: Vec<ExhibitRow>,
    pub(super) margin: Option<String>,
    pub(super) excused_by: Option<String>,
}

impl<'a> FindingRow<'a> {
    pub(super) fn new(finding: &Finding<'a>, anchor: String, zero: Nanos) -> Self {
        let witness = finding.witness;
        let exhibits = witness.exhibits.iter().map(|e| ExhibitRow {
            when: match e.to {
                Some(to) if to.hi > e.from.lo => {
                    format!("{} to {}", words::moment(e.from.lo, zero), words::moment(to.hi, zero))
                }
                _ => words::moment(e.from.lo, zero),
            },
            who: e.who.clone(),
            what: e.what.clone(),
            line: e.line,
        });
        Self {
            number: finding.number,
            title: &finding.check.title,
            anchor,
            rule: &witness.rule,
            word: finding.word,
            when: finding.at().map(|at| words::moment(at.lo, zero)),
            sentence: words::lengths(&witness.sentence),
            exhibits: exhibits.collect(),
            margin: witness.margin.map(words::length),
            excused_by: witness.excused_by.map(words::length),
        }
    }
}

/// Flags of the findings on the timeline.
pub(super) fn flags(found: &[Finding<'_>]) -> Vec<Flag> {
    let flag = |f: &Finding<'_>| Some(Flag { number: f.number, at: f.at()?.lo, style: f.word.style });
    found.iter().filter_map(flag).collect()
}

/// One sign of the legend: its style and what it means.
pub(super) struct Legend {
    pub(super) style: String,
    pub(super) words: String,
}

/// What the colours and strokes that occur in the timeline mean.
pub(super) fn legend(facts: &Facts, story: &Story) -> Vec<Legend> {
    let looks: Vec<Look> =
        story.groups.iter().flat_map(|g| &g.lanes).flat_map(|l| &l.spans).map(|s| s.look).collect();
    let any = |test: fn(&Look) -> bool| looks.iter().any(test);
    let racks = facts.racks.iter().take(6).enumerate().filter(|(i, _)| {
        let rack = Some(*i);
        let in_lanes =
            looks.iter().any(|l| matches!(l, Look::Holds(r) | Look::Stale(r) | Look::Weak(r) if *r == rack));
        in_lanes || story.clients.iter().any(|c| c.rack == rack)
    });
    let mut legend: Vec<Legend> =
        racks.map(|(i, r)| Legend { style: format!("r{i}"), words: format!("rack {}", r.name) }).collect();
    let mut add = |shown: bool, style: &str, words: &str| {
        if shown {
            legend.push(Legend { style: style.to_owned(), words: words.to_owned() });
        }
    };
    add(any(|l| *l == Look::Fault), "fault", "fault, seen in force");
    add(any(|l| *l == Look::Asked), "asked", "fault asked for or being undone, not seen by a probe");
    add(any(|l| matches!(l, Look::Stale(_))), "stale", "still on record, not renewed or nothing newer seen");
    add(any(|l| *l == Look::Tries), "tries", "tries to lead, or released");
    add(any(|l| *l == Look::Tail), "tail", "lost the lease, still runs");
    add(any(|l| *l == Look::Good), "good", "Ready");
    add(any(|l| *l == Look::Bad), "bad", "not as wanted");
    add(any(|l| matches!(l, Look::Weak(_))), "weak", "by the runtime alone, no heartbeats");
    add(any(|l| *l == Look::Outline), "outline", "marked for deletion in the API");
    add(story.groups.iter().any(|g| !g.windows.is_empty()), "dup", "more at once than wanted, for certain");
    let errors = |c: &ClientLane| c.samples.iter().any(|s| !s.how.answered());
    add(story.clients.iter().any(errors), "errs", "operations failed or without an answer");
    legend
}

/// One span of the timeline as a row.
pub(super) struct MomentRow {
    pub(super) lane: String,
    pub(super) what: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) length: String,
}

/// The timeline as a table, and how many rows were left out.
pub(super) fn moments(story: &Story) -> (Vec<MomentRow>, usize) {
    let mut rows = Vec::new();
    let mut more = 0;
    for group in &story.groups {
        let mut name = String::new();
        let spans = group.lanes.iter().map(|lane| {
            if !lane.name.is_empty() {
                name.clone_from(&lane.name);
            }
            let who = if lane.note.is_empty() { name.clone() } else { format!("{name} ({})", lane.note) };
            (format!("{}: {who}", group.title), lane)
        });
        for (lane_name, lane) in spans.collect::<Vec<_>>() {
            for span in &lane.spans {
                let tip = if span.tip.is_empty() { &span.label } else { &span.tip };
                push(&mut rows, &mut more, lane_name.clone(), tip.clone(), span.from, span.to, story.zero);
            }
            for mark in &lane.marks {
                push(&mut rows, &mut more, lane_name.clone(), mark.tip.clone(), mark.at, mark.at, story.zero);
            }
        }
        for window in &group.windows {
            push(
                &mut rows,
                &mut more,
                group.title.clone(),
                window.label.clone(),
                window.from,
                window.to,
                story.zero,
            );
        }
    }
    (rows, more)
}

fn push(
    rows: &mut Vec<MomentRow>,
    more: &mut usize,
    lane: String,
    what: String,
    from: Nanos,
    to: Nanos,
    zero: Nanos,
) {
    if rows.len() >= MOST_MOMENTS {
        *more += 1;
        return;
    }
    let (to_words, length) = if to > from {
        (words::moment(to, zero), words::length(to - from))
    } else {
        (String::new(), String::new())
    };
    rows.push(MomentRow { lane, what, from: words::moment(from, zero), to: to_words, length });
}

/// The steps of a fault.
pub(super) struct FaultRow {
    pub(super) summary: String,
    pub(super) kind: String,
    pub(super) steps: [(&'static str, String); 5],
    pub(super) edges: String,
    pub(super) open: Vec<String>,
}

impl FaultRow {
    pub(super) fn new(fault: &FaultStory, zero: Nanos) -> Self {
        let at = |t: Option<Nanos>| t.map_or("never".to_owned(), |t| words::moment(t, zero));
        let open = fault.edges.iter().filter(|e| e.observed.is_none()).take(20);
        Self {
            summary: fault.summary.clone(),
            kind: fault.kind.clone(),
            steps: [
                ("asked", at(fault.asked)),
                ("in force", at(fault.in_force)),
                ("observed", at(fault.observed)),
                ("undo sent", at(fault.healing)),
                ("healed", at(fault.healed)),
            ],
            edges: format!(
                "{} of {} seen cut, {} seen healed",
                fault.seen(),
                words::counted(fault.edges.len(), "directed edge"),
                fault.healed_edges()
            ),
            open: open.map(|e| format!("{} → {}", e.from, e.to)).collect(),
        }
    }
}

/// Counts and latency of the clients of one API server.
pub(super) struct ClientRow {
    pub(super) name: String,
    pub(super) ok: String,
    pub(super) refused: String,
    pub(super) fail: String,
    pub(super) info: String,
    pub(super) open: String,
    pub(super) median: String,
    pub(super) p99: String,
    pub(super) longest: String,
}

impl ClientRow {
    pub(super) fn new(lane: &ClientLane) -> Self {
        let mut took: Vec<Nanos> =
            lane.samples.iter().filter(|s| s.how == Done::Ok).map(|s| s.done - s.sent).collect();
        let mut at = |share: f64| {
            let place = ((took.len() as f64 * share).ceil() as usize).saturating_sub(1);
            if took.is_empty() { "–".to_owned() } else { words::length(*took.select_nth_unstable(place).1) }
        };
        let n = |how| words::count(lane.count(how) as u64);
        Self {
            name: lane.name.clone(),
            ok: n(Done::Ok),
            refused: n(Done::Refused),
            fail: n(Done::Fail),
            info: n(Done::Info),
            open: words::count(lane.open as u64),
            median: at(0.5),
            p99: at(0.99),
            longest: at(1.0),
        }
    }
}

/// The safety record of a host.
pub(super) struct HostRow<'a> {
    pub(super) host: &'a HostFacts,
    pub(super) same: bool,
}

impl<'a> HostRow<'a> {
    pub(super) fn new(host: &'a HostFacts) -> Self {
        Self { host, same: host.rules_before == host.rules_after }
    }
}

/// The hosts, those that are not clean first.
pub(super) fn hosts(facts: &Facts) -> Vec<HostRow<'_>> {
    let mut hosts: Vec<HostRow<'_>> = facts.hosts.iter().map(HostRow::new).collect();
    hosts.sort_by_key(|row| row.host.clean.is_none() && row.same);
    hosts.truncate(MOST);
    hosts
}

/// Notes with their moments, and how many were left out.
pub(super) fn notes(entries: &[Entry], zero: Nanos) -> (Vec<(String, String)>, usize) {
    let notes = entries.iter().filter_map(|e| match e {
        Entry::Note(note) => Some(note),
        _ => None,
    });
    let total = notes.clone().count();
    let shown = notes.take(MOST_NOTES).map(|n| (words::moment(n.time, zero), n.text.clone())).collect();
    (shown, total.saturating_sub(MOST_NOTES))
}

/// `Kubernetes 1.34.4, etcd 3.6.16`: what a reader looks for first.
pub(super) fn versions(facts: &Facts) -> String {
    let of = |name: &str, shown: &str| {
        let (_, version) = facts.versions.iter().find(|(n, _)| n == name)?;
        Some(format!("{shown} {version}"))
    };
    [of("kubernetes", "Kubernetes"), of("etcd", "etcd")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Flags in force, by whom.
pub(super) fn flags_in_force(facts: &Facts) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for lease in &facts.leases {
        let flags = &lease.flags;
        let mut text = format!(
            "lease duration {}, renew deadline {}, retry period {}",
            words::seconds(flags.lease_duration),
            words::seconds(flags.renew_deadline),
            words::seconds(flags.retry_period)
        );
        if lease.exits_on_loss {
            text.push_str("; exits when it loses the lease");
        }
        if lease.releases {
            text.push_str("; releases it on a clean stop");
        }
        rows.push((lease.component.clone(), text));
    }
    let nodes = &facts.nodes;
    rows.push((
        "nodes".to_owned(),
        format!(
            "monitor period {}, grace period {}, heartbeat {}, unreachable toleration {}",
            words::seconds(nodes.monitor_period),
            words::seconds(nodes.grace_period),
            words::seconds(nodes.heartbeat),
            words::seconds(nodes.toleration)
        ),
    ));
    rows
}
