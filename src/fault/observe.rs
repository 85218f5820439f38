//! What is seen of a fault: where its chains hang, what they dropped, and which edges it really cuts.
//!
//! # Invariants
//! * "Applied" is what a command said; "observed" needs two independent signs: our own rules dropped packets of
//!   that edge, and every question between the two that was answered before is silent now.
//! * A counter is read for an edge by address, never by a rule's position.

use std::collections::BTreeMap;

use super::address::Block;
use super::id::{CHAIN_PREFIX, FaultId, Way};
use super::partition::{Action, Hook};
use super::plan::{HostPlan, Plan};
use super::probe::{Answers, Question};
use super::script;
use super::shape::Edge;

/// Where a jump stands in its built-in chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Position {
    /// It is not there.
    Absent,
    /// Before all rules that are not ours.
    First,
    /// Below this many foreign rules, which may accept before we drop.
    Below(usize),
}

impl Position {
    const fn badness(&self) -> usize {
        match self {
            Self::First => 0,
            Self::Below(n) => *n,
            Self::Absent => usize::MAX,
        }
    }
}

/// One chain as seen on the host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HookSeen {
    /// `iptables-nft raw`, for people.
    pub place: String,
    /// Where its jump stands.
    pub position: Position,
    /// Packets by peer and action.
    pub packets: BTreeMap<(String, Action), u64>,
    /// Which way.
    pub way: Way,
}

/// A host as seen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Look {
    /// Its boot.
    pub boot: String,
    /// The fault's folder is there.
    pub prepared: bool,
    /// The commit script came to its end.
    pub committed: bool,
    /// The dead-man's switch runs.
    pub armed: bool,
    /// Seconds until it fires.
    pub left_s: Option<i64>,
    /// The chains.
    pub hooks: Vec<HookSeen>,
    /// Of a fault that comes and goes: whether its loop runs.
    pub flapping: Option<bool>,
}

impl Look {
    /// Reads what the look script printed.
    ///
    /// # Errors
    /// The output is not whole.
    pub fn parse(id: &FaultId, host: &HostPlan, output: &str) -> Result<Self, String> {
        if script::value(output, "end") != Some("look") {
            return Err("the answer is not whole".to_owned());
        }
        let is = |key| script::value(output, key) == Some("yes");
        Ok(Self {
            boot: script::value(output, "boot").unwrap_or_default().to_owned(),
            prepared: is("prepared"),
            committed: is("committed"),
            armed: is("armed"),
            left_s: script::value(output, "left").and_then(|v| v.parse().ok()),
            hooks: host.hooks.iter().map(|h| hook_seen(id, h, output)).collect(),
            flapping: script::value(output, "flap").map(|v| v == "yes"),
        })
    }

    /// Whether every chain hangs first, or comes and goes as it should.
    #[must_use]
    pub fn in_force(&self) -> bool {
        self.flapping.unwrap_or_else(|| self.hooks.iter().all(|h| h.position == Position::First))
    }

    /// What is wrong with a fault that should be in force.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        if self.flapping == Some(false) {
            return Some("the loop that makes it come and go does not run".to_owned());
        }
        let hook = self.hooks.iter().find_map(|h| match h.position {
            Position::First => None,
            Position::Absent if self.flapping.is_some() => None,
            Position::Absent => Some(format!("the jump is gone from {}", h.place)),
            Position::Below(n) => Some(format!("{n} foreign rule(s) stand above the jump in {}", h.place)),
        });
        hook.or_else(|| (!self.armed).then(|| "the dead-man's switch does not run".to_owned()))
    }
}

