//! The shape of a partition as a scenario writes it: a word, and selectors for its sets.
//!
//! # Invariants
//! * What is resolved keeps the word: a shape is never told under another's name.

use rackrift_checkers::generate::Chance;
use serde::{Deserialize, Serialize};

use super::planned::side_name;
use crate::fault::kind::amount::Percent;
use crate::fault::shape::Shape;
use crate::inventory::Inventory;

/// In place of a second set: whoever is not in the first.
const OTHERS: &str = "others";

/// Who no longer hears whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ShapeSpec {
    /// Two sets do not hear each other. The second may be `others`: all hosts that are not in the first.
    RackSplit(String, String),
    /// The hosts of a set hear nobody outside it and are heard by nobody there.
    Isolate(String),
    /// Packets of the first set do not reach the second, which may be `others`; the way back is open.
    OneWay(String, String),
    /// Two sets do not hear each other; the hosts in neither, of which there must be some, hear both.
    Bridge(String, String),
    /// The hosts of a set, split in two in the order of the inventory; the smaller half first.
    Halves(String),
    /// Every host of a set hears a majority of it, no two the same one.
    MajoritiesRing(String),
    /// Some of the pairs of hosts do not hear each other.
    Random(Pairs),
    /// The hosts of the first set hear nobody but those of the second, not even each other.
    AllBut(String, String),
}

/// Pairs that are drawn by chance, from the seed of the run, each time that the fault begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// Whose pairs, as a selector.
    pub of: String,
    /// How many of them, at least one.
    pub share: Percent,
}

impl ShapeSpec {
    /// The shape over the hosts of an inventory. `hosts` resolves a selector; what else is drawn comes from `chance`.
    pub(super) fn resolve(
        &self,
        inventory: &Inventory,
        hosts: &mut dyn FnMut(&str) -> Result<Vec<String>, String>,
        chance: Chance,
    ) -> Result<Shape, String> {
        let but = |sets: &[&Vec<String>]| -> Vec<String> {
            let names = inventory.hosts().map(|h| h.name.clone());
            names.filter(|h| !sets.iter().any(|set| set.contains(h))).collect()
        };
        let mut two = |a: &str, b: &str| -> Result<(Vec<String>, Vec<String>), String> {
            let first = hosts(a)?;
            let second = if b == OTHERS { but(&[&first]) } else { hosts(b)? };
            Ok((first, second))
        };
        Ok(match self {
            Self::RackSplit(a, b) => {
                let (a, b) = two(a, b)?;
                Shape::RackSplit { a, b }
            }
            Self::Isolate(set) => {
                let (hosts, others) = two(set, OTHERS)?;
                Shape::Isolate { hosts, others }
            }
            Self::OneWay(from, to) => {
                let (from, to) = two(from, to)?;
                Shape::OneWay { from, to }
            }
            Self::Bridge(a, b) => {
                let (a, b) = two(a, b)?;
                if but(&[&a, &b]).is_empty() {
                    return Err(
                        "shape bridge: no host is left that would hear both sets; use rack-split".to_owned()
                    );
                }
                Shape::Bridge { a, b }
            }
            Self::Halves(set) => Shape::Halves { hosts: hosts(set)? },
            Self::MajoritiesRing(set) => Shape::MajoritiesRing { hosts: hosts(set)? },
            Self::Random(pairs) => Shape::Random { hosts: hosts(&pairs.of)?, share: pairs.share, chance },
            Self::AllBut(set, spared) => {
                let (hosts, spared) = two(set, spared)?;
                let others = but(&[&hosts, &spared]);
                Shape::AllBut { hosts, spared, others }
            }
        })
    }
}

/// A shape over hosts in a few words.
pub(super) fn summary(shape: &Shape, inventory: &Inventory) -> String {
    let name = |hosts: &[String]| side_name(hosts, inventory);
    match shape {
        Shape::RackSplit { a, b } => format!("{} ✂ {}", name(a), name(b)),
        Shape::Isolate { hosts, .. } => format!("{} ✂ all others", name(hosts)),
        Shape::OneWay { from, to } => format!("{} → ✂ {}", name(from), name(to)),
        Shape::Bridge { a, b } => format!("{} ✂ {}, with a bridge", name(a), name(b)),
        Shape::Halves { hosts } => {
            let (smaller, greater) = hosts.split_at(hosts.len() / 2);
            format!("{} ✂ {}", name(smaller), name(greater))
        }
        Shape::MajoritiesRing { hosts } => format!("a ring of majorities of {}", name(hosts)),
        Shape::Random { hosts, share, .. } => format!("{share} of the pairs of {}", name(hosts)),
        Shape::AllBut { hosts, spared, .. } => format!("{} ✂ all but {}", name(hosts), name(spared)),
    }
}
