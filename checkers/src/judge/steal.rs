//! The record rule: a lease changes hands only by release, deletion or expiry, and says so in its transitions.
//!
//! Expiry is that of the record's own `leaseDurationSeconds`, as client-go has read it since 0.27, and is judged by
//! the kindest placement of both commits. `renewTime` and `acquireTime` are wall clocks of the holders: data, no proof.

use super::finding::{Finding, witness};
use super::index::Index;
use super::record::{Change, Record, Version};
use super::takeover::{holder, shown};
use super::wording::{counted, length, seconds};
use crate::bounds::{SECOND, drift};
use crate::facts::LeaseFacts;
use crate::history::Nanos;
use crate::verdict::{CheckResult, Class, Verdict, Witness};

/// One check a component.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    index.facts.leases.iter().map(|lease| of_lease(index, lease)).collect()
}

fn of_lease(index: &Index<'_>, lease: &LeaseFacts) -> CheckResult {
    let component = &lease.component;
    let finding = Finding::new(
        format!("lease-record/{component}"),
        format!("Lease changes hands by its rules: {component}"),
        Class::FromCode,
    )
    .bound("by release, deletion or expiry; transitions +1 each time");
    let Some(record) = index.leases.get(lease.lease.as_str()).filter(|record| !record.versions.is_empty())
    else {
        return finding
            .unknown(format!("Nobody showed the lease of {component}, so its record cannot be judged."));
    };
    let changes: Vec<Change<'_, '_>> = record.changes().collect();
    let finding = finding
        .measured(counted(changes.len(), "change of holder", "changes of holder"))
        .value(changes.len() as Nanos)
        .checked(counted(record.versions.len(), "version", "versions"))
        .evidence(revisions(record));
    let mut broken: Vec<Witness> = contradictions(index, record);
    broken.extend(changes.iter().filter_map(|change| stolen(index, component, change)));
    broken.extend(
        record.versions.windows(2).filter_map(|pair| miscounted(index, component, &pair[0], &pair[1])),
    );
    let mut broken = broken.into_iter();
    if let Some(first) = broken.next() {
        let sentence = first.sentence.clone();
        return broken.fold(finding.witness(first), Finding::witness).say(Verdict::Fail, sentence);
    }
    let sentence = match changes.as_slice() {
        [] => format!(
            "{component} kept one holder over {}; no change of holder was exercised.",
            counted(record.versions.len(), "version", "versions")
        ),
        _ => format!(
            "{} in {} of the lease of {component}: each after expiry, release or deletion, and leaseTransitions \
             counted each.",
            counted(changes.len(), "change of holder", "changes of holder"),
            counted(record.versions.len(), "version", "versions"),
        ),
    };
    finding.pass(sentence)
}

fn revisions(record: &Record<'_>) -> String {
    match record.versions.as_slice() {
        [] => "–".to_owned(),
        [only] => format!("etcd revision {}", only.seen.version),
        [first, .., last] => format!("etcd revisions {} to {}", first.seen.version, last.seen.version),
    }
}

fn contradictions(index: &Index<'_>, record: &Record<'_>) -> Vec<Witness> {
    let of = |version: &Version<'_>| {
        let other = version.contradicted?;
        let sentence = format!(
            "Two observers tell different things of revision {} of {}: {} shows holder {}, {} shows holder {} ({}).",
            version.seen.version,
            version.seen.lease,
            version.seen.via,
            version.seen.holder,
            other.seen.via,
            other.seen.holder,
            index.moment(other.seen.time)
        );
        let second =
            Version { seen: other.seen, line: other.line, first: other.seen.time, contradicted: None };
        Some(witness("two-holders", sentence, vec![shown(version, "showed"), shown(&second, "showed")]))
    };
    record.versions.iter().filter_map(of).collect()
}

/// The new holder wrote although the old one's lease cannot have run out yet.
fn stolen(index: &Index<'_>, component: &str, change: &Change<'_, '_>) -> Option<Witness> {
    let (last, first) = (change.last, change.first);
    let freed = last.seen.holder.is_empty() || last.seen.deleted || last.seen.uid != first.seen.uid;
    if freed || first.seen.holder.is_empty() || first.seen.deleted {
        return None;
    }
    let duration = Nanos::from(last.seen.duration_s) * SECOND;
    let must = duration.saturating_sub(drift(duration));
    let longest = first.committed().hi.saturating_sub(last.committed().lo);
    if longest >= must {
        return None;
    }
    let measured = first.first.saturating_sub(last.first);
    let sentence = format!(
        "Stolen early: {} took the lease of {component} {} after {} had renewed it for {} (revisions {} and {}, {}).",
        first.seen.holder,
        length(measured),
        last.seen.holder,
        seconds(duration),
        last.seen.version,
        first.seen.version,
        index.moment(first.first)
    );
    let exhibits = vec![shown(last, "renewed"), shown(first, "took it")];
    let mut witness = witness("early-steal", sentence, exhibits);
    witness.margin = Some(must - longest);
    witness.excused_by = Some(must.saturating_sub(measured));
    Some(witness)
}

/// `leaseTransitions` goes up by one at each change to a new holder, and stays otherwise.
fn miscounted(
    index: &Index<'_>,
    component: &str,
    last: &Version<'_>,
    first: &Version<'_>,
) -> Option<Witness> {
    let (a, b) = (last.seen, first.seen);
    if a.uid != b.uid || a.deleted || b.deleted {
        return None;
    }
    let changed = a.holder != b.holder && !b.holder.is_empty();
    let expected = a.transitions.saturating_add(u32::from(changed));
    if b.transitions == expected {
        return None;
    }
    let what = if changed { "changed hands" } else { "kept its holder" };
    let sentence = format!(
        "leaseTransitions of {component} went from {} to {} where the lease {what} ({} to {}, revisions {} and {}, \
         {}); {expected} was due.",
        a.transitions,
        b.transitions,
        holder(index, last),
        holder(index, first),
        a.version,
        b.version,
        index.moment(first.first),
    );
    Some(witness("transitions", sentence, vec![shown(last, "before"), shown(first, "after")]))
}
