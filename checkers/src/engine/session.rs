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

/// Numbers that may never go back, by session.
#[derive(Debug, Clone)]
pub struct Monotone<S> {
    highest: HashMap<S, (u64, usize)>,
    seen: usize,
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
        Self { highest: HashMap::new(), seen: 0 }
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
            return Err(WentBack { culprit: at, number, against: *against, highest: *highest });
        }
        if number > *highest {
            (*highest, *against) = (number, at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
