//! Did the fault bite: each planned edge asked, applied, seen in force before the effects and until the heal,
//! and seen healed.
//!
//! A run whose fault was not in force proves nothing, whatever else it shows: `invalid`, never passed.

use super::cut::{Cut, Edge, name};
use super::finding::{Finding, exhibit, witness};
use super::index::Index;
use super::takeover::Outcome;
use super::wording::{count, counted, length, list, short_list};
use crate::history::{At, Nanos};
use crate::verdict::{CheckResult, Class};

/// One check a planned fault for its being in force, one for its end; one alone if no fault was planned.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let effects = expected_effects(index);
    if index.cuts.is_empty() {
        let finding =
            Finding::new("fault-coverage", "The fault was in force", Class::Evidence).bound("a fault");
        return if effects.is_empty() {
            vec![
                finding.pass(
                    "No fault was planned, and none was expected: this run shows the undisturbed cluster.",
                ),
            ]
        } else {
            let sentence = format!(
                "The scenario expects {}, but no fault was planned: the run proves nothing.",
                list(&effects)
            );
            vec![finding.measured("no fault").invalid(sentence)]
        };
    }
    index.cuts.iter().flat_map(|cut| [in_force(index, cut), healed(index, cut)]).collect()
}

/// What the scenario waits for, in words.
fn expected_effects(index: &Index<'_>) -> Vec<String> {
    let expect = &index.facts.expect;
    let moves = expect.takeovers.iter().map(|t| format!("{} to move from {}", t.component, t.from));
    let nodes = expect.unknown_nodes.iter().map(|node| format!("node {node} to become Unknown"));
    let twice = expect.duplicates.iter().map(|identity| format!("{identity} to run twice"));
    moves.chain(nodes).chain(twice).collect()
}

fn in_force(index: &Index<'_>, cut: &Cut<'_>) -> CheckResult {
    let fault = cut.fault;
    let planned = cut.edges.len();
    let (one, many) = cut.unit();
    let seen = planned - cut.unobserved().len();
    let finding =
        Finding::new(format!("fault-coverage/{}", fault.id), "The fault was in force", Class::Evidence)
            .bound(format!("{} of {} {many}", count(planned), count(planned)))
            .measured(format!("{} of {} seen in force", count(seen), count(planned)))
            .checked(counted(planned, one, many))
            .evidence("probes and rule counters on both sides");
    if let Some(why) = &fault.skipped {
        return finding.skipped(format!("{} ({}) was left out: {why}", fault.id, fault.summary));
    }
    let Some(asked) = cut.asked else {
        return finding.invalid(format!(
            "The fault {} ({}) was planned but never asked for: the run proves nothing.",
            fault.id, fault.summary
        ));
    };
    let unobserved = cut.unobserved();
    if !unobserved.is_empty() {
        let sentence = format!(
            "{} of {} {many} of {} were never seen in force ({}): the fault did not bite, so the run proves nothing.",
            count(unobserved.len()),
            count(planned),
            fault.id,
            short_list(&unobserved, 3)
        );
        return finding.witness(unseen_witness(cut, &sentence)).invalid(sentence);
    }
    if let Some((edge, (from, to))) = first_hole(cut) {
        let sentence = format!(
            "{} was seen free of the fault {}, {}: it had a hole, so the run proves nothing.",
            name(edge.0, edge.1),
            index.moment(from.0),
            to.map_or("and never seen in force after that".to_owned(), |to| format!(
                "for up to {}",
                length(to - from.0)
            ))
        );
        let shown = exhibit(
            name(edge.0, edge.1),
            "seen free of it during the fault",
            At::exactly(from.0),
            to.map(At::exactly),
            Some(from.1),
        );
        return finding.witness(witness("fault-missing", &sentence, vec![shown])).invalid(sentence);
    }
    let complete = cut.seen_in_force().unwrap_or(asked);
    let applied = cut.in_force.unwrap_or(asked);
    if let Some((what, effect)) = first_effect(index)
        && effect < complete
    {
        return finding.invalid(format!(
            "{what} {}, before all of the fault had been seen in force ({}): the effect cannot be laid to the fault.",
            index.moment(effect),
            index.moment(complete)
        ));
    }
    let unseen = longest_unseen(cut, index.end);
    let finding = finding.value(complete - asked.min(complete));
    finding.pass(format!(
        "All {} {many} of {} were in force within {} of the command and seen so by probes within {}; \
         none was seen free of it until the heal, and none went unprobed for more than {}.",
        count(planned),
        fault.summary,
        length(applied.saturating_sub(asked)),
        length(complete.saturating_sub(asked)),
        length(unseen)
    ))
}

