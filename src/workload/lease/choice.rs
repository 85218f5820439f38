//! What a client does next: a pure choice from what it knows and a random number.

use rand::Rng;

use crate::kube::lease::Lease;

/// What a client knows of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Nothing, or nothing that still counts.
    Nothing,
    /// It was not there.
    Absent,
    /// The version it saw last.
    Version(Box<Lease>),
}

/// What to do with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read it.
    Read,
    /// Create it, held by this client.
    Create,
    /// Compare-and-set on the version seen last: renew it, or take it from whoever holds it.
    Take,
    /// Compare-and-set on the version seen last: give it up.
    Release,
}

/// Chooses a lease (by its number) and what to do with it.
///
/// Most often a client reads a lease and then writes the one it just read, so that compare-and-sets have a chance;
/// one time in five it goes at a lease by what it remembers, so that stale ones are tried, too. It releases only
/// what it holds. It never writes what it does not know.
pub fn choose(rng: &mut impl Rng, me: &str, known: &[Known], last: Option<usize>) -> (usize, Action) {
    let fresh = last.filter(|&i| !matches!(known[i], Known::Nothing) && rng.random_ratio(7, 10));
    let (key, may_write) = match fresh {
        Some(i) => (i, true),
        None => (rng.random_range(0..known.len()), rng.random_ratio(1, 5)),
    };
    let action = match &known[key] {
        Known::Absent if may_write => Action::Create,
        Known::Version(lease) if may_write && lease.holder == me && rng.random_ratio(1, 4) => Action::Release,
        Known::Version(_) if may_write => Action::Take,
        _ => Action::Read,
    };
    (key, action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn held_by(holder: &str) -> Known {
        Known::Version(Box::new(Lease { holder: holder.into(), version: 7, ..Lease::default() }))
    }

    #[test]
    fn only_what_is_known_is_written_and_only_what_is_held_is_released() {
        let known = [Known::Nothing, Known::Absent, held_by("me"), held_by("other")];
        let mut seen = std::collections::BTreeSet::new();
        let mut rng = StdRng::seed_from_u64(1);
        for round in 0..4000 {
            let (key, action) = choose(&mut rng, "me", &known, (round % 5 < 4).then_some(round % 4));
            seen.insert((key, format!("{action:?}")));
        }
        let seen: Vec<(usize, &str)> = seen.iter().map(|(k, a)| (*k, a.as_str())).collect();
        assert_eq!(
            seen,
            [
                (0, "Read"),
                (1, "Create"),
                (1, "Read"),
                (2, "Read"),
                (2, "Release"),
                (2, "Take"),
                (3, "Read"),
                (3, "Take")
            ]
        );
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        let known = [held_by("me"), Known::Absent, held_by("other")];
        let run = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            (0..100).map(|i| choose(&mut rng, "me", &known, Some(i % 3))).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
