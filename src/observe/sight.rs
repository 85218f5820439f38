//! What an observer saw and what it was blind to.
//!
//! # Invariants
//! * A gap begins at the last moment of which the observer had word, not at the first question that failed: what
//!   happened in between is unseen too.
//! * A gap of a second or more stands in the history, once, when it ends: no storm of errors of a dead API server.

use std::fmt;

use rackrift_checkers::history::Nanos;

use crate::run::recorder::Recorder;

/// Shorter gaps are not worth a note: a question may take that long on a loaded machine.
const WORTH: Nanos = 1_000_000_000;

/// What one observer saw and missed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Lines that it wrote.
    pub lines: u64,
    /// Questions that were not answered, streams that broke, lines that could not be read or placed.
    pub missed: u64,
    /// The last reason for that.
    pub reason: Option<String>,
    /// How long it was blind in all, ns.
    pub blind: Nanos,
    /// When it was blind for longest, ns since the run's origin.
    pub longest: Option<(Nanos, Nanos)>,
}

impl Seen {
    /// One that saw nothing, for that reason.
    #[must_use]
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self { missed: 1, reason: Some(reason.into()), ..Self::default() }
    }

    /// Something was not seen.
    pub fn miss(&mut self, reason: impl Into<String>) {
        self.missed += 1;
        self.reason = Some(reason.into());
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |t: Nanos| t as f64 / 1e9;
        write!(f, "{} lines", self.lines)?;
        if let Some((from, to)) = self.longest {
            write!(
                f,
                ", blind for {:.1} s in all, longest from {:.1} s to {:.1} s into the run",
                s(self.blind),
                s(from),
                s(to)
            )?;
        }
        match (&self.reason, self.missed) {
            (_, 0) => Ok(()),
            (None, n) => write!(f, ", missed {n}"),
            (Some(reason), n) => write!(f, ", missed {n} (last: {reason})"),
        }
    }
}

/// Follows whether an observer sees.
#[derive(Debug)]
pub(super) struct Sight {
    name: String,
    recorder: Recorder,
    seen: Seen,
    /// The last moment of which it had word.
    good: Nanos,
    /// Misses since then.
    misses: u64,
}

impl Sight {
    pub(super) fn new(name: impl Into<String>, recorder: &Recorder) -> Self {
        Self {
            name: name.into(),
            recorder: recorder.clone(),
            seen: Seen::default(),
            good: recorder.now(),
            misses: 0,
        }
    }

    /// It sees, as of now.
    pub(super) fn sees(&mut self) {
        self.close();
        self.good = self.recorder.now();
    }

    /// It does not see, for that reason.
    pub(super) fn miss(&mut self, reason: impl Into<String>) {
        self.misses += 1;
        self.seen.miss(reason);
    }

    /// It wrote that many lines.
    pub(super) const fn wrote(&mut self, lines: u64) {
        self.seen.lines += lines;
    }

    pub(super) fn end(mut self) -> Seen {
        self.close();
        self.seen
    }

    fn close(&mut self) {
        if self.misses == 0 {
            return;
        }
        let (from, to) = (self.good, self.recorder.now());
        let length = to.saturating_sub(from);
        self.seen.blind += length;
        if self.seen.longest.is_none_or(|(a, b)| b - a < length) {
            self.seen.longest = Some((from, to));
        }
        if length >= WORTH {
            let s = |t: Nanos| t as f64 / 1e9;
            self.recorder.note(format!(
                "{}: nothing seen from {:.1} s to {:.1} s, {} in vain (last: {})",
                self.name,
                s(from),
                s(to),
                if self.misses == 1 { "once".to_owned() } else { format!("{} times", self.misses) },
                self.seen.reason.as_deref().unwrap_or("no reason given")
            ));
        }
        self.misses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lasts_from_the_last_word_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let recorder = Recorder::create(&path, "r1").unwrap();
        let mut sight = Sight::new("leases of api:m1", &recorder);
        sight.sees();
        let before = recorder.now();
        sight.miss("timeout");
        sight.miss("refused");
        sight.good = 0;
        std::thread::sleep(std::time::Duration::from_millis(2));
        sight.sees();
        let after = recorder.now();
        sight.wrote(3);
        let seen = sight.end();
        let (from, to) = seen.longest.unwrap();
        assert_eq!((seen.lines, seen.missed, seen.reason.as_deref(), from), (3, 2, Some("refused"), 0));
        assert!(before < to && to <= after);
        assert_eq!(seen.blind, to);
        // Shorter than a second: the history is not burdened with it.
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_long_gap_stands_in_the_history_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let recorder = Recorder::create(&path, "r1").unwrap();
        let mut sight = Sight::new("leases of api:m1", &recorder);
        // As if the run had begun long ago: the clock of the gap is the recorder's.
        while recorder.now() < WORTH {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for _ in 0..40 {
            sight.miss("timeout");
        }
        sight.sees();
        sight.sees();
        let history = std::fs::read_to_string(&path).unwrap();
        let notes: Vec<&str> = history.lines().skip(1).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("leases of api:m1: nothing seen from 0.0 s to"), "{notes:?}");
        assert!(notes[0].contains("40 times in vain (last: timeout)"), "{notes:?}");
    }

    #[test]
    fn words() {
        let mut seen = Seen { lines: 12, ..Seen::default() };
        assert_eq!(seen.to_string(), "12 lines");
        seen.miss("timeout");
        (seen.blind, seen.longest) = (94_700_000_000, Some((18_300_000_000, 113_000_000_000)));
        insta::assert_snapshot!(seen);
        insta::assert_snapshot!(Seen::nothing("no route to host"));
    }
}
