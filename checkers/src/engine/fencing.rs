//! Fenced writes: a leader that was deposed must not be obeyed any more.
//!
//! # The rule
//! Each leader gets a token when it is elected, a higher one than all before it (a lease's version, or its
//! `leaseTransitions`), and sends it with its writes. Of what a store accepted:
//!
//! 1. *order*: a write with a lower token was not invoked after one with a higher token had been accepted. This a fencing
//!    store promises.
//! 2. *deposition*: it was not invoked after a higher token had been granted, either. This nobody promises who only looks
//!    at the writes: such a write is stale, though the store could not know.
//!
//! # Why it is exact
//! Accepted writes can be put into an order in which tokens never go back if and only if no write with a lower token
//! follows in real time on one with a higher one: in such an order they lie, and without one the order of tokens will do.
//! So a violation of rule 1 is a pair. Rule 2 is its definition.
//!
//! # What is kept
//! The highest token accepted and the highest granted, and for each open write those of its invocation. One pass, on
//! line only. The idea of the token: Kleppmann, How to do distributed locking, 2016.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::online::Online;

/// What happens at a fenced store, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A token was granted: every lower one is deposed.
    Granted {
        /// The token.
        token: u64,
        /// The caller's number of this event.
        by: u64,
    },
    /// A write was sent.
    Invoked {
        /// The caller's number of the write.
        call: u64,
        /// Its token.
        token: u64,
    },
    /// The store accepted it.
    Accepted {
        /// The write.
        call: u64,
    },
    /// The store refused it, or nobody will ever know.
    Over {
        /// The write.
        call: u64,
    },
}

/// The rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Accepted after a higher token had been.
    WentBack,
    /// Accepted after a higher token had been granted.
    Deposed,
}

/// A stale write that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// Which rule; the graver one, if both are broken.
    pub rule: Rule,
    /// The write.
    pub culprit: u64,
    /// Its token.
    pub token: u64,
    /// The write that had been accepted, or the grant.
    pub against: u64,
    /// The token of that.
    pub highest: u64,
}

/// A token and whose it is.
type Mark = Option<(u64, u64)>;

/// A fenced store, watched.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    accepted: Mark,
    granted: Mark,
    /// By open write: its token, and what had been accepted and granted at its invocation.
    open: HashMap<u64, (u64, Mark, Mark), RandomState>,
    stale: Option<Stale>,
}

impl Fence {
    fn accept(&mut self, call: u64) -> Option<Stale> {
        let (token, accepted, granted) = self.open.remove(&call)?;
        raise(&mut self.accepted, token, call);
        let stale = |rule, mark: Mark| {
            let (highest, against) = mark.filter(|(highest, _)| *highest > token)?;
            Some(Stale { rule, culprit: call, token, against, highest })
        };
        stale(Rule::WentBack, accepted).or_else(|| stale(Rule::Deposed, granted))
    }
}

fn raise(mark: &mut Mark, token: u64, by: u64) {
    if mark.is_none_or(|(highest, _)| token > highest) {
        *mark = Some((token, by));
    }
}

impl Online for Fence {
    type Event = Event;
    type Violation = Stale;
    type Verdict = Result<(), Stale>;

    fn push(&mut self, event: Event) -> Result<(), Stale> {
        if self.stale.is_none() {
            match event {
                Event::Granted { token, by } => raise(&mut self.granted, token, by),
                Event::Invoked { call, token } => {
                    self.open.insert(call, (token, self.accepted, self.granted));
                }
                Event::Accepted { call } => self.stale = self.accept(call),
                Event::Over { call } => {
                    self.open.remove(&call);
                }
            }
        }
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Stale> {
        self.stale.map_or(Ok(()), Err)
    }

    fn kept(&self) -> usize {
        self.open.len() + usize::from(self.accepted.is_some()) + usize::from(self.granted.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brute;
    use crate::engine::NEVER;
    use crate::generate::Chance;

    #[test]
    fn each_rule_has_its_violation_and_its_near_miss() {
        use Event::{Accepted, Granted, Invoked, Over};
        let said = |events: &[Event]| {
            let mut fence = Fence::default();
            events.iter().try_for_each(|e| fence.push(*e)).map_err(|s| (s.rule, s.culprit, s.against))
        };
        let write = |call, token| [Invoked { call, token }, Accepted { call }];
        let after = |first: [Event; 2], then: [Event; 2]| [first[0], first[1], then[0], then[1]];
        assert_eq!(said(&after(write(1, 5), write(2, 5))), Ok(()));
        assert_eq!(said(&after(write(1, 5), write(2, 4))), Err((Rule::WentBack, 2, 1)));
        let open = [
            Invoked { call: 2, token: 4 },
            Invoked { call: 1, token: 5 },
            Accepted { call: 1 },
            Accepted { call: 2 },
        ];
        assert_eq!(said(&open), Ok(()));
        let granted = Granted { token: 6, by: 9 };
        assert_eq!(
            said(&[granted, Invoked { call: 1, token: 5 }, Accepted { call: 1 }]),
            Err((Rule::Deposed, 1, 9))
        );
        assert_eq!(said(&[Invoked { call: 1, token: 5 }, granted, Accepted { call: 1 }]), Ok(()));
        assert_eq!(said(&[granted, Invoked { call: 1, token: 5 }, Over { call: 1 }]), Ok(()));
    }

    /// Rule 1 on every prefix: told exactly when the accepted writes have no order in which tokens never go back.
    #[test]
    fn the_first_stale_write_is_told_when_it_is_accepted() {
        let mut broken = 0;
        for seed in 0..20_000 {
            let mut chance = Chance::seeded(seed);
            let mut fence = Fence::default();
            // By write: token, invoked, returned.
            let mut writes: Vec<(u64, u64, u64)> = Vec::new();
            let mut open: Vec<usize> = Vec::new();
            for now in 0..2 * chance.below(9) {
                let told = if open.len() < 3 && chance.happens(1, 2) {
                    open.push(writes.len());
                    writes.push((now / 4 + chance.below(3), now, NEVER));
                    let (call, token) = (writes.len() as u64 - 1, writes[writes.len() - 1].0);
                    fence.push(Event::Invoked { call, token })
                } else if !open.is_empty() {
                    let done = open.remove(chance.index(open.len()));
                    writes[done].2 = now;
                    fence.push(Event::Accepted { call: done as u64 })
                } else {
                    Ok(())
                };
                assert!(fence.kept() <= 5);
                let intervals: Vec<_> = writes.iter().map(|w| (w.1, w.2)).collect();
                let fine = brute::linearizable(&intervals, [0], |highest, n| {
                    (writes[n].0 >= *highest).then_some(writes[n].0).into_iter().collect()
                });
                assert_eq!(told.is_ok(), fine, "seed {seed} at {now}: {writes:?}");
                if !fine {
                    broken += 1;
                    break;
                }
            }
        }
        assert!((2_000..18_000).contains(&broken), "{broken}");
    }
}
