//! Selectors: which hosts a scenario means.
//!
//! `rack:a`, `role:etcd`, `host:m1`, `leader:kube-controller-manager` and `all`, joined by `+` (and those), `-`
//! (without those) and `&` (only those that are also). Read from left to right, all three of the same strength;
//! they stand between blanks, because names of hosts and roles contain `-`.

use std::fmt;
use std::str::FromStr;

use super::model::{Host, Inventory};

/// Which hosts: a term, and what is then added, taken away or kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
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
}

const GRAMMAR: &str =
    "write all, rack:NAME, role:NAME, host:NAME or leader:COMPONENT, joined by ` + `, ` - ` or ` & `";

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let malformed = |reason: String| SelectorError::Malformed { text: text.to_owned(), reason };
        let mut words = text.split_whitespace();
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
        Ok(Self { first, rest })
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
    /// The hosts meant, in the inventory's order. `leader` says on which host the leader of a component is.
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

    #[test]
    fn messages() {
        let wrong = [
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
            first in any_term(),
            rest in prop::collection::vec(
                (prop_oneof![Just(Join::And), Just(Join::Without), Just(Join::Only)], any_term()), 0..5),
        ) {
            let selector = Selector { first, rest };
            prop_assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        }
    }
}