fn unseen_witness(cut: &Cut<'_>, sentence: &str) -> crate::verdict::Witness {
    let shown =
        cut.edges.iter().filter(|(_, edge)| edge.observed.is_empty()).take(3).map(|((a, b), edge)| {
            let what = match (edge.applied, edge.lost) {
                (Some(_), _) => "applied, but no probe saw an effect",
                (None, 0) => "never applied",
                (None, _) => "the answer was lost, and no probe saw an effect",
            };
            let from = At::exactly(edge.applied.or(edge.asked).or(cut.asked).unwrap_or(0));
            exhibit(name(a, b), what, from, None, None)
        });
    witness("fault-not-observed", sentence, shown.collect())
}

/// When and on which line an edge was seen open, and when it was next seen cut.
type Hole = ((Nanos, u64), Option<Nanos>);

/// The first time that an edge, once seen cut, was seen open before the heal was asked for.
fn first_hole<'a>(cut: &Cut<'a>) -> Option<((&'a str, &'a str), Hole)> {
    let holes = cut.edges.iter().filter_map(|(&name, edge)| {
        let begun = *edge.observed.first()?;
        let until = edge.healing.or(cut.healing).unwrap_or(Nanos::MAX);
        let hole = edge.missing.iter().copied().find(|&(t, _)| t > begun && t < until)?;
        let again = edge.observed.iter().copied().find(|&t| t > hole.0);
        Some((name, (hole, again)))
    });
    holes.min_by_key(|(_, (hole, _))| hole.0)
}

/// The first expected effect that the history shows, with its latest moment.
fn first_effect(index: &Index<'_>) -> Option<(String, Nanos)> {
    let moves = index.facts.expect.takeovers.iter().filter_map(|expected| {
        let Outcome::Moved(moved) = Outcome::of(index, expected) else { return None };
        Some((format!("{} moved to {}", expected.component, moved.to), moved.first.first))
    });
    let nodes = index.facts.expect.unknown_nodes.iter().filter_map(|node| {
        let seen = index.nodes.get(node.as_str())?.iter().find(|line| line.seen.ready == "Unknown")?;
        Some((format!("node {node} became Unknown"), seen.seen.time))
    });
    moves.chain(nodes).min_by_key(|(_, when)| *when)
}

/// The longest time for which an edge was taken to be cut without a probe having said so.
fn longest_unseen(cut: &Cut<'_>, end: Nanos) -> Nanos {
    let until = cut.healing.unwrap_or(end);
    let of_edge = |edge: &Edge| {
        let inner = edge.observed.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0);
        let tail = edge.observed.last().map_or(0, |&last| until.saturating_sub(last));
        inner.max(tail)
    };
    cut.edges.values().map(of_edge).max().unwrap_or(0)
}

fn healed(index: &Index<'_>, cut: &Cut<'_>) -> CheckResult {
    let planned = cut.edges.len();
    let (one, many) = cut.unit();
    let open: Vec<String> =
        cut.edges.iter().filter(|(_, edge)| edge.healed.is_none()).map(|((a, b), _)| name(a, b)).collect();
    let finding =
        Finding::new(format!("fault-healed/{}", cut.fault.id), "The fault was healed", Class::Evidence)
            .bound(format!("{} of {} {many}", count(planned), count(planned)))
            .measured(format!("{} of {} seen healed", count(planned - open.len()), count(planned)))
            .checked(counted(planned, one, many))
            .evidence("probes on both sides");
    if cut.fault.skipped.is_some() {
        return finding.skipped("There was nothing to heal: the fault was left out.");
    }
    if cut.asked.is_none() {
        return finding.invalid("There was nothing to heal: the fault was never asked for.");
    }
    let (Some(healing), true, Some(healed)) = (cut.healing, open.is_empty(), cut.healed) else {
        let what = if cut.healing.is_none() {
            "Healing was never asked for"
        } else {
            "Not all of it was seen healed"
        };
        return finding.unknown(format!(
            "{what}: whether {} still acts on {} is not known. Look with `rackrift heal`.",
            cut.fault.id,
            short_list(&open, 3)
        ));
    };
    let took = healed.saturating_sub(healing);
    finding.value(took).pass(format!(
        "All of it was seen healed within {} of the undo, {}.",
        length(took),
        index.moment(healed)
    ))
}
