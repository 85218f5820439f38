//! When the faults of a scenario begin, and which: once each as listed, the list over and over, or drawn by chance.
//!
//! A schedule becomes a plain list of [`Firing`]s before anything is touched, from the scenario and the seed alone. So the
//! same seed asks for the same faults in the same order with the same waits, on every machine; only what a selector
//! such as `leader:kube-scheduler` means is left to the moment.
//!
//! A fault begins when the one before it is healed: how long a fault takes may depend on a state that ends it, so the
//! waits are counted from heal to begin, not from a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rackrift_checkers::generate::Chance;
use serde::{Deserialize, Serialize};

use crate::length::Length;

/// No more faults than this in one run: [`crate::fault::id::FaultId`] has three digits for them.
const MOST: u32 = 999;

/// When faults begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Schedule {
    /// The whole list of faults so many times, in its order.
    Repeat(Repeat),
    /// Faults drawn from the list by chance, from the seed of the run.
    Random(Random),
}

/// The list over and over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How many times, 1 to 999.
    pub times: u32,
    /// How long to wait between one heal and the next fault.
    pub gap: Length,
}

/// Faults by chance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// How many faults, 1 to 999.
    pub times: u32,
    /// The shortest and the longest wait between one heal and the next fault.
    pub gap: (Length, Length),
    /// Fault's name → its weight. Faults that are not named are not drawn; without a mix, each is as likely.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<String, u32>,
}

/// One fault that is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// Its place in the scenario's list.
    pub fault: usize,
    /// Its name within the run: the scenario's, with `-2`, `-3` if it is not the first of that name.
    pub name: String,
    /// How long to wait before it.
    pub wait: Duration,
    /// Chance for what its selectors draw.
    pub chance: Chance,
}

/// What is wrong with a schedule: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ScheduleError {
    /// The field.
    pub place: &'static str,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// The faults in the order in which they begin; `names` are those of the scenario's list.
///
/// # Errors
/// Numbers out of range, doubled names, a mix of unknown faults or without any weight.
pub fn firings(schedule: Option<&Schedule>, names: &[&str], seed: u64) -> Result<Vec<Firing>, ScheduleError> {
    let wrong = |place, reason: String| Err(ScheduleError { place, reason });
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|n| !seen.insert(**n)) {
        return wrong("faults", format!("two are named `{twice}`; a name tells one fault from the others"));
    }
    let mut chance = Chance::seeded(seed);
    let picked: Vec<(usize, Duration)> = match schedule {
        None => (0..names.len()).map(|fault| (fault, Duration::ZERO)).collect(),
        Some(_) if names.is_empty() => return wrong("schedule", "there is no fault to begin".to_owned()),
        Some(Schedule::Repeat(Repeat { times, gap })) => {
            let count = times.saturating_mul(u32::try_from(names.len()).unwrap_or(u32::MAX));
            if count == 0 || count > MOST {
                return wrong("schedule, repeat, times", out_of_range(count));
            }
            (0..count as usize).map(|n| (n % names.len(), gap.duration())).collect()
        }
        Some(Schedule::Random(random)) => {
            if random.times == 0 || random.times > MOST {
                return wrong("schedule, random, times", out_of_range(random.times));
            }
            let (least, most) = (random.gap.0.duration(), random.gap.1.duration());
            if least > most {
                let reason = format!(
                    "the shortest wait, {}, is longer than the longest, {}",
                    random.gap.0, random.gap.1
                );
                return wrong("schedule, random, gap", reason);
            }
            let weights = weights(&random.mix, names)?;
            let span = u64::try_from((most - least).as_millis()).unwrap_or(u64::MAX);
            (0..random.times)
                .map(|_| {
                    let wait = least + Duration::from_millis(chance.below(span.saturating_add(1)));
                    (weighted(&weights, &mut chance), wait)
                })
                .collect()
        }
    };
    let mut used = BTreeSet::new();
    Ok(picked
        .into_iter()
        .enumerate()
        .map(|(n, (fault, wait))| Firing {
            fault,
            name: unused(names, names[fault], &mut used),
            // The wait is between two faults: the first follows the baseline.
            wait: if n == 0 { Duration::ZERO } else { wait },
            chance: Chance::seeded(chance.next()),
        })
        .collect())
}

fn out_of_range(count: u32) -> String {
    format!("this asks for {count} faults; 1 to {MOST} can be had in one run")
}

/// A weight for each of the names.
fn weights(mix: &BTreeMap<String, u32>, names: &[&str]) -> Result<Vec<u64>, ScheduleError> {
    let place = "schedule, random, mix";
    if let Some(unknown) = mix.keys().find(|k| !names.contains(&k.as_str())) {
        let reason =
            format!("there is no fault `{unknown}` in this scenario; there are: {}", names.join(", "));
        return Err(ScheduleError { place, reason });
    }
    let of = |name: &&str| if mix.is_empty() { 1 } else { mix.get(*name).copied().unwrap_or(0).into() };
    let weights: Vec<u64> = names.iter().map(of).collect();
    if weights.iter().sum::<u64>() == 0 {
        return Err(ScheduleError { place, reason: "all weights are 0, so nothing can be drawn".to_owned() });
    }
    Ok(weights)
}

