//! Does the lease move, from whom to whom, and between the bounds that follow from the flags.
//!
//! Time counts from the old holder's last renewal *in the record*, not from the cut: that is the moment from
//! which the candidates' clocks run.

use super::finding::{Finding, exhibit, witness};
use super::index::{Index, observer_host};
use super::record::{Change, Record, Version};
use super::wording::{bare_seconds, counted, length, list, seconds};
use crate::bounds::{LeaseBounds, SEEN_WITHIN, drift};
use crate::facts::{LeaseFacts, Takeover};
use crate::history::{At, LeaseSeen, Nanos, OpType};
use crate::verdict::{CheckResult, Class, Exhibit, Verdict};

/// A lease that moved as the scenario expects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moved<'r, 'a> {
    /// The old holder's last renewal.
    pub(super) last: &'r Version<'a>,
    /// The new holder's first version.
    pub(super) first: &'r Version<'a>,
    /// The host that held it.
    pub(super) from: &'r str,
    /// The host that holds it now.
    pub(super) to: &'r str,
}

impl Moved<'_, '_> {
    /// Shortest and longest time between the two commits.
    pub(super) fn gap(&self) -> At {
        let (last, first) = (self.last.committed(), self.first.committed());
        At { lo: first.lo.saturating_sub(last.hi), hi: first.hi.saturating_sub(last.lo) }
    }

    /// The time between the two first showings: the best single figure.
    pub(super) const fn measured(&self) -> Nanos {
        self.first.first.saturating_sub(self.last.first)
    }

    /// `etcd revisions 1170 → 1302`.
    pub(super) fn revisions(&self) -> String {
        format!("etcd revisions {} → {}", self.last.seen.version, self.first.seen.version)
    }
}

/// What became of an expected move.
pub(super) enum Outcome<'r, 'a> {
    /// It moved to one of the hosts that may lead afterwards.
    Moved(Moved<'r, 'a>),
    /// It moved to somebody else.
    Elsewhere(Change<'r, 'a>),
    /// Nobody took it; the last renewal.
    Stayed(&'r Version<'a>),
    /// The isolated holder went on renewing during the cut: this many versions, the last one.
    Renewed(usize, &'r Version<'a>),
    /// The lease was held from another host when the fault came.
    WrongHolder(&'r Version<'a>),
    /// The fault was never asked for.
    NoFault,
    /// Nobody who could see etcd's majority showed the lease.
    NoEvidence(String),
}

impl<'r, 'a> Outcome<'r, 'a> {
    /// What became of `expected`.
    pub(super) fn of(index: &'r Index<'a>, expected: &Takeover) -> Self {
        let Some(cut) = index.cut() else { return Self::NoFault };
        let (Some(asked), Some(record)) = (cut.asked, index.record(&expected.component)) else {
            return Self::NoEvidence(format!("no observer showed the lease of {}", expected.component));
        };
        if !record.observers.keys().any(|via| index.always_sees_majority(via)) {
            return Self::NoEvidence("every observer of the lease was cut off itself".to_owned());
        }
        let Some(held) = record.at(asked) else {
            return Self::NoEvidence(format!(
                "nobody showed the lease of {} before the cut",
                expected.component
            ));
        };
        if index.host_of(&held.seen.holder) != expected.from {
            return Self::WrongHolder(held);
        }
        let until = cut.healing.unwrap_or(Nanos::MAX);
        let change = record.changes().find(|change| {
            change.last.seen.version >= held.seen.version && !change.first.seen.holder.is_empty()
        });
        let in_force = cut.in_force.unwrap_or(asked);
        let stop = change.map_or(until, |change| change.first.first.min(until));
        // A write that was under way when the cut fell may be committed by etcd's next leader: one is no renewal.
        let during = record.versions.iter().filter(|version| {
            version.committed().lo > in_force
                && version.first < stop
                && index.host_of(&version.seen.holder) == expected.from
        });
        let renewed: Vec<&Version<'_>> = during.collect();
        if let [_, .., last] = renewed.as_slice() {
            return Self::Renewed(renewed.len(), last);
        }
        let Some(change) = change else {
            let last = record.versions.iter().rfind(|version| version.seen.holder == held.seen.holder);
            return Self::Stayed(last.unwrap_or(held));
        };
        let to = index.host_of(&change.first.seen.holder);
        if !expected.to.iter().any(|host| host == to) {
            return Self::Elsewhere(change);
        }
        // A release in between keeps the holder's last own version as the renewal that counts.
        let last = record.versions.iter().rfind(|version| {
            version.seen.version < change.first.seen.version && version.seen.holder == held.seen.holder
        });
        let from = index.host_of(&held.seen.holder);
        Self::Moved(Moved { last: last.unwrap_or(change.last), first: change.first, from, to })
    }
}

