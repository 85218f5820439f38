//! Did each etcd member's watch of leases deliver every version, once, in order.
//!
//! What one member's watch leaves out, repeats or turns round is found by what all others showed: the versions
//! committed are those that anybody showed, member or API server. Five of the eight bugs that etcd's own
//! robustness tests found were of this kind, and a Kubernetes whose watches lie is judged by evidence that lies.
//!
//! A watch that breaks is resumed behind its last version, so a cut leaves no gap. Only where etcd had compacted what
//! was to come, the observer began anew, and says so in its first lines: there the stream starts again.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, exhibit, witness};
use super::wording::counted;
use crate::engine::watch::{Change, Kind, Rule, Seen, Stream, Violation, check as check_stream};
use crate::history::{At, Entry, LeaseSeen};
use crate::verdict::{CheckResult, Class, Witness};

/// What an observer's name begins with if it is a watch on an etcd member.
const MEMBER: &str = "etcd:";

/// A lease's version with the line on which it stands.
type Line<'a> = (&'a LeaseSeen, u64);

/// One check over all members, if any was watched.
pub(super) fn check(entries: &[Entry]) -> Vec<CheckResult> {
    let lines: Vec<Line<'_>> = entries
        .iter()
        .zip(2u64..)
        .filter_map(|(entry, line)| if let Entry::Lease(seen) = entry { Some((seen, line)) } else { None })
        .collect();
    let mut members: BTreeMap<&str, Vec<Line<'_>>> = BTreeMap::new();
    for line in lines.iter().filter(|(seen, _)| seen.via.starts_with(MEMBER)) {
        members.entry(&line.0.via).or_default().push(*line);
    }
    if members.is_empty() {
        return Vec::new();
    }
    let keys: BTreeSet<&str> = lines.iter().map(|(seen, _)| seen.lease.as_str()).collect();
    let keys: BTreeMap<&str, u32> = keys.into_iter().zip(0u32..).collect();
    let change = |seen: &LeaseSeen| Change {
        version: seen.version,
        key: keys[seen.lease.as_str()],
        kind: if seen.deleted { Kind::Deleted } else { Kind::Modified },
    };
    // By version and key: who showed it first.
    let mut shown: BTreeMap<(u64, u32), Line<'_>> = BTreeMap::new();
    for line in &lines {
        let Change { version, key, .. } = change(line.0);
        shown.entry((version, key)).or_insert(*line);
    }
    let committed: Vec<Change> = shown.values().map(|(seen, _)| change(seen)).collect();
    let mut broken = Vec::new();
    for stream in members.values().flat_map(|lines| streams(lines)) {
        let seen = stream.seen.iter().map(|(seen, _)| Seen::Change(change(seen))).collect();
        if let Err(violation) = check_stream(&committed, &Stream { from: stream.from, seen }) {
            let missing = violation.committed.and_then(|c| shown.get(&(c.version, c.key)));
            broken.push(told(&stream, &violation, missing));
        }
    }
    let delivered: usize = members.values().map(Vec::len).sum();
    let finding = Finding::new("watch-streams", "Watches show every version once, in order", Class::FromCode)
        .bound("no version left out, repeated or turned round")
        .measured(format!("{} broken", counted(broken.len(), "stream", "streams")))
        .checked(format!(
            "{} of {}",
            counted(delivered, "version", "versions"),
            counted(members.len(), "member", "members")
        ))
        .evidence("watches on the etcd members, against what anybody showed");
    let mut broken = broken.into_iter();
    vec![match broken.next() {
        Some(first) => broken
            .fold(finding.witness(first.clone()), Finding::witness)
            .say(crate::verdict::Verdict::Fail, first.sentence),
        None => finding.measured("all in order").pass(format!(
            "The watches on {} showed {}, each once and in order.",
            counted(members.len(), "etcd member", "etcd members"),
            counted(delivered, "version", "versions")
        )),
    }]
}

/// A part of what a member showed, from a beginning on.
struct Part<'a, 'l> {
    /// The version behind which the watch began.
    from: u64,
    /// What it then showed.
    seen: &'l [Line<'a>],
}

/// The parts of one member's lines: each begins with the versions that were there, which came in one answer.
fn streams<'a, 'l>(lines: &'l [Line<'a>]) -> Vec<Part<'a, 'l>> {
    let mut parts = Vec::new();
    let mut rest = lines;
    while let Some((first, _)) = rest.first() {
        // A history of before there was the word `anew` begins with one answer too.
        let there =
            rest.iter().take_while(|(seen, _)| seen.time == first.time && seen.anew == first.anew).count();
        let (beginning, after) = rest.split_at(there);
        let end = after.iter().position(|(seen, _)| seen.anew).unwrap_or(after.len());
        let (seen, next) = after.split_at(end);
        parts.push(Part { from: beginning.iter().map(|(seen, _)| seen.version).max().unwrap_or(0), seen });
        rest = next;
    }
    parts
}

fn told(stream: &Part<'_, '_>, violation: &Violation, missing: Option<&Line<'_>>) -> Witness {
    let (seen, line) = stream.seen[violation.at];
    let what = format!("version {} of {}", seen.version, seen.lease);
    let member = format!("The watch on {}", seen.via.trim_start_matches(MEMBER));
    let (rule, sentence) = match (violation.rule, missing) {
        (Rule::Gap, Some((lost, _))) => (
            "watch-gap",
            format!(
                "{member} left out version {} of {}, which {} showed, and went on with {what}.",
                lost.version, lost.lease, lost.via
            ),
        ),
        (Rule::Duplicate, _) => ("watch-duplicate", format!("{member} showed {what} twice.")),
        (Rule::WrongKind, Some((other, _))) => (
            "watch-wrong-kind",
            format!("{member} showed {what} as {}, {} as {}.", word(seen), other.via, word(other)),
        ),
        (Rule::BeforeStart, _) => {
            ("watch-before-start", format!("{member}, opened behind version {}, showed {what}.", stream.from))
        }
        _ => ("watch-reorder", format!("{member} showed {what} after a higher one.")),
    };
    let mut shown = vec![exhibit(seen.via.clone(), what, At::exactly(seen.time), None, Some(line))];
    if let Some((other, line)) = missing {
        let what = format!("version {} of {}", other.version, other.lease);
        shown.push(exhibit(other.via.clone(), what, At::exactly(other.time), None, Some(*line)));
    }
    witness(rule, sentence, shown)
}

const fn word(seen: &LeaseSeen) -> &'static str {
    if seen.deleted { "deleted" } else { "written" }
}
