//! Shapes of partitions: pure functions from sets of hosts to directed edges.
//!
//! # Invariants
//! * No shape yields an edge from a host to itself, or an edge to a host that it was not given.
//! * Every shape but `one-way` and `majorities-ring` yields with each edge its reverse.
//! * The same chance draws the same pairs.

use std::collections::BTreeSet;
use std::fmt;

use rackrift_checkers::generate::Chance;

use super::kind::amount::Percent;

/// A directed edge: packets of `from` do not reach `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Edge {
    /// Whose packets are lost.
    pub from: String,
    /// Who does not hear them.
    pub to: String,
}

impl Edge {
    /// The edge between two hosts.
    #[must_use]
    pub fn new(from: &str, to: &str) -> Self {
        Self { from: from.to_owned(), to: to.to_owned() }
    }

    /// The edge the other way.
    #[must_use]
    pub fn reverse(&self) -> Self {
        Self { from: self.to.clone(), to: self.from.clone() }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// A set of directed edges.
pub type Edges = BTreeSet<Edge>;

/// Why a shape cannot be made of these hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A set is empty.
    #[error("shape {shape}: the set `{set}` has no host")]
    Empty {
        /// The shape.
        shape: &'static str,
        /// The set, by its name in the scenario.
        set: &'static str,
    },
    /// A host is in both sets.
    #[error("shape {shape}: {host} stands on both sides; a host cannot be cut from itself")]
    Overlap {
        /// The shape.
        shape: &'static str,
        /// The host.
        host: String,
    },
    /// Too few hosts.
    #[error("shape {shape} needs at least {least} hosts and has {have}")]
    TooFew {
        /// The shape.
        shape: &'static str,
        /// How many it needs.
        least: usize,
        /// How many it has.
        have: usize,
    },
    /// A host is named twice.
    #[error("shape {shape}: {host} is named twice")]
    Twice {
        /// The shape.
        shape: &'static str,
        /// The host.
        host: String,
    },
}

/// A shape over resolved hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Two sets do not hear each other; within each, all is as before.
    RackSplit {
        /// One side.
        a: Vec<String>,
        /// The other.
        b: Vec<String>,
    },
    /// The hosts of a set hear nobody outside it and are heard by nobody there.
    Isolate {
        /// Who is alone.
        hosts: Vec<String>,
        /// Everybody else.
        others: Vec<String>,
    },
    /// Packets of one set do not reach the other; the way back is open. TCP and ping between them fail both ways
    /// all the same, since their answers are lost.
    OneWay {
        /// Whose packets are lost.
        from: Vec<String>,
        /// Who does not hear them.
        to: Vec<String>,
    },
    /// Two halves that do not hear each other, and hosts in the middle that hear both.
    Bridge {
        /// One half.
        a: Vec<String>,
        /// The other.
        b: Vec<String>,
    },
    /// Split in the order given: the smaller half first.
    Halves {
        /// All hosts.
        hosts: Vec<String>,
    },
    /// Every host hears a majority (itself included), no two the same one.
    MajoritiesRing {
        /// All hosts, in the order of the ring.
        hosts: Vec<String>,
    },
    /// Some of the pairs, drawn by chance, do not hear each other.
    Random {
        /// All hosts.
        hosts: Vec<String>,
        /// How many of their pairs, at least one.
        share: Percent,
        /// What they are drawn from.
        chance: Chance,
    },
    /// Hosts that hear nobody but the spared ones, not even each other.
    AllBut {
        /// Who is cut off.
        hosts: Vec<String>,
        /// Whom they still hear.
        spared: Vec<String>,
        /// Everybody else.
        others: Vec<String>,
    },
}

