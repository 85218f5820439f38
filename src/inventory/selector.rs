//! Selectors: which hosts a scenario means.
//!
//! `rack:a`, `role:etcd`, `host:m1`, `leader:kube-controller-manager` and `all`, joined by `+` (and those), `-`
//! (without those) and `&` (only those that are also). Read from left to right, all three of the same strength;
//! they stand between blanks, because names of hosts and roles contain `-`.
//!
//! In front of all that, `one of`, `minority of` or `majority of` draws from the hosts meant: by chance, from the seed
//! of the run, each time that a fault begins.

use std::fmt;
use std::str::FromStr;

use rackrift_checkers::generate::Chance;

use super::model::{Host, Inventory};

/// Which hosts: a term, and what is then added, taken away or kept; and how many are drawn of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    draw: Draw,
    first: Term,
    rest: Vec<(Join, Term)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    All,
    Rack(String),
    Role(String),
    Host(String),
    Leader(String),
}

/// How many of the hosts meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draw {
    Each,
    One,
    /// The most that leaves a majority: of three, one; of five, two.
    Minority,
    /// The fewest that are a majority: of three, two; of five, three.
    Majority,
}

impl Draw {
    const WORDS: [(Self, &'static str); 3] =
        [(Self::One, "one"), (Self::Minority, "minority"), (Self::Majority, "majority")];

    /// How many of `n` hosts; 0 if there is no such number.
    const fn of(self, n: usize) -> usize {
        match self {
            Self::Each => n,
            Self::One if n > 0 => 1,
            Self::One => 0,
            Self::Minority => n.saturating_sub(1) / 2,
            Self::Majority => n / 2 + 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Without,
    Only,
}

/// What is wrong with a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It can't be read.
    #[error("selector `{text}`: {reason}; {GRAMMAR}")]
    Malformed {
        /// The selector.
        text: String,
        /// Why.
        reason: String,
    },
    /// A name in it is not in the inventory.
    #[error("selector `{text}`: there is no {kind} `{name}` in the inventory; there are: {known}")]
    Unknown {
        /// The selector.
        text: String,
        /// `rack`, `role`, `host`.
        kind: &'static str,
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Who leads is not known.
    #[error("selector `{text}`: nobody is known to lead {component}")]
    NoLeader {
        /// The selector.
        text: String,
        /// The component.
        component: String,
    },
    /// It is right, and means nobody.
    #[error("selector `{text}` matches no host of this inventory")]
    Nobody {
        /// The selector.
        text: String,
    },
    /// Too few to draw from.
    #[error("selector `{text}`: of {hosts} hosts, none is a minority; three are needed at least")]
    TooFew {
        /// The selector.
        text: String,
        /// How many hosts there are to draw from.
        hosts: usize,
    },
}

const GRAMMAR: &str = "write all, rack:NAME, role:NAME, host:NAME or leader:COMPONENT, joined by ` + `, ` - ` or ` & `; \
                       in front of it, `one of`, `minority of` or `majority of`";

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let malformed = |reason: String| SelectorError::Malformed { text: text.to_owned(), reason };
        let mut words = text.split_whitespace().peekable();
        let mut draw = Draw::Each;
        if let Some((drawn, word)) = Draw::WORDS.iter().find(|(_, w)| words.peek() == Some(w)) {
            words.next();
            if words.next() != Some("of") {
                return Err(malformed(format!("`of` does not follow `{word}`")));
            }
            draw = *drawn;
        }
        let first =
            term(words.next().ok_or_else(|| malformed("it is empty".to_owned()))?).map_err(&malformed)?;
        let mut rest = Vec::new();
        while let Some(word) = words.next() {
            let join = match word {
                "+" => Join::And,
                "-" => Join::Without,
                "&" => Join::Only,
                _ => return Err(malformed(format!("`{word}` stands where +, - or & should"))),
            };
            let next = words.next().ok_or_else(|| malformed(format!("nothing follows `{word}`")))?;
            rest.push((join, term(next).map_err(&malformed)?));
        }
        Ok(Self { draw, first, rest })
    }
}

fn term(word: &str) -> Result<Term, String> {
    if word == "all" {
        return Ok(Term::All);
    }
    let (kind, name) = word.split_once(':').ok_or_else(|| format!("`{word}` names no kind"))?;
    if name.is_empty() {
        return Err(format!("`{word}` names nothing"));
    }
    let name = name.to_owned();
    match kind {
        "rack" => Ok(Term::Rack(name)),
        "role" => Ok(Term::Role(name)),
        "host" => Ok(Term::Host(name)),
        "leader" => Ok(Term::Leader(name)),
        _ => Err(format!("`{kind}` is no kind of selector")),
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "all"),
            Self::Rack(n) => write!(f, "rack:{n}"),
            Self::Role(n) => write!(f, "role:{n}"),
            Self::Host(n) => write!(f, "host:{n}"),
            Self::Leader(n) => write!(f, "leader:{n}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, word)) = Draw::WORDS.iter().find(|(d, _)| *d == self.draw) {
            write!(f, "{word} of ")?;
        }
        write!(f, "{}", self.first)?;
        for (join, term) in &self.rest {
            let sign = match join {
                Join::And => '+',
                Join::Without => '-',
                Join::Only => '&',
            };
            write!(f, " {sign} {term}")?;
        }
        Ok(())
    }
}

impl Selector {
    /// The components whose leaders it names.
    pub fn leaders(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, t)| t)).filter_map(|t| match t {
            Term::Leader(component) => Some(component.as_str()),
            _ => None,
        })
    }

    /// The hosts that are drawn, by `chance` if the selector draws, in the inventory's order. `leader` as in
    /// [`Selector::resolve`].
    ///
    /// # Errors
    /// As [`Selector::resolve`], and too few hosts to draw from.
    pub fn draw<'a>(
        &self,
        inventory: &'a Inventory,
        leader: &dyn Fn(&str) -> Option<String>,
        chance: &mut Chance,
    ) -> Result<Vec<&'a Host>, SelectorError> {
        let mut hosts = self.resolve(inventory, leader)?;
        let wanted = self.draw.of(hosts.len());
        if wanted == 0 {
            return Err(SelectorError::TooFew { text: self.to_string(), hosts: hosts.len() });
        }
        while hosts.len() > wanted {
            hosts.remove(chance.index(hosts.len()));
        }
        Ok(hosts)
    }

    /// All hosts meant, in the inventory's order, before any draw. `leader` says on which host the leader of a
    /// component is.
    ///
    /// # Errors
    /// A name that the inventory does not have, or a selector that means nobody.
    pub fn resolve<'a>(
        &self,
        inventory: &'a Inventory,
        leader: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<&'a Host>, SelectorError> {
        let mut chosen = self.matching(&self.first, inventory, leader)?;
        for (join, term) in &self.rest {
            let these = self.matching(term, inventory, leader)?;
            chosen = inventory
                .hosts()
                .map(|h| h.name.as_str())
                .filter(|h| {
                    let (had, has) = (chosen.contains(h), these.contains(h));
                    match join {
                        Join::And => had || has,
                        Join::Without => had && !has,
                        Join::Only => had && has,
                    }
                })
                .collect();
        }
        if chosen.is_empty() {
            return Err(SelectorError::Nobody { text: self.to_string() });
        }
        Ok(inventory.hosts().filter(|h| chosen.contains(&h.name.as_str())).collect())
    }

    fn matching<'a>(
        &self,
        term: &Term,
        inventory: &'a Inventory,
        leader: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<&'a str>, SelectorError> {
        let unknown = |kind: &'static str, name: &str, mut known: Vec<&str>| {
            known.dedup();
            let known = known.join(", ");
            Err(SelectorError::Unknown { text: self.to_string(), kind, name: name.to_owned(), known })
        };
        let hosts = || inventory.hosts().map(|h| h.name.as_str());
        match term {
            Term::All => Ok(hosts().collect()),
            Term::Rack(name) => match inventory.racks.iter().find(|r| r.name == *name) {
                Some(rack) => Ok(rack.hosts.iter().map(|h| h.name.as_str()).collect()),
                None => unknown("rack", name, inventory.racks.iter().map(|r| r.name.as_str()).collect()),
            },
            Term::Role(name) => {
                let found: Vec<&str> =
                    inventory.hosts().filter(|h| h.has_role(name)).map(|h| h.name.as_str()).collect();
                if found.is_empty() {
                    let mut roles: Vec<&str> =
                        inventory.hosts().flat_map(|h| &h.roles).map(String::as_str).collect();
                    roles.sort_unstable();
                    return unknown("role", name, roles);
                }
                Ok(found)
            }
            Term::Host(name) => {
                let found: Vec<&str> = hosts().filter(|h| h == name).collect();
                if found.is_empty() { unknown("host", name, hosts().collect()) } else { Ok(found) }
            }
            Term::Leader(component) => {
                let host = leader(component).ok_or_else(|| SelectorError::NoLeader {
                    text: self.to_string(),
                    component: component.clone(),
                })?;
                let found: Vec<&str> = hosts().filter(|h| **h == host).collect();
                if found.is_empty() { unknown("host", &host, hosts().collect()) } else { Ok(found) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::inventory::parse;

    fn lab() -> Inventory {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/two-rack.yaml");
        parse::load(&path).unwrap()
    }

    fn names(text: &str) -> Result<String, SelectorError> {
        let lab = lab();
        let leader = |c: &str| (c == "kube-scheduler").then(|| "m1".to_owned());
        let hosts = text.parse::<Selector>()?.resolve(&lab, &leader)?;
        Ok(hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn terms_and_joins() {
        assert_eq!(names("all").unwrap(), "m1 w1 e1 m2 w2 e2 e3 lb");
        assert_eq!(names("rack:a").unwrap(), "m1 w1 e1");
        assert_eq!(names("role:control-plane").unwrap(), "m1 m2");
        assert_eq!(names("rack:b + host:e3").unwrap(), "m2 w2 e2 e3");
        assert_eq!(names("all - rack:a - role:etcd").unwrap(), "m2 w2 lb");
        assert_eq!(names("role:etcd & rack:b").unwrap(), "e2");
        assert_eq!(names("leader:kube-scheduler").unwrap(), "m1");
        assert_eq!(names("host:w1 + host:w1").unwrap(), "w1");
    }

    fn drawn(text: &str, seed: u64) -> Result<Vec<String>, SelectorError> {
        let lab = lab();
        let hosts = text.parse::<Selector>()?.draw(&lab, &|_| None, &mut Chance::seeded(seed))?;
        Ok(hosts.iter().map(|h| h.name.clone()).collect())
    }

    #[test]
    fn draws_are_of_the_size_and_from_the_hosts_named_and_each_host_comes_up() {
        for (text, size) in [
            ("one of role:etcd", 1),
            ("minority of role:etcd", 1),
            ("majority of role:etcd", 2),
            ("role:etcd", 3),
            ("one of host:m1", 1),
            ("majority of role:control-plane", 2),
            ("minority of all - host:lb", 3),
        ] {
            let from = text.split_once(" of ").map_or(text, |(_, from)| from);
            let all: Vec<String> = names(from).unwrap().split(' ').map(str::to_owned).collect();
            let mut seen = std::collections::BTreeSet::new();
            for seed in 0..64 {
                let hosts = drawn(text, seed).unwrap();
                assert_eq!(hosts, drawn(text, seed).unwrap());
                assert_eq!(hosts.len(), size, "{text}");
                assert!(hosts.iter().all(|h| all.contains(h)), "{text}: {hosts:?}");
                assert!(hosts.is_sorted_by_key(|h| all.iter().position(|a| a == h)), "{text}: {hosts:?}");
                seen.extend(hosts);
            }
            assert_eq!(seen.len(), all.len(), "{text}");
        }
    }

    #[test]
    fn of_two_none_is_a_minority() {
        insta::assert_snapshot!(drawn("minority of role:control-plane", 1).unwrap_err());
    }

    #[test]
    fn messages() {
        let wrong = [
            "one role:etcd",
            "some of role:etcd",
            "",
            "rack",
            "rack:",
            "rak:a",
            "rack:a rack:b",
            "rack:a +",
            "rack:c",
            "role:storage",
            "host:m3",
            "leader:kube-proxy",
            "rack:a & rack:b",
        ];
        let all: Vec<String> = wrong.iter().map(|w| names(w).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    fn any_term() -> impl Strategy<Value = Term> {
        let name = "[a-z0-9.-]{1,12}";
        prop_oneof![
            Just(Term::All),
            name.prop_map(Term::Rack),
            name.prop_map(Term::Role),
            name.prop_map(Term::Host),
            name.prop_map(Term::Leader),
        ]
    }

    proptest! {
        #[test]
        fn written_and_read_back(
            draw in prop_oneof![Just(Draw::Each), Just(Draw::One), Just(Draw::Minority), Just(Draw::Majority)],
            first in any_term(),
            rest in prop::collection::vec(
                (prop_oneof![Just(Join::And), Just(Join::Without), Just(Join::Only)], any_term()), 0..5),
        ) {
            let selector = Selector { draw, first, rest };
            prop_assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        }
    }
}
