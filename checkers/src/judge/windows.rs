//! When more pods of one identity ran than are wanted: certainly, possibly, or never.
//!
//! # Invariants
//! - A *certain* window holds for every placement of each moment in its interval, a *possible* one for some.
//! - Half-open: a pod that ends in the very moment in which another begins shares no time with it.

use std::collections::BTreeSet;

use super::lives::Life;
use super::wording::middle;
use crate::history::{At, Nanos};

/// A stretch of time with more than the wanted number of pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// From.
    pub(super) from: Nanos,
    /// Until.
    pub(super) to: Nanos,
    /// Most pods at once.
    pub(super) depth: usize,
    /// The pods that ran at its deepest, by their place among the lives.
    pub(super) who: Vec<usize>,
}

impl Window {
    /// Its length.
    pub(super) const fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// How the lives of one identity lie in time.
#[derive(Debug)]
pub(super) struct Windows {
    /// Windows that are certain.
    pub(super) certain: Vec<Window>,
    /// Windows that are possible; each certain one lies in one of them.
    pub(super) possible: Vec<Window>,
    /// Windows by the middle of each interval: the best single figure.
    pub(super) measured: Vec<Window>,
}

impl Windows {
    /// The windows in which more than `wanted` of `lives` ran; open lives last until `end`.
    pub(super) fn of(lives: &[Life<'_>], wanted: usize, end: Nanos) -> Self {
        let spans = |of: &dyn Fn(At, At) -> (Nanos, Nanos)| -> Vec<(Nanos, Nanos, usize)> {
            let each = lives.iter().enumerate();
            each.flat_map(|(i, life)| life.stretches.iter().map(move |s| (i, s)))
                .map(|(i, stretch)| {
                    let (from, to) = of(stretch.from, stretch.to);
                    (from, to, i)
                })
                .collect()
        };
        let certain = spans(&|from, to| (from.hi, to.lo));
        let measured = spans(&|from, to| (middle(from), middle(to)));
        let whole = lives.iter().enumerate();
        let possible = whole.map(|(i, life)| (life.earliest, life.latest.unwrap_or(end), i)).collect();
        Self {
            certain: deeper(certain, wanted),
            possible: deeper(possible, wanted),
            measured: deeper(measured, wanted),
        }
    }
}

/// Sweeps over spans and returns the stretches where more than `wanted` are open.
fn deeper(spans: Vec<(Nanos, Nanos, usize)>, wanted: usize) -> Vec<Window> {
    let mut events: Vec<(Nanos, bool, usize)> = Vec::with_capacity(spans.len() * 2);
    for (from, to, who) in spans.into_iter().filter(|(from, to, _)| from < to) {
        events.push((from, true, who));
        events.push((to, false, who));
    }
    // Ends before begins: touching is no overlap.
    events.sort_unstable();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    // Each window with the place of the event at which it is deepest.
    let mut windows: Vec<(Window, usize)> = Vec::new();
    let mut current: Option<(Window, usize)> = None;
    for (place, &(at, begins, who)) in events.iter().enumerate() {
        step(&mut open, begins, who);
        match (&mut current, open.len() > wanted) {
            (None, true) => {
                current = Some((Window { from: at, to: at, depth: open.len(), who: Vec::new() }, place));
            }
            (Some((window, deepest)), true) if open.len() > window.depth => {
                window.depth = open.len();
                *deepest = place;
            }
            (Some(_), true) | (None, false) => {}
            (Some((window, _)), false) => {
                window.to = at;
                windows.extend(current.take());
            }
        }
    }
    // Who was there is told in a second sweep: a window that grows would else be copied at every step.
    open.clear();
    let mut waiting = windows.iter_mut().peekable();
    for (place, &(_, begins, who)) in events.iter().enumerate() {
        step(&mut open, begins, who);
        if let Some((window, _)) = waiting.next_if(|(_, deepest)| *deepest == place) {
            window.who = open.iter().copied().collect();
        }
    }
    windows.into_iter().map(|(window, _)| window).collect()
}

fn step(open: &mut BTreeSet<usize>, begins: bool, who: usize) {
    if begins {
        open.insert(who);
    } else {
        open.remove(&who);
    }
}
