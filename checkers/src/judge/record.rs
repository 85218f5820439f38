//! The versions of one lease, each with the moment at which somebody first showed it.
//!
//! A version is committed before anybody can show it, and at most [`SEEN_WITHIN`] before the first of several
//! observers does: so the earliest showing by *any* observer counts, also by one that is cut off. (The last
//! renewal before a cut is often shown by the isolated etcd member alone until a new etcd leader has been elected.)
//!
//! # Invariants
//! - Versions are in version order, each once.

use std::collections::BTreeMap;

use super::index::Line;
use crate::bounds::SEEN_WITHIN;
use crate::history::{At, LeaseSeen, Nanos};

/// One version of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version<'a> {
    /// As the first observer showed it.
    pub(super) seen: &'a LeaseSeen,
    /// The line of that.
    pub(super) line: u64,
    /// When the first observer showed it.
    pub(super) first: Nanos,
    /// Another observer showed other content under the same version, on this line.
    pub(super) contradicted: Option<Line<'a, LeaseSeen>>,
}

impl Version<'_> {
    /// When it was committed.
    pub(super) const fn committed(&self) -> At {
        At { lo: self.first.saturating_sub(SEEN_WITHIN), hi: self.first }
    }
}

/// What one observer showed of a lease.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Showing {
    /// Lines.
    pub(super) lines: usize,
    /// When it first showed anything.
    pub(super) first: Nanos,
    /// When it last showed anything.
    pub(super) last: Nanos,
}

/// All versions of one lease.
#[derive(Debug, Default)]
pub(super) struct Record<'a> {
    /// In version order once [`Record::sort`] ran.
    pub(super) versions: Vec<Version<'a>>,
    /// By observer.
    pub(super) observers: BTreeMap<&'a str, Showing>,
    place: BTreeMap<u64, usize>,
}

/// Two neighbouring versions with different holders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'r, 'a> {
    /// The old holder's last version.
    pub(super) last: &'r Version<'a>,
    /// The new holder's first version.
    pub(super) first: &'r Version<'a>,
}

impl<'a> Record<'a> {
    /// Takes one line in.
    pub(super) fn add(&mut self, line: Line<'a, LeaseSeen>) {
        let seen = line.seen;
        let showing =
            self.observers.entry(&seen.via).or_insert(Showing { first: seen.time, ..Showing::default() });
        showing.lines += 1;
        showing.first = showing.first.min(seen.time);
        showing.last = showing.last.max(seen.time);
        let Some(&place) = self.place.get(&seen.version) else {
            self.place.insert(seen.version, self.versions.len());
            self.versions.push(Version { seen, line: line.line, first: seen.time, contradicted: None });
            return;
        };
        let version = &mut self.versions[place];
        if !same_content(version.seen, seen) {
            version.contradicted.get_or_insert(line);
        }
        if seen.time < version.first {
            (version.seen, version.line, version.first) = (seen, line.line, seen.time);
        }
    }

    /// Puts the versions into version order.
    pub(super) fn sort(&mut self) {
        self.versions.sort_by_key(|version| version.seen.version);
        self.place.clear();
    }

    /// The version in force at `t`: the highest that somebody had shown by then.
    pub(super) fn at(&self, t: Nanos) -> Option<&Version<'a>> {
        self.versions.iter().rev().find(|version| version.first <= t)
    }

    /// Each change of holder, in order.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change<'_, 'a>> {
        self.versions.windows(2).filter_map(|pair| match pair {
            [last, first] if last.seen.holder != first.seen.holder || last.seen.uid != first.seen.uid => {
                Some(Change { last, first })
            }
            _ => None,
        })
    }
}

/// Whether two observers tell the same of one version.
fn same_content(a: &LeaseSeen, b: &LeaseSeen) -> bool {
    (&a.holder, &a.uid, a.duration_s, a.transitions, a.deleted)
        == (&b.holder, &b.uid, b.duration_s, b.transitions, b.deleted)
}