/// One check an expected move, one a component that must not move.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let expect = &index.facts.expect;
    let moves = expect.takeovers.iter().map(|expected| expected_move(index, expected));
    moves.chain(expect.steady.iter().map(|component| steady(index, component))).collect()
}

fn expected_move(index: &Index<'_>, expected: &Takeover) -> CheckResult {
    let component = &expected.component;
    let finding = Finding::new(
        format!("lease-takeover/{component}"),
        format!("Lease moves within bounds: {component}"),
        Class::FromCode,
    );
    let Some(lease) = index.component(component) else {
        return finding
            .unknown(format!("The flags of {component} are not known, so there is no bound to hold it to."));
    };
    let bounds = LeaseBounds::of(lease);
    let finding = finding.bound(format!(
        "{} to {} after the last renewal",
        bare_seconds(bounds.takeover.min),
        seconds(bounds.takeover.max)
    ));
    let finding = match index.record(component) {
        Some(record) => finding.checked(observed(record)),
        None => finding,
    };
    match Outcome::of(index, expected) {
        Outcome::Moved(moved) => judge_move(index, lease, &bounds, &moved, finding),
        Outcome::NoFault => finding
            .invalid(format!("No fault was put in force, so {component} had no reason to leave {}.", expected.from)),
        Outcome::NoEvidence(why) => {
            finding.unknown(format!("Whether {component} moved from {} is not known: {why}.", expected.from))
        }
        Outcome::WrongHolder(held) => finding.measured(format!("held from {}", holder(index, held))).invalid(format!(
            "{component} was led from {} when the cut fell, not from {}: the leader was never in the minority, so \
             the run says nothing about a takeover.",
            holder(index, held),
            expected.from
        )),
        Outcome::Renewed(times, last) => finding
            .measured(format!("{} renewed on", expected.from))
            .witness(witness(
                "renewed-while-cut",
                format!("{} renewed the lease {}.", expected.from, index.moment(last.first)),
                vec![shown(last, "renewed while it should have been cut off")],
            ))
            .invalid(format!(
                "{} renewed the lease of {component} {} after the cut was in force, last {}: the fault did not bite.",
                expected.from,
                counted(times, "time", "times"),
                index.moment(last.first)
            )),
        Outcome::Elsewhere(change) => elsewhere(index, expected, &change, finding),
        Outcome::Stayed(last) => stayed(index, expected, &bounds, last, finding),
    }
}

fn elsewhere(
    index: &Index<'_>,
    expected: &Takeover,
    change: &Change<'_, '_>,
    finding: Finding,
) -> CheckResult {
    let to = holder(index, change.first);
    let finding = finding.measured(format!("moved to {to}"));
    if index.isolated().contains(to) {
        return finding.invalid(format!(
            "{to} took the lease of {} {} although it was to be cut off: the fault did not bite.",
            expected.component,
            index.moment(change.first.first)
        ));
    }
    let sentence = format!(
        "The lease of {} moved from {} to {to} {}; only {} may lead then.",
        expected.component,
        expected.from,
        index.moment(change.first.first),
        list(&expected.to)
    );
    let exhibits = vec![shown(change.last, "last renewal"), shown(change.first, "took the lease")];
    finding.fail(witness("wrong-holder", sentence, exhibits))
}

