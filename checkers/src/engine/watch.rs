//! Watch streams: what a server pushes, against what was committed.
//!
//! # The rule
//! A stream that was opened after version `from` delivers every later change, once, in the order of versions, until it
//! ends. So, read from its start:
//!
//! 1. *ordered*: versions ascend; changes that share a version (one transaction) have different keys;
//! 2. *unique*: no change comes twice;
//! 3. *real*: each change was committed, and is of the kind committed;
//! 4. *complete*: up to the last version that the stream spoke of, nothing committed is missing;
//! 5. *bookmarks*: a bookmark promises all up to its version: it is not lower than what was delivered, and no change
//!    at or below it comes later;
//! 6. *resumable*: nothing at or below `from` comes.
//!
//! That a stream is silent, or ends early, is no violation: only what it says is judged.
//!
//! Linear in stream and history, since both are in version order. The split is that of etcd's robustness suite; five of
//! the eight bugs which that suite found were of this kind.

/// What a change did to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The key was not there before.
    Created,
    /// It was there, and is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    /// The version of the change.
    pub version: u64,
    /// Which key, numbered.
    pub key: u32,
    /// What it did.
    pub kind: Kind,
}

/// What a stream said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// A change.
    Change(Change),
    /// Everything up to this version was delivered.
    Bookmark(u64),
}

/// One stream, from its opening to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// It was asked for what comes after this version.
    pub from: u64,
    /// What it said, in the order received.
    pub seen: Vec<Seen>,
}

/// The rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A version lower than one delivered before.
    OutOfOrder,
    /// A change delivered twice.
    Duplicate,
    /// A change that was never committed.
    Phantom,
    /// A change of another kind than committed.
    WrongKind,
    /// A change that was committed and not delivered.
    Gap,
    /// A bookmark lower than what was delivered, or a change at or below a bookmark after it.
    BrokenBookmark,
    /// A change at or below the version the stream was opened after.
    BeforeStart,
}

/// A broken rule and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Position in the stream; of the first thing said beyond it, for a gap.
    pub at: usize,
    /// The change committed that is missing, or that this one should have been.
    pub committed: Option<Change>,
}

/// Checks a stream against all changes of the keys it watches, in version order. Changes before the stream's start
/// may be missing there.
///
/// # Errors
/// The first violation in the stream.
pub fn check(committed: &[Change], stream: &Stream) -> Result<(), Violation> {
    // The next change that the stream has to deliver.
    let mut next = committed.partition_point(|c| c.version <= stream.from);
    let (mut last, mut promised) = (stream.from, stream.from);
    for (at, seen) in stream.seen.iter().enumerate() {
        let broken = |rule, committed| Violation { rule, at, committed };
        match *seen {
            Seen::Bookmark(version) => {
                if version < last {
                    return Err(broken(Rule::BrokenBookmark, None));
                }
                if let Some(missing) = committed.get(next).filter(|c| c.version <= version) {
                    return Err(broken(Rule::Gap, Some(*missing)));
                }
                (last, promised) = (version, promised.max(version));
            }
            Seen::Change(change) => {
                if change.version <= stream.from {
                    return Err(broken(Rule::BeforeStart, None));
                }
                if delivered(committed, next, stream.from, change) {
                    return Err(broken(Rule::Duplicate, None));
                }
                if change.version <= promised {
                    return Err(broken(Rule::BrokenBookmark, None));
                }
                if change.version < last {
                    return Err(broken(Rule::OutOfOrder, None));
                }
                next = deliver(committed, next, change).map_err(|(rule, c)| broken(rule, c))?;
                last = change.version;
            }
        }
    }
    Ok(())
}

/// Whether a change was delivered before.
fn delivered(committed: &[Change], next: usize, from: u64, change: Change) -> bool {
    let first = committed.partition_point(|c| c.version < change.version);
    let same = |c: &&Change| c.version == change.version;
    change.version > from
        && committed[first..next.max(first)].iter().take_while(same).any(|c| c.key == change.key)
}

