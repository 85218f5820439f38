//! The mutex without failed tries, event by event: rules 1 and 2 of [the mutex](super). The check of the whole is a fold
//! over this.
//!
//! # Why it is exact
//! A section is definitely held from the return of its acquire to the invocation of its release, so all that matters is
//! who holds now. Until a release has returned it may still be refused, and then its process held on all the while: what
//! was acquired meanwhile is noted with the release.
//!
//! # What is kept
//! The holder, and one entry for each open operation.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::Rule;
use crate::engine::online::{self, Online, What};

/// An event; an answer says whether it had an effect.
pub type Event = online::Event<Asked, bool>;

/// What is asked of a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// This process wants it.
    Acquire(u64),
    /// This process gives it back.
    Release(u64),
}

/// A broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm {
    /// Which rule.
    pub rule: Rule,
    /// The second acquire, or the release.
    pub culprit: u64,
    /// The acquire of the section that was held.
    pub against: Option<u64>,
}

/// The verdict of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Linearizable.
    Linearizable,
    /// Not.
    Violation(Alarm),
    /// Something was released that a lost acquire may have got: for the search.
    OutOfClass,
}

/// A section that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    process: u64,
    acquire: u64,
}

/// An open operation.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// An acquire; whether its process gives it back before it has its answer.
    Acquire { process: u64, returned_early: bool },
    /// A release: of which section, if of any, and the first acquire that has returned since.
    Release { of: Option<Held>, since: Option<u64> },
}

/// One mutex, watched.
#[derive(Debug, Clone, Default)]
pub struct Sweep {
    holder: Option<Held>,
    open: HashMap<u64, Open, RandomState>,
    /// An acquire was lost: who released without acquiring may have got it so.
    lost: bool,
    out_of_class: bool,
    alarm: Option<Alarm>,
}

impl Sweep {
    fn invoke(&mut self, call: u64, asked: Asked) {
        let open = match asked {
            Asked::Acquire(process) => Open::Acquire { process, returned_early: false },
            Asked::Release(process) => {
                let mine = self.holder.filter(|held| held.process == process);
                let waiting = self.open.iter_mut().find_map(|(&acquire, open)| match open {
                    Open::Acquire { process: p, returned_early } if *p == process && !*returned_early => {
                        *returned_early = true;
                        Some(Held { process, acquire })
                    }
                    _ => None,
                });
                if mine.is_some() {
                    self.holder = None;
                }
                Open::Release { of: mine.or(waiting), since: None }
            }
        };
        self.open.insert(call, open);
    }

    fn end(&mut self, call: u64, happened: bool) -> Option<Alarm> {
        let two = |culprit, against| Some(Alarm { rule: Rule::TwoHolders, culprit, against: Some(against) });
        match self.open.remove(&call)? {
            Open::Acquire { process, returned_early } if happened => {
                if let Some(held) = self.holder {
                    return two(call, held.acquire);
                }
                for open in self.open.values_mut() {
                    if let Open::Release { since, of } = open
                        && of.is_some_and(|of| of.acquire != call)
                    {
                        since.get_or_insert(call);
                    }
                }
                if !returned_early {
                    self.holder = Some(Held { process, acquire: call });
                }
                None
            }
            Open::Release { of: None, .. } if happened => {
                if self.lost {
                    self.out_of_class = true;
                    return None;
                }
                Some(Alarm { rule: Rule::NotHeld, culprit: call, against: None })
            }
            // It was refused: the section goes on.
            Open::Release { of: Some(held), since } if !happened => {
                if let Some(other) = since.or(self.holder.map(|h| h.acquire)) {
                    return two(other, held.acquire);
                }
                self.holder = Some(held);
                None
            }
            _ => None,
        }
    }
}

impl Online for Sweep {
    type Event = Event;
    type Violation = Alarm;
    type Verdict = Verdict;

    fn push(&mut self, event: Event) -> Result<(), Alarm> {
        if self.alarm.is_none() && !self.out_of_class {
            match event.what {
                What::Invoke(asked) => self.invoke(event.call, asked),
                What::Return(happened) => self.alarm = self.end(event.call, happened),
                What::Unknown => {
                    if let Some(Open::Acquire { .. }) = self.open.remove(&event.call) {
                        self.lost = true;
                    }
                }
            }
        }
        self.alarm.map_or(Ok(()), Err)
    }

    fn finish(&mut self) -> Verdict {
        match self.alarm {
            Some(alarm) => Verdict::Violation(alarm),
            None if self.out_of_class => Verdict::OutOfClass,
            None => Verdict::Linearizable,
        }
    }

    fn kept(&self) -> usize {
        self.open.len() + usize::from(self.holder.is_some())
    }
}
