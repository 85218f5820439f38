//! The rule for versioned objects, event by event: a run can be stopped at the first violation.
//!
//! # Invariants
//! * What is told is certain: each violation found here is one for [`check`](super::check) of the whole, too.
//! * Found at the event that completes the contradiction: stale reads, versions that go back or are made twice, lost
//!   updates, failed writes that are seen, marks that nobody has written yet. What needs the rest of the history (a
//!   version without a writer, a refusal without a cause) is left to the whole check.
//! * Memory: one entry for each version that an open operation can still speak of, and the marks of writes.

use std::collections::{BTreeMap, HashMap};

use super::{Act, Rule, Version, WriteId};

/// An operation that was invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The highest version that somebody had been told by then.
    known: u64,
    /// Which operation that was.
    by: usize,
}

/// A violation as soon as it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm {
    /// Which rule.
    pub rule: Rule,
    /// The operation that contradicts, by the caller's number.
    pub against: Option<usize>,
}

/// What is known of a version.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Who showed it first.
    by: usize,
    /// Who wrote it.
    writer: Option<usize>,
    /// The version that its writer replaced.
    expected: Option<u64>,
}

/// One object, watched.
#[derive(Debug, Clone, Default)]
pub struct Online {
    highest: u64,
    by: usize,
    versions: BTreeMap<u64, Known>,
    /// By mark: who tried to write it, and whether that certainly failed.
    marks: HashMap<WriteId, (usize, bool)>,
    /// How many open operations began when this was the highest version.
    open: BTreeMap<u64, usize>,
}

impl Online {
    /// An operation is invoked; a write names its mark.
    pub fn invoke(&mut self, number: usize, mark: Option<WriteId>) -> Ticket {
        if let Some(mark) = mark {
            self.marks.insert(mark, (number, false));
        }
        *self.open.entry(self.highest).or_default() += 1;
        Ticket { known: self.highest, by: self.by }
    }

    /// An operation ended. One of unknown outcome ends as [`Act::MaybeWrite`] and the like.
    ///
    /// # Errors
    /// The violation that this completes.
    pub fn complete(
        &mut self,
        number: usize,
        ticket: Ticket,
        act: Act,
        mark: Option<WriteId>,
    ) -> Result<(), Alarm> {
        let found = self.judge(number, ticket, act, mark);
        self.forget(ticket);
        found
    }