/// The position after a change that comes next.
fn deliver(committed: &[Change], next: usize, change: Change) -> Result<usize, (Rule, Option<Change>)> {
    match committed.get(next) {
        Some(c) if c.version == change.version && c.key == change.key => {
            if c.kind == change.kind {
                Ok(next + 1)
            } else {
                Err((Rule::WrongKind, Some(*c)))
            }
        }
        Some(c) if c.version < change.version => Err((Rule::Gap, Some(*c))),
        _ => Err((Rule::Phantom, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Chance;

    fn change(version: u64) -> Change {
        Change { version, key: (version % 3) as u32, kind: Kind::Modified }
    }

    fn committed() -> Vec<Change> {
        [3, 5, 6, 9, 14].map(change).to_vec()
    }

    fn said(from: u64, seen: &[Seen]) -> Result<(), (Rule, usize)> {
        check(&committed(), &Stream { from, seen: seen.to_vec() }).map_err(|v| (v.rule, v.at))
    }

    #[test]
    fn each_rule_has_its_violation_and_its_near_miss() {
        let c = |v| Seen::Change(change(v));
        let mark = Seen::Bookmark;
        assert_eq!(said(0, &[c(3), c(5), mark(5), c(6), mark(8), c(9)]), Ok(()));
        assert_eq!(said(5, &[c(6)]), Ok(()));
        assert_eq!(said(0, &[c(3), c(6)]), Err((Rule::Gap, 1)));
        assert_eq!(said(0, &[c(3), c(5), c(3)]), Err((Rule::Duplicate, 2)));
        assert_eq!(said(0, &[c(3), c(5), c(4)]), Err((Rule::OutOfOrder, 2)));
        assert_eq!(said(0, &[c(3), c(5), c(6), c(7)]), Err((Rule::Phantom, 3)));
        assert_eq!(said(5, &[c(5)]), Err((Rule::BeforeStart, 0)));
        assert_eq!(said(0, &[mark(3)]), Err((Rule::Gap, 0)));
        assert_eq!(said(0, &[c(3), mark(2)]), Err((Rule::BrokenBookmark, 1)));
        assert_eq!(said(0, &[c(3), c(5), mark(8)]), Err((Rule::Gap, 2)));
        assert_eq!(said(0, &[c(3), c(5), c(6), mark(8), c(7)]), Err((Rule::BrokenBookmark, 4)));
        assert_eq!(said(14, &[mark(20), c(20)]), Err((Rule::BrokenBookmark, 1)));
        let other = Seen::Change(Change { kind: Kind::Deleted, ..change(3) });
        assert_eq!(said(0, &[other]), Err((Rule::WrongKind, 0)));
    }

    /// The definition, by looking at everything: a stream is right if its changes are a beginning of what was committed
    /// after its start, and each bookmark comes exactly where nothing at or below it is left.
    fn by_definition(committed: &[Change], stream: &Stream) -> bool {
        let due: Vec<Change> = committed.iter().filter(|c| c.version > stream.from).copied().collect();
        let mut got = Vec::new();
        let mut last = stream.from;
        for seen in &stream.seen {
            match *seen {
                Seen::Change(change) => {
                    got.push(change);
                    if change.version < last || due.get(got.len() - 1) != Some(&change) {
                        return false;
                    }
                    last = change.version;
                }
                Seen::Bookmark(version) => {
                    if version < last || due.get(got.len()).is_some_and(|c| c.version <= version) {
                        return false;
                    }
                    last = version;
                }
            }
        }
        true
    }

    #[test]
    fn streams_cut_turned_and_doubled_are_judged_as_by_definition() {
        let mut right = 0;
        for seed in 0..100_000 {
            let mut chance = Chance::seeded(seed);
            let mut version = 0;
            let committed: Vec<Change> = (0..chance.below(8))
                .map(|_| {
                    version += 1 + chance.below(2);
                    let kind = *chance.pick(&[Kind::Created, Kind::Modified, Kind::Deleted]);
                    Change { version, key: chance.below(2) as u32, kind }
                })
                .collect();
            let from = chance.below(version + 2);
            let mut seen = Vec::new();
            for (i, c) in committed.iter().enumerate().filter(|(_, c)| c.version > from) {
                seen.push(Seen::Change(*c));
                if chance.happens(1, 4) {
                    let until = committed.get(i + 1).map_or(version + 1, |next| next.version - 1);
                    seen.push(Seen::Bookmark(until));
                }
            }
            seen.truncate(seen.len() - chance.index(seen.len() + 1));
            if !seen.is_empty() && chance.happens(2, 3) {
                let (i, j) = (chance.index(seen.len()), chance.index(seen.len()));
                match chance.below(4) {
                    0 => seen.swap(i, j),
                    1 => drop(seen.remove(i)),
                    2 => seen.insert(j, seen[i]),
                    _ => {
                        if let Seen::Change(c) = &mut seen[i] {
                            c.version = c.version + chance.below(3) - 1;
                        }
                    }
                }
            }
            let stream = Stream { from, seen };
            let expected = by_definition(&committed, &stream);
            assert_eq!(check(&committed, &stream).is_ok(), expected, "seed {seed}: {committed:?} {stream:?}");
            right += u32::from(expected);
        }
        assert!((20_000..90_000).contains(&right), "{right}");
    }
}
