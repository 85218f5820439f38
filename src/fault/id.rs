//! The name of a fault, and the names of everything on a host that belongs to it.
//!
//! # Invariants
//! * All names derive from the id and the id from any of the names: what is found on a host tells its fault.
//! * A chain's name has at most 24 bytes; the kernel takes 28.
//! * An id has only `a-z`, `0-9` and `-`: it needs no quoting in sh, in a path, in a rule or in a unit's name.

use std::fmt;
use std::str::FromStr;

/// What every chain of ours begins with.
pub const CHAIN_PREFIX: &str = "RACKRIFT-";

/// A fault: the run's tag and the fault's number within the run, written `k3x9a2bq-1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FaultId {
    run: String,
    number: u16,
}

/// Not a fault's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a fault: 1 to 8 of a-z and 0-9, a dash, a number from 1 to 999")]
pub struct BadId(String);

/// Which way packets go, as the host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Packets that come to the host: taken by source.
    In,
    /// Packets that leave it or that it forwards: taken by destination.
    Out,
}

impl Way {
    /// The match for the peer's address.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::In => "-s",
            Self::Out => "-d",
        }
    }
}

impl FaultId {
    /// The `number`th fault of the run `run`.
    ///
    /// # Errors
    /// `run` has other letters than `a-z0-9`, or not 1 to 8 of them, or `number` is not from 1 to 999.
    pub fn new(run: &str, number: u16) -> Result<Self, BadId> {
        let letters = run.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if letters && (1..=8).contains(&run.len()) && (1..=999).contains(&number) {
            Ok(Self { run: run.to_owned(), number })
        } else {
            Err(BadId(format!("{run}-{number}")))
        }
    }

    /// The run's tag.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The chain for one way.
    #[must_use]
    pub fn chain(&self, way: Way) -> String {
        let letter = match way {
            Way::In => 'I',
            Way::Out => 'O',
        };
        format!("{CHAIN_PREFIX}{self}-{letter}")
    }

    /// The comment that its rules carry.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("rackrift:{self}")
    }

    /// Its folder on a host, below `run_dir`.
    #[must_use]
    pub fn folder(&self, run_dir: &str) -> String {
        format!("{run_dir}/{self}")
    }

    /// The id and way that a chain's name tells, if it is one of ours.
    #[must_use]
    pub fn of_chain(chain: &str) -> Option<(Self, Way)> {
        let (id, letter) = chain.strip_prefix(CHAIN_PREFIX)?.rsplit_once('-')?;
        let way = match letter {
            "I" => Way::In,
            "O" => Way::Out,
            _ => return None,
        };
        Some((id.parse().ok()?, way))
    }
}

impl fmt::Display for FaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.number)
    }
}

impl FromStr for FaultId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = || BadId(text.to_owned());
        let (run, number) = text.split_once('-').ok_or_else(bad)?;
        let id = Self::new(run, number.parse().map_err(|_| bad())?).map_err(|_| bad())?;
        if id.to_string() == text { Ok(id) } else { Err(bad()) }
    }
}

impl From<FaultId> for String {
    fn from(id: FaultId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for FaultId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_tells_its_fault(run in "[a-z0-9]{1,8}", number in 1_u16..=999) {
            let id = FaultId::new(&run, number).unwrap();
            prop_assert_eq!(id.to_string().parse::<FaultId>().unwrap(), id.clone());
            for way in [Way::In, Way::Out] {
                prop_assert!(id.chain(way).len() <= 28);
                prop_assert_eq!(FaultId::of_chain(&id.chain(way)), Some((id.clone(), way)));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = FaultId::of_chain(&text);
            if let Ok(id) = text.parse::<FaultId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn what_the_kernel_or_sh_would_trip_over_is_refused() {
        for (run, number) in
            [("", 1), ("ninechars", 1), ("UP", 1), ("a b", 1), ("a;b", 1), ("a", 0), ("a", 1000)]
        {
            assert!(FaultId::new(run, number).is_err(), "{run}-{number}");
        }
        for text in ["a-01", "a", "a-1-2", "-1", "a-+1"] {
            assert!(text.parse::<FaultId>().is_err(), "{text}");
        }
    }
}
