//! When more than `wanted` owners are alive at once.
//!
//! # Invariants
//! - Pieces hold only certain time (from the latest possible begin to the earliest possible end), so a window is
//!   certain too: it needs no assumption about clocks beyond the history's intervals.

use std::collections::BTreeMap;

use rackrift_checkers::history::Nanos;

/// A certain span of an owner's life, drawn in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its lane.
    pub(super) lane: usize,
    /// Whose life: two pieces of one owner count once.
    pub(super) owner: usize,
    /// Begin, ns.
    pub(super) from: Nanos,
    /// End, ns.
    pub(super) to: Nanos,
}

/// Too many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over {
    /// First and last lane of those alive in it.
    pub(super) lanes: (usize, usize),
    /// Begin, ns.
    pub(super) from: Nanos,
    /// End, ns.
    pub(super) to: Nanos,
    /// Most owners alive at one moment of it.
    pub(super) most: usize,
}

/// The windows in which more than `wanted` owners are alive, in order of time.
pub(super) fn too_many(pieces: &[Piece], wanted: usize) -> Vec<Over> {
    let mut edges: Vec<(Nanos, bool, &Piece)> = Vec::with_capacity(pieces.len() * 2);
    for piece in pieces.iter().filter(|p| p.from < p.to) {
        edges.push((piece.from, true, piece));
        edges.push((piece.to, false, piece));
    }
    // Ends before begins: touching is not overlapping.
    edges.sort_by_key(|(t, begins, _)| (*t, *begins));
    let mut alive: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut windows: Vec<Over> = Vec::new();
    let mut open: Option<Over> = None;
    for (t, begins, piece) in edges {
        if begins {
            alive.entry(piece.owner).or_insert((piece.lane, 0)).1 += 1;
        } else if let Some((_, pieces)) = alive.get_mut(&piece.owner) {
            *pieces -= 1;
            if *pieces == 0 {
                alive.remove(&piece.owner);
            }
        }
        let over = alive.len() > wanted;
        if over {
            let low = alive.values().map(|(lane, _)| *lane).min().unwrap_or(0);
            let high = alive.values().map(|(lane, _)| *lane).max().unwrap_or(0);
            let window = open.get_or_insert(Over { lanes: (low, high), from: t, to: t, most: alive.len() });
            window.lanes = (window.lanes.0.min(low), window.lanes.1.max(high));
            window.most = window.most.max(alive.len());
        } else if let Some(mut window) = open.take() {
            window.to = t;
            if window.from < window.to {
                windows.push(window);
            }
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(owner: usize, from: Nanos, to: Nanos) -> Piece {
        Piece { lane: owner, owner, from, to }
    }

    #[test]
    fn a_third_copy_of_two_makes_one_window() {
        let over = too_many(&[piece(0, 0, 50), piece(1, 0, 90), piece(2, 30, 90)], 2);
        assert_eq!(over, [Over { lanes: (0, 2), from: 30, to: 50, most: 3 }]);
    }

    #[test]
    fn touching_is_not_overlapping_and_one_owner_counts_once() {
        assert_eq!(too_many(&[piece(0, 0, 50), piece(1, 50, 90)], 1), []);
        assert_eq!(too_many(&[piece(0, 0, 50), piece(0, 20, 90)], 1), []);
    }
}