fn weighted(weights: &[u64], chance: &mut Chance) -> usize {
    let mut left = chance.below(weights.iter().sum());
    weights
        .iter()
        .position(|w| {
            let here = left < *w;
            left = left.saturating_sub(*w);
            here
        })
        .expect("what is drawn is below the sum of all weights")
}

/// `name`, or `name-2` and so on: never one of the scenario's own names but its own, never one used before.
fn unused(names: &[&str], name: &str, used: &mut BTreeSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while used.contains(&candidate) || (candidate != name && names.contains(&candidate.as_str())) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    used.insert(candidate.clone());
    candidate
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length(text: &str) -> Length {
        text.parse().unwrap()
    }

    fn random(times: u32, mix: &[(&str, u32)]) -> Schedule {
        let mix = mix.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect();
        Schedule::Random(Random { times, gap: (length("2s"), length("5s")), mix })
    }

    #[test]
    fn without_a_schedule_each_once_in_its_order_and_at_once() {
        let all = firings(None, &["cut", "pause"], 1).unwrap();
        assert_eq!(
            all.iter().map(|f| (f.fault, f.name.as_str())).collect::<Vec<_>>(),
            [(0, "cut"), (1, "pause")]
        );
        assert!(all.iter().all(|f| f.wait.is_zero()));
    }

    #[test]
    fn a_list_is_repeated_with_its_gap_and_each_has_a_name_of_its_own() {
        let schedule = Schedule::Repeat(Repeat { times: 2, gap: length("3s") });
        let all = firings(Some(&schedule), &["cut", "cut-2"], 1).unwrap();
        let seen: Vec<_> = all.iter().map(|f| (f.name.as_str(), f.wait.as_secs())).collect();
        assert_eq!(seen, [("cut", 0), ("cut-2", 3), ("cut-3", 3), ("cut-2-2", 3)]);
    }

    #[test]
    fn chance_follows_the_weights_and_the_seed() {
        let schedule = random(999, &[("cut", 3), ("pause", 1)]);
        let names = ["cut", "fill", "pause"];
        let all = firings(Some(&schedule), &names, 7).unwrap();
        let count = |fault| all.iter().filter(|f| f.fault == fault).count();
        assert_eq!(count(1), 0);
        assert!((650..850).contains(&count(0)), "{}", count(0));
        assert_eq!(all, firings(Some(&schedule), &names, 7).unwrap());
        assert_ne!(all, firings(Some(&schedule), &names, 8).unwrap());
        assert!(all[1..].iter().all(|f| (2_000..=5_000).contains(&f.wait.as_millis())));
        // Both ends of the gap come up, and no two faults draw alike.
        assert!(all[1..].iter().any(|f| f.wait.as_millis() < 2_050));
        assert!(all[1..].iter().any(|f| f.wait.as_millis() > 4_950));
        let draws: BTreeSet<u64> = all.iter().map(|f| f.chance.clone().next()).collect();
        assert_eq!(draws.len(), all.len());
    }

    #[test]
    fn messages() {
        let repeat = |times| Some(Schedule::Repeat(Repeat { times, gap: length("0ms") }));
        let reversed = Random { times: 1, gap: (length("5s"), length("2s")), mix: BTreeMap::new() };
        let wrong = [
            firings(None, &["cut", "cut"], 1),
            firings(repeat(0).as_ref(), &["cut"], 1),
            firings(repeat(501).as_ref(), &["cut", "pause"], 1),
            firings(repeat(1).as_ref(), &[], 1),
            firings(Some(&random(0, &[])), &["cut"], 1),
            firings(Some(&random(1_000, &[])), &["cut"], 1),
            firings(Some(&Schedule::Random(reversed)), &["cut"], 1),
            firings(Some(&random(3, &[("cutt", 1)])), &["cut", "pause"], 1),
            firings(Some(&random(3, &[("cut", 0)])), &["cut"], 1),
        ];
        let all: Vec<String> = wrong.into_iter().map(|w| w.unwrap_err().to_string()).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    proptest! {
        #[test]
        fn names_are_never_doubled(
            names in prop::collection::btree_set("[a-c](-[2-4])?", 1..6),
            times in 1_u32..20,
            seed: u64,
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let all = firings(Some(&random(times, &[])), &names, seed).unwrap();
            let distinct: BTreeSet<&String> = all.iter().map(|f| &f.name).collect();
            prop_assert_eq!(distinct.len(), all.len());
        }
    }
}