fn hook_seen(id: &FaultId, hook: &Hook, output: &str) -> HookSeen {
    let chain = id.chain(hook.way);
    let place = format!("{} {}", hook.tool.command, hook.place.table);
    let mut seen = HookSeen {
        place: place.clone(),
        position: Position::Absent,
        packets: BTreeMap::new(),
        way: hook.way,
    };
    let start = format!("save={place} {chain}");
    let section = output.lines().skip_while(|l| *l != start).skip(1).take_while(|l| !l.contains('='));
    let mut bases: BTreeMap<&str, Position> = BTreeMap::new();
    let mut foreign: BTreeMap<&str, usize> = BTreeMap::new();
    for line in section {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [counters, "-A", of, rest @ ..] = words.as_slice() else { continue };
        if hook.place.bases.contains(of) {
            let target = value_after(rest, "-j").unwrap_or("");
            let above = foreign.entry(of).or_default();
            if target == chain {
                bases.insert(of, if *above == 0 { Position::First } else { Position::Below(*above) });
            } else if !target.starts_with(CHAIN_PREFIX) {
                *above += 1;
            }
        } else if *of == chain {
            let Some(block) = value_after(rest, hook.way.flag()).and_then(|b| b.parse::<Block>().ok()) else {
                continue;
            };
            let action = match value_after(rest, "-j") {
                Some("DROP" | "REJECT") => Action::Drop,
                None => Action::Count,
                Some(_) => continue,
            };
            if let Some(rule) = hook.rules.iter().find(|r| r.block == block) {
                *seen.packets.entry((rule.peer.clone(), action)).or_default() += packets(counters);
            }
        }
    }
    // As bad as the worst of its places.
    let of = |base: &&str| bases.get(base).copied().unwrap_or(Position::Absent);
    seen.position = hook.place.bases.iter().map(of).max_by_key(Position::badness).unwrap_or(Position::Absent);
    seen
}

fn value_after<'a>(words: &[&'a str], flag: &str) -> Option<&'a str> {
    words.iter().position(|w| *w == flag).and_then(|i| words.get(i + 1)).copied()
}

/// The first number of `[packets:bytes]`.
fn packets(counters: &str) -> u64 {
    counters.trim_start_matches('[').split(':').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// What was seen of one edge.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct EdgeSeen {
    /// Packets of this edge that our rules took, at either end.
    pub dropped: u64,
    /// Questions between the two that were answered before, and are silent now as they should be.
    pub silent: usize,
    /// Questions between the two that should be silent and are answered; of a fault that comes and goes, none.
    pub answered: Vec<Question>,
}

impl EdgeSeen {
    /// Whether the edge is proven cut.
    #[must_use]
    pub fn cut(&self) -> bool {
        self.dropped > 0 && self.answered.is_empty()
    }

    /// The evidence in words.
    #[must_use]
    pub fn words(&self) -> String {
        let still = match self.answered.first() {
            Some(q) => format!(", but {} still answers {} by {}", q.address, q.from, q.method),
            None => String::new(),
        };
        format!("{} packets taken, {} probes silent{still}", self.dropped, self.silent)
    }
}

/// What was seen of a fault, at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Observation {
    /// The edges that should be cut.
    pub edges: BTreeMap<Edge, EdgeSeen>,
    /// Packets counted on the open way back of one-way cuts.
    pub open: BTreeMap<Edge, u64>,
    /// Questions that the plan leaves open, were answered before, and are silent now.
    pub collateral: Vec<Question>,
    /// Hosts that could not be looked at, with the reason.
    pub unseen: BTreeMap<String, String>,
}

impl Observation {
    /// Puts together what the hosts show and what the probes found.
    #[must_use]
    pub fn of(
        plan: &Plan,
        before: &Answers,
        now: &Answers,
        looks: &BTreeMap<String, Result<Look, String>>,
    ) -> Self {
        let mut seen = Self {
            edges: plan.edges.iter().map(|e| (e.clone(), EdgeSeen::default())).collect(),
            ..Self::default()
        };
        for (host, look) in looks {
            match look {
                Ok(look) => seen.add_counters(host, look),
                Err(why) => {
                    seen.unseen.insert(host.clone(), why.clone());
                }
            }
        }
        for (question, answered) in now {
            let fair = before.get(question) == Some(&true);
            if plan.answered(&question.from, &question.to, question.method) {
                if fair && !answered {
                    seen.collateral.push(question.clone());
                }
                continue;
            }
            for edge in [Edge::new(&question.from, &question.to), Edge::new(&question.to, &question.from)] {
                let Some(e) = seen.edges.get_mut(&edge) else { continue };
                if *answered && plan.flap.is_none() {
                    e.answered.push(question.clone());
                } else if fair && !answered {
                    e.silent += 1;
                }
            }
        }
        seen
    }

    fn add_counters(&mut self, host: &str, look: &Look) {
        for hook in &look.hooks {
            for ((peer, action), n) in &hook.packets {
                let edge = match hook.way {
                    Way::In => Edge::new(peer, host),
                    Way::Out => Edge::new(host, peer),
                };
                match action {
                    Action::Drop => self.edges.entry(edge).or_default().dropped += n,
                    Action::Count => *self.open.entry(edge).or_default() += n,
                }
            }
        }
    }

    /// Whether every edge is proven cut.
    #[must_use]
    pub fn bites(&self) -> bool {
        self.edges.values().all(EdgeSeen::cut)
    }
}
