//! Did the state come that a fault waited for.
//!
//! A fault may end by a state ("the lease has moved") instead of a time. Then the state is what the scenario is about:
//! if it did not come while the fault was in force for its longest time, that is a `fail`, and not a fault that
//! ended by the clock.

use super::cut::Cut;
use super::finding::{Finding, exhibit, witness};
use super::index::Index;
use super::wording::{bare_seconds, seconds};
use crate::facts::UntilFacts;
use crate::history::{At, Nanos};
use crate::verdict::{CheckResult, Class};

/// An answer to "was it in force for its longest time" may be late by the polling and the first look.
const SLACK: Nanos = 2_000_000_000;

/// One check a fault that waits for a state.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    let waiting = index.cuts.iter().filter_map(|cut| Some((cut, cut.fault.until.as_ref()?)));
    waiting.map(|(cut, until)| came(cut, until)).collect()
}

fn came(cut: &Cut<'_>, until: &UntilFacts) -> CheckResult {
    let (id, state) = (&cut.fault.id, &until.state);
    let finding = Finding::new(format!("reached/{id}"), format!("It came to this: {state}"), Class::FromCode)
        .bound(format!("within {}", seconds(until.longest)))
        .checked("1 fault")
        .evidence("API servers, asked twice a second while the fault was in force");
    let Some(begun) = cut.in_force.or(cut.asked) else {
        return finding.invalid(format!("{id} was never put in force, so nothing was waited for."));
    };
    if let Some((at, line)) = cut.reached {
        let after = at.saturating_sub(begun);
        let sentence = format!("{} after {id} was in force, {state}.", seconds(after));
        let shown = exhibit(format!("fault {id}"), "reached", At::exactly(at), None, Some(line));
        return finding
            .measured(seconds(after))
            .value(after)
            .witness(witness("reached", sentence.clone(), vec![shown]))
            .pass(sentence);
    }
    match cut.healing {
        Some(healing) if healing.saturating_sub(begun).saturating_add(SLACK) >= until.longest => {
            let held = healing.saturating_sub(begun);
            let sentence = format!(
                "{id} was in force for {} s, and it did not come to this: {state}.",
                bare_seconds(held)
            );
            let shown = exhibit(
                format!("fault {id}"),
                "in force",
                At::exactly(begun),
                Some(At::exactly(healing)),
                None,
            );
            finding.measured("never").fail(witness("not-reached", sentence, vec![shown]))
        }
        _ => finding.measured("–").unknown(format!(
            "{id} was ended before its time, so whether it would have come to this is not known: {state}."
        )),
    }
}