fn stayed(
    index: &Index<'_>,
    expected: &Takeover,
    bounds: &LeaseBounds,
    last: &Version<'_>,
    finding: Finding,
) -> CheckResult {
    let until = index.cut().and_then(|cut| cut.healing).unwrap_or(index.end);
    let waited = until.saturating_sub(last.committed().hi);
    let finding = finding.measured(format!("nobody in {}", seconds(waited)));
    if waited <= bounds.alive_max {
        return finding.unknown(format!(
            "Nobody took the lease of {} in the {} after {}'s last renewal; the flags and a dead connection allow {}, so \
             the cut, or what was recorded of it, was too short to tell.",
            expected.component,
            seconds(waited),
            expected.from,
            seconds(bounds.alive_max)
        ));
    }
    let sentence = format!(
        "Nobody took the lease of {} in the {} after {}'s last renewal (revision {}); with a quorum and a healthy \
         candidate on {} somebody must within {}.",
        expected.component,
        seconds(waited),
        expected.from,
        last.seen.version,
        list(&expected.to),
        seconds(bounds.alive_max)
    );
    finding.fail(witness("no-takeover", sentence, vec![shown(last, "last renewal; nobody followed")]))
}

fn judge_move(
    index: &Index<'_>,
    lease: &LeaseFacts,
    bounds: &LeaseBounds,
    moved: &Moved<'_, '_>,
    finding: Finding,
) -> CheckResult {
    let (gap, measured) = (moved.gap(), moved.measured());
    let (component, from, to) = (&lease.component, moved.from, moved.to);
    let finding = finding
        .measured(format!("{} ± {}", seconds(measured), length(SEEN_WITHIN)))
        .value(measured)
        .evidence(moved.revisions());
    let exhibits = || vec![shown(moved.last, "last renewal"), shown(moved.first, "took the lease")];
    let earliest = bounds.takeover.min.saturating_sub(drift(bounds.takeover.min));
    let released = moved.last.seen.version != moved.first.seen.version
        && index.record(component).is_some_and(|record| was_released(record, moved));
    let told =
        format!("{component} moved from {from} to {to} {} after {from}'s last renewal", seconds(measured));
    if released {
        return finding
            .pass(format!("{told}; {from} had released the lease, so there was nothing to wait for."));
    }
    if gap.hi < earliest {
        let sentence = format!(
            "{told} (revisions {} and {}), at least {} before the lease could have run out.",
            moved.last.seen.version,
            moved.first.seen.version,
            length(earliest - gap.hi)
        );
        let mut witness = witness("early-takeover", sentence, exhibits());
        witness.margin = Some(earliest - gap.hi);
        witness.excused_by = Some(earliest - measured);
        return finding.fail(witness);
    }
    if measured < earliest {
        return finding.unknown(format!(
            "{told}, {} too early, but the observers' delay of up to {} could explain it.",
            length(earliest - measured),
            length(SEEN_WITHIN)
        ));
    }
    let late = measured.saturating_sub(bounds.takeover.max);
    if late == 0 {
        return finding.pass(format!(
            "{told}, within the {} to {} that the flags give it.",
            bare_seconds(bounds.takeover.min),
            seconds(bounds.takeover.max)
        ));
    }
    if gap.lo <= bounds.takeover.max {
        return finding.unknown(format!(
            "{told}, {} too late, but the observers' delay of up to {} could explain it.",
            length(late),
            length(SEEN_WITHIN)
        ));
    }
    let (verdict, why) = lateness(index, bounds, moved, late);
    let sentence = format!("{told}, {} later than the flags allow{why}", length(late));
    if verdict == Verdict::Fail {
        let mut witness = witness("late-takeover", sentence, exhibits());
        witness.margin = Some(gap.lo - bounds.takeover.max);
        return finding.fail(witness);
    }
    finding.say(verdict, sentence)
}

/// Whether a silent API server at the new leader's side excuses a late takeover, and the rest of the sentence.
fn lateness(
    index: &Index<'_>,
    bounds: &LeaseBounds,
    moved: &Moved<'_, '_>,
    late: Nanos,
) -> (Verdict, String) {
    if moved.gap().lo > bounds.alive_max {
        return (
            Verdict::Fail,
            format!(" and later than the {} that a dead connection excuses.", seconds(bounds.alive_max)),
        );
    }
    let window = At { lo: moved.last.first, hi: moved.first.first };
    match longest_silence(index, moved.to, window) {
        None => (
            Verdict::Unknown,
            format!(
                "; whether {}'s API server answered meanwhile is not known, for no client asked it.",
                moved.to
            ),
        ),
        Some(silence) if silence >= late => (
            Verdict::Pass,
            format!(
                "; {}'s API server gave no answer for {} of that time, which excuses it.",
                moved.to,
                length(silence)
            ),
        ),
        Some(silence) => (
            Verdict::Fail,
            format!("; {}'s API server never stalled for more than {}.", moved.to, length(silence)),
        ),
    }
}