impl Shape {
    /// The shape's name in scenarios.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RackSplit { .. } => "rack-split",
            Self::Isolate { .. } => "isolate",
            Self::OneWay { .. } => "one-way",
            Self::Bridge { .. } => "bridge",
            Self::Halves { .. } => "halves",
            Self::MajoritiesRing { .. } => "majorities-ring",
            Self::Random { .. } => "random",
            Self::AllBut { .. } => "all-but",
        }
    }

    /// The directed edges that it cuts.
    ///
    /// # Errors
    /// A set is empty or too small, a host is named twice or stands on both sides.
    pub fn edges(&self) -> Result<Edges, ShapeError> {
        let shape = self.name();
        match self {
            Self::RackSplit { a, b } | Self::Bridge { a, b } => both_ways(shape, ("a", a), ("b", b)),
            Self::Isolate { hosts, others } => both_ways(shape, ("hosts", hosts), ("others", others)),
            Self::OneWay { from, to } => one_way(shape, ("from", from), ("to", to)),
            Self::Halves { hosts } => {
                at_least(shape, hosts, 2)?;
                let (smaller, greater) = hosts.split_at(hosts.len() / 2);
                both_ways(shape, ("hosts", smaller), ("hosts", greater))
            }
            Self::MajoritiesRing { hosts } => {
                at_least(shape, hosts, 3)?;
                Ok(ring(hosts))
            }
            Self::Random { hosts, share, chance } => {
                at_least(shape, hosts, 2)?;
                Ok(drawn(hosts, *share, chance.clone()))
            }
            Self::AllBut { hosts, spared, others } => {
                at_least(shape, hosts, 1)?;
                // Who is spared must be somebody else.
                one_way(shape, ("hosts", hosts), ("spared", spared))?;
                let all = hosts.iter().chain(others);
                let edges = all.flat_map(|a| hosts.iter().filter(move |b| *b != a).map(|b| Edge::new(a, b)));
                let edges: Edges = edges.flat_map(|e| [e.reverse(), e]).collect();
                if edges.is_empty() {
                    return Err(ShapeError::Empty { shape, set: "others" });
                }
                Ok(edges)
            }
        }
    }
}

type Set<'a> = (&'static str, &'a [String]);

fn one_way(shape: &'static str, from: Set<'_>, to: Set<'_>) -> Result<Edges, ShapeError> {
    for (set, hosts) in [from, to] {
        if hosts.is_empty() {
            return Err(ShapeError::Empty { shape, set });
        }
    }
    let sources: BTreeSet<&String> = from.1.iter().collect();
    if let Some(host) = to.1.iter().find(|h| sources.contains(h)) {
        return Err(ShapeError::Overlap { shape, host: host.clone() });
    }
    Ok(sources.iter().flat_map(|f| to.1.iter().map(|t| Edge::new(f, t))).collect())
}

fn both_ways(shape: &'static str, a: Set<'_>, b: Set<'_>) -> Result<Edges, ShapeError> {
    let mut edges = one_way(shape, a, b)?;
    edges.extend(edges.iter().map(Edge::reverse).collect::<Vec<_>>());
    Ok(edges)
}

fn at_least(shape: &'static str, hosts: &[String], least: usize) -> Result<(), ShapeError> {
    let mut seen = BTreeSet::new();
    if let Some(host) = hosts.iter().find(|h| !seen.insert(*h)) {
        return Err(ShapeError::Twice { shape, host: host.clone() });
    }
    if hosts.len() < least {
        return Err(ShapeError::TooFew { shape, least, have: hosts.len() });
    }
    Ok(())
}

/// Host `i` hears the window of a bare majority that begins half a window before it, going round the ring. The
/// windows of n hosts are all different as long as a majority is not everybody, which holds from 3 hosts on.
fn ring(hosts: &[String]) -> Edges {
    let n = hosts.len();
    let majority = n / 2 + 1;
    let mut edges = Edges::new();
    for (i, to) in hosts.iter().enumerate() {
        let start = i + n - majority / 2;
        for beyond in majority..n {
            edges.insert(Edge::new(&hosts[(start + beyond) % n], to));
        }
    }
    edges
}

