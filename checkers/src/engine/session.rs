//! What may never go back: versions read within one session, tokens that a fenced store accepts, terms of a leader.
//!
//! # The rule
//! In the order given, no number of a session is lower than one before it in the same session. A read from a cache
//! promises no more (nor does a watch cache, Kubernetes issue 59848, promise it across servers: then a session is one
//! server's); a fenced store promises it of all writers, so all of them are one session.
//!
//! Exact by definition, O(n), one number of memory a session; the on-line form is the only form.

use std::collections::HashMap;
use std::hash::Hash;

use super::online::Online;

/// Numbers that may never go back, by session.
#[derive(Debug, Clone)]
pub struct Monotone<S> {
    highest: HashMap<S, (u64, usize)>,
    seen: usize,
    first: Option<WentBack>,
}

/// A number that went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WentBack {
    /// Position of the lower number.
    pub culprit: usize,
    /// The lower number.
    pub number: u64,
    /// Position of the higher one before it, the first of its kind.
    pub against: usize,
    /// The higher number.
    pub highest: u64,
}

impl<S> Default for Monotone<S> {
    fn default() -> Self {
        Self { highest: HashMap::new(), seen: 0, first: None }
    }
}

impl<S: Eq + Hash> Monotone<S> {
    /// Takes the next number of a session.
    ///
    /// # Errors
    /// If it is lower than one before. The highest stays what it was.
    pub fn next(&mut self, session: S, number: u64) -> Result<(), WentBack> {
        let at = self.seen;
        self.seen += 1;
        let (highest, against) = self.highest.entry(session).or_insert((number, at));
        if number < *highest {
            let back = WentBack { culprit: at, number, against: *against, highest: *highest };
            self.first.get_or_insert(back);
            return Err(back);
        }
        if number > *highest {
            (*highest, *against) = (number, at);
        }
        Ok(())
    }
}

impl<S: Eq + Hash> Online for Monotone<S> {
    type Event = (S, u64);
    type Violation = WentBack;
    type Verdict = Result<(), WentBack>;

    fn push(&mut self, (session, number): (S, u64)) -> Result<(), WentBack> {
        self.next(session, number)
    }

    fn finish(&mut self) -> Result<(), WentBack> {
        self.first.map_or(Ok(()), Err)
    }

    fn kept(&self) -> usize {
        self.highest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Chance;

    #[test]
    fn the_first_that_goes_back_is_told_at_once_and_one_number_a_session_is_kept() {
        let mut broken = 0;
        for seed in 0..2_000 {
            let mut chance = Chance::seeded(seed);
            let mut m = Monotone::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            for at in 0..12u64 {
                all.push((chance.below(3), at / 2 + chance.below(3)));
                let (session, number) = all[all.len() - 1];
                let told = m.push((session, number));
                let lower = all.iter().any(|(s, n)| *s == session && *n > number);
                assert_eq!(told.is_err(), lower, "seed {seed}: {all:?}");
                assert!(m.kept() <= 3);
                if lower {
                    assert_eq!(m.finish(), told);
                    broken += 1;
                    break;
                }
            }
        }
        assert!((200..1_900).contains(&broken), "{broken}");
    }

    #[test]
    fn a_session_goes_back_only_against_itself() {
        let mut m = Monotone::default();
        assert_eq!(m.next("a", 5), Ok(()));
        assert_eq!(m.next("b", 3), Ok(()));
        assert_eq!(m.next("a", 5), Ok(()));
        assert_eq!(m.next("a", 7), Ok(()));
        let back = WentBack { culprit: 4, number: 6, against: 3, highest: 7 };
        assert_eq!(m.next("a", 6), Err(back));
        assert_eq!(m.next("b", 4), Ok(()));
        assert_eq!(m.next("a", 7), Ok(()));
    }
}