    fn judge(&mut self, number: usize, ticket: Ticket, act: Act, mark: Option<WriteId>) -> Result<(), Alarm> {
        let alarm = |rule, against| Err(Alarm { rule, against });
        match act {
            Act::Read { version } => {
                if version.get() < ticket.known {
                    return alarm(Rule::StaleRead, Some(ticket.by));
                }
                if let Some(mark) = mark {
                    match self.marks.get(&mark) {
                        None => return alarm(Rule::ThinAir, None),
                        Some(&(writer, true)) => return alarm(Rule::FailedWriteVisible, Some(writer)),
                        Some(_) => {}
                    }
                }
                self.learn(number, version, None, None)
            }
            Act::Write { version } | Act::Create { version } => {
                if version.get() <= ticket.known {
                    return alarm(Rule::VersionWentBack, Some(ticket.by));
                }
                self.learn(number, version, Some(number), None)
            }
            Act::Cas { expected, version } => {
                if version.get() <= ticket.known || version <= expected {
                    return alarm(Rule::VersionWentBack, Some(ticket.by).filter(|_| version > expected));
                }
                self.learn(number, version, Some(number), Some(expected.get()))
            }
            Act::Failed | Act::Conflict { .. } | Act::Exists | Act::Absent => {
                if let Some(entry) = mark.and_then(|mark| self.marks.get_mut(&mark)) {
                    entry.1 = true;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn learn(
        &mut self,
        number: usize,
        version: Version,
        writer: Option<usize>,
        expected: Option<u64>,
    ) -> Result<(), Alarm> {
        let v = version.get();
        // A version between the one that a write replaced and the one that it made: an update was lost.
        if let Some((_, above)) = self.versions.range(v + 1..).next()
            && above.expected.is_some_and(|e| e < v)
        {
            return Err(Alarm { rule: Rule::LostUpdate, against: above.writer });
        }
        if let Some(expected) = expected
            && let Some((_, between)) = self.versions.range(expected + 1..v).next()
        {
            return Err(Alarm { rule: Rule::LostUpdate, against: Some(between.by) });
        }
        let known = self.versions.entry(v).or_insert(Known { by: number, writer: None, expected: None });
        if writer.is_some() {
            if known.writer.is_some() {
                return Err(Alarm { rule: Rule::DuplicateVersion, against: known.writer });
            }
            (known.writer, known.expected) = (writer, expected);
        }
        if v > self.highest {
            (self.highest, self.by) = (v, number);
        }
        Ok(())
    }

    /// An operation is over: versions below all that open ones may still show are done with, but for the highest of
    /// them, which the next write replaces.
    fn forget(&mut self, ticket: Ticket) {
        if let Some(count) = self.open.get_mut(&ticket.known) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&ticket.known);
            }
        }
        let floor = self.open.keys().next().copied().unwrap_or(self.highest).min(self.highest);
        while self.versions.first_key_value().is_some_and(|(&v, _)| v < floor) {
            self.versions.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NEVER;
    use crate::engine::versioned::{Operation, Outcome, World, check};
    use crate::generate::Shape;
    use crate::generate::versioned::{Anomaly, Kind, compare_and_set, plant};

    /// Feeds a history in the order of its events: the first alarm, with the operation that raised it.
    fn first_alarm(ops: &[Operation]) -> (Option<(usize, Alarm)>, usize) {
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (i, op) in ops.iter().enumerate() {
            events.push((op.inv, false, i));
            events.push((op.ret.min(NEVER - 1), true, i));
        }
        events.sort_unstable();
        let (mut online, mut most) = (Online::default(), 0);
        let mut tickets: HashMap<usize, Ticket> = HashMap::new();
        for (_, ends, i) in events {
            let reads = matches!(ops[i].act, Act::Read { .. });
            if !ends {
                tickets.insert(i, online.invoke(i, ops[i].id.filter(|_| !reads)));
                continue;
            }
            // What ends as unknown stays open for ever in truth; here the history is over then.
            if ops[i].ret == NEVER {
                continue;
            }
            if let Some(ticket) = tickets.remove(&i)
                && let Err(alarm) = online.complete(i, ticket, ops[i].act, ops[i].id)
            {
                return (Some((i, alarm)), most);
            }
            most = most.max(online.versions.len());
        }
        (None, most)
    }

    #[test]
    fn an_alarm_is_never_false_and_names_what_was_planted() {
        let mut found: HashMap<Anomaly, u32> = HashMap::new();
        for seed in 0..60 {
            let valid = compare_and_set(Shape { operations: 500, clients: 5, lost: 0, seed });
            let (alarm, most) = first_alarm(&valid);
            assert_eq!(alarm, None, "seed {seed}");
            assert!(most < 60, "seed {seed}: {most} versions remembered");
            for anomaly in Anomaly::ALL {
                let mut ops = valid.clone();
                let Some(planted) = plant(&mut ops, anomaly, 0.5, Kind::Broken) else { continue };
                let planted = planted.added;
                if let (Some((at, alarm)), _) = first_alarm(&ops) {
                    assert!(
                        matches!(check(&ops, World::CLOSED), Outcome::Violation(_)),
                        "{anomaly:?} {seed}"
                    );
                    assert!(at == planted || alarm.against == Some(planted), "{anomaly:?} {seed}: {alarm:?}");
                    *found.entry(anomaly).or_default() += 1;
                }
            }
        }
        let sure = [
            Anomaly::StaleRead,
            Anomaly::FutureRead,
            Anomaly::ThinAir,
            Anomaly::DuplicateVersion,
            Anomaly::FailedWriteVisible,
        ];
        for anomaly in sure {
            assert!(found.get(&anomaly).is_some_and(|&n| n > 20), "{anomaly:?}: {found:?}");
        }
    }
}