/// So many of the pairs, both ways. Of a list that shrinks by what is drawn, each next is as likely as any other.
fn drawn(hosts: &[String], share: Percent, mut chance: Chance) -> Edges {
    let mut pairs: Vec<Edge> = (0..hosts.len())
        .flat_map(|i| (i + 1..hosts.len()).map(move |j| Edge::new(&hosts[i], &hosts[j])))
        .collect();
    let many = share.of(pairs.len()).max(1);
    let drawn = (0..many).map(|_| pairs.swap_remove(chance.index(pairs.len())));
    drawn.flat_map(|e| [e.reverse(), e]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|i| format!("h{i:02}")).collect()
    }

    fn heard<'a>(edges: &Edges, hosts: &'a [String], to: &str) -> BTreeSet<&'a String> {
        hosts.iter().filter(|from| !edges.contains(&Edge::new(from, to))).collect()
    }

    proptest! {
        #[test]
        fn a_split_cuts_each_pair_across_and_none_within(a in 1_usize..6, b in 1_usize..6) {
            let (left, right) = (names(0..a), names(a..a + b));
            let edges = Shape::RackSplit { a: left.clone(), b: right.clone() }.edges().unwrap();
            prop_assert_eq!(edges.len(), 2 * a * b);
            for e in &edges {
                prop_assert!(left.contains(&e.from) != left.contains(&e.to));
                prop_assert!(edges.contains(&e.reverse()));
            }
        }

        #[test]
        fn one_way_leaves_the_way_back_open(a in 1_usize..6, b in 1_usize..6) {
            let edges = Shape::OneWay { from: names(0..a), to: names(a..a + b) }.edges().unwrap();
            prop_assert_eq!(edges.len(), a * b);
            prop_assert!(edges.iter().all(|e| !edges.contains(&e.reverse())));
        }

        #[test]
        fn halves_leave_a_majority_whole(n in 2_usize..12) {
            let hosts = names(0..n);
            let edges = Shape::Halves { hosts: hosts.clone() }.edges().unwrap();
            let last = &hosts[n - 1];
            prop_assert_eq!(heard(&edges, &hosts, last).len(), n - n / 2);
            prop_assert_eq!(heard(&edges, &hosts, &hosts[0]).len(), n / 2);
        }

        #[test]
        fn in_a_ring_each_hears_a_majority_and_no_two_the_same(n in 3_usize..16) {
            let hosts = names(0..n);
            let edges = Shape::MajoritiesRing { hosts: hosts.clone() }.edges().unwrap();
            let mut majorities = BTreeSet::new();
            for host in &hosts {
                let set = heard(&edges, &hosts, host);
                prop_assert_eq!(set.len(), n / 2 + 1);
                prop_assert!(set.contains(host));
                prop_assert!(majorities.insert(set));
            }
        }
    }

    proptest! {
        #[test]
        fn chance_draws_as_many_pairs_as_it_is_told_and_the_same_again(n in 2_usize..12, percent in 1_usize..=100, seed: u64) {
            let share = format!("{percent}%").parse().unwrap();
            let shape = Shape::Random { hosts: names(0..n), share, chance: Chance::seeded(seed) };
            let edges = shape.edges().unwrap();
            let pairs = n * (n - 1) / 2;
            prop_assert_eq!(edges.len(), 2 * ((pairs * percent + 50) / 100).max(1));
            prop_assert!(edges.iter().all(|e| e.from != e.to && edges.contains(&e.reverse())));
            prop_assert_eq!(edges, shape.edges().unwrap());
        }

        #[test]
        fn all_but_leaves_the_spared_alone(a in 1_usize..5, b in 1_usize..5, c in 1_usize..5) {
            let (hosts, spared, others) = (names(0..a), names(a..a + b), names(a + b..a + b + c));
            let edges = Shape::AllBut { hosts: hosts.clone(), spared: spared.clone(), others }.edges().unwrap();
            let all = names(0..a + b + c);
            for host in &all {
                let set = heard(&edges, &all, host);
                let expected = match (hosts.contains(host), spared.contains(host)) {
                    (true, _) => b + 1,
                    (_, true) => a + b + c,
                    _ => b + c,
                };
                prop_assert_eq!(set.len(), expected);
            }
        }
    }

    #[test]
    fn a_bridge_hears_both_halves() {
        let edges = Shape::Bridge { a: names(0..2), b: names(3..5) }.edges().unwrap();
        let all = names(0..5);
        assert_eq!(heard(&edges, &all, "h02").len(), 5);
        assert_eq!(heard(&edges, &all, "h00").len(), 3);
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        let refusals: Vec<String> = [
            Shape::RackSplit { a: vec![], b: names(0..1) },
            Shape::OneWay { from: names(0..1), to: vec![] },
            Shape::RackSplit { a: names(0..2), b: names(1..3) },
            Shape::Halves { hosts: names(0..1) },
            Shape::MajoritiesRing { hosts: names(0..2) },
            Shape::Halves { hosts: vec!["m1".into(), "m1".into()] },
            Shape::AllBut { hosts: names(0..2), spared: names(1..3), others: vec![] },
            Shape::AllBut { hosts: names(0..1), spared: names(1..3), others: vec![] },
            Shape::Random { hosts: names(0..1), share: "5%".parse().unwrap(), chance: Chance::seeded(1) },
        ]
        .iter()
        .map(|s| s.edges().unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"), @r"
        shape rack-split: the set `a` has no host
        shape one-way: the set `to` has no host
        shape rack-split: h01 stands on both sides; a host cannot be cut from itself
        shape halves needs at least 2 hosts and has 1
        shape majorities-ring needs at least 3 hosts and has 2
        shape halves: m1 is named twice
        shape all-but: h01 stands on both sides; a host cannot be cut from itself
        shape all-but: the set `others` has no host
        shape random needs at least 2 hosts and has 1
        ");
    }
}