/// The longest time in `window` without a definite answer of `host`'s API server to a client; `None` if no client asked.
fn longest_silence(index: &Index<'_>, host: &str, window: At) -> Option<Nanos> {
    let through = |client: &str| index.facts.clients.iter().any(|c| c.client == client && c.host == host);
    let mut last = window.lo;
    let (mut longest, mut asked) = (0, false);
    for op in index.ops.iter().map(|line| line.seen) {
        if !op.client.as_deref().is_some_and(through) || op.time < window.lo || op.time > window.hi {
            continue;
        }
        asked |= op.kind == OpType::Invoke;
        // A read that failed for want of an answer is no answer.
        if op.kind == OpType::Ok || op.is_refusal() {
            longest = longest.max(op.time.saturating_sub(last));
            last = last.max(op.time);
        }
    }
    asked.then(|| longest.max(window.hi.saturating_sub(last)))
}

fn was_released(record: &Record<'_>, moved: &Moved<'_, '_>) -> bool {
    record.versions.iter().any(|version| {
        version.seen.holder.is_empty()
            && version.seen.version > moved.last.seen.version
            && version.seen.version < moved.first.seen.version
    })
}

fn steady(index: &Index<'_>, component: &str) -> CheckResult {
    let finding = Finding::new(
        format!("lease-steady/{component}"),
        format!("Lease does not move: {component}"),
        Class::FromCode,
    )
    .bound("no change of holder");
    let Some(record) =
        index.record(component).filter(|r| r.observers.keys().any(|via| index.always_sees_majority(via)))
    else {
        return finding
            .unknown(format!("Whether {component} kept its leader is not known: nobody showed its lease."));
    };
    let finding = finding.checked(observed(record));
    let moves: Vec<Change<'_, '_>> = record.changes().collect();
    let Some(change) = moves.first() else {
        let Some(only) = record.versions.last() else {
            return finding.unknown(format!("Nobody showed a version of the lease of {component}."));
        };
        return finding
            .measured("0 changes")
            .value(0)
            .evidence(format!("etcd revisions to {}", only.seen.version))
            .pass(format!(
                "{component} was led from {} all the time, over {}.",
                holder(index, only),
                counted(record.versions.len(), "version", "versions")
            ));
    };
    let silent = change.first.first.saturating_sub(change.last.first);
    let sentence = format!(
        "{component} moved from {} to {} {} (revision {}) although nothing should have moved it; its lease had not \
         been renewed for {} before.",
        holder(index, change.last),
        holder(index, change.first),
        index.moment(change.first.first),
        change.first.seen.version,
        length(silent)
    );
    let exhibits = vec![shown(change.last, "last renewal"), shown(change.first, "took the lease")];
    finding.measured(counted(moves.len(), "change", "changes")).fail(witness(
        "unexpected-move",
        sentence,
        exhibits,
    ))
}

/// The host of a version's holder, or that nobody held it.
pub(super) fn holder<'r>(index: &Index<'_>, version: &'r Version<'_>) -> &'r str {
    match index.host_of(&version.seen.holder) {
        "" => "nobody",
        host => host,
    }
}

/// A version as a witness shows it.
pub(super) fn shown(version: &Version<'_>, what: &str) -> Exhibit {
    let LeaseSeen { via, lease, version: revision, holder, .. } = version.seen;
    let who = if holder.is_empty() { lease.clone() } else { format!("{lease} held by {holder}") };
    let what = format!("{what}: revision {revision}, first shown by {}", observer(via));
    exhibit(who, what, version.committed(), None, Some(version.line))
}

fn observer(via: &str) -> String {
    let host = observer_host(via);
    if via.starts_with("etcd:") { format!("etcd on {host}") } else { format!("the API server on {host}") }
}

fn observed(record: &Record<'_>) -> String {
    format!(
        "{} from {}",
        counted(record.versions.len(), "version", "versions"),
        counted(record.observers.len(), "observer", "observers")
    )
}
