//! What on-line checkers have in common: events in, one by one, and the first violation out as soon as there is one.
//!
//! # The rule
//! A checker is given the events of a history in their order. It answers each with "nothing yet" or with a violation,
//! and a violation is never taken back: whatever comes later, the history up to here satisfies nobody. So a run can be
//! stopped there. At the end it gives the verdict that the check of the whole gives.
//!
//! # Why a prefix is judged as it is
//! An operation that is open at the end of a prefix may have taken effect or not, as one of unknown outcome: what its
//! answer will be is not known yet. So the violation of a prefix is one of every history that begins with it.
//!
//! # Invariants
//! * What is kept does not grow with the number of operations that are over; [`Online::kept`] counts it, and each checker
//!   says what it keeps.
//! * After its first violation a checker stays at it: later events are not looked at.

use crate::history::Nanos;

/// A checker that takes the events of a history one by one.
pub trait Online {
    /// One event.
    type Event;
    /// What proves that the history so far cannot be right.
    type Violation;
    /// The verdict of the whole.
    type Verdict;

    /// Takes the next event.
    ///
    /// # Errors
    /// The first violation, at the event that completes it.
    fn push(&mut self, event: Self::Event) -> Result<(), Self::Violation>;

    /// The history is over: the verdict that the check of the whole gives. Operations that are still open have no known
    /// outcome.
    fn finish(&mut self) -> Self::Verdict;

    /// How many entries are kept: open operations, configurations, versions and the like.
    fn kept(&self) -> usize;
}

/// An event in the life of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<I, O> {
    /// The operation, by the caller's number; a number is used once.
    pub call: u64,
    /// When, ns.
    pub time: Nanos,
    /// What happened.
    pub what: What<I, O>,
}

/// What happened to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<I, O> {
    /// It was invoked, with what is known of it then.
    Invoke(I),
    /// It returned, with its answer.
    Return(O),
    /// Its outcome will never be known: it may take effect at any later time, or not at all.
    Unknown,
}

/// Feeds a checker of operations in the order of closed intervals: of what happens in one and the same nanosecond, the
/// invocations come first, since such operations are concurrent. So an answer is looked at as soon as time has passed
/// it. Where time goes back the largest time so far counts.
#[derive(Debug, Clone)]
pub struct Moments<C, I, O> {
    checker: C,
    now: Nanos,
    ends: Vec<Event<I, O>>,
}

impl<C, I, O> Moments<C, I, O> {
    /// In front of this checker.
    pub const fn new(checker: C) -> Self {
        Self { checker, now: 0, ends: Vec::new() }
    }
}

impl<C: Online<Event = Event<I, O>>, I, O> Moments<C, I, O> {
    fn flush(&mut self) -> Result<(), C::Violation> {
        for event in std::mem::take(&mut self.ends) {
            self.checker.push(event)?;
        }
        Ok(())
    }
}

impl<C: Online<Event = Event<I, O>>, I, O> Online for Moments<C, I, O> {
    type Event = Event<I, O>;
    type Violation = C::Violation;
    type Verdict = C::Verdict;

    fn push(&mut self, mut event: Event<I, O>) -> Result<(), C::Violation> {
        if event.time > self.now {
            self.flush()?;
            self.now = event.time;
        }
        event.time = self.now;
        if matches!(event.what, What::Invoke(_)) {
            return self.checker.push(event);
        }
        self.ends.push(event);
        Ok(())
    }

    fn finish(&mut self) -> C::Verdict {
        // A violation found here is the checker's own to tell.
        let _ = self.flush();
        self.checker.finish()
    }

    fn kept(&self) -> usize {
        self.checker.kept() + self.ends.len()
    }
}
