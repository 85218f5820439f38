//! Where in a history something is planted.

/// All of `n` places, beginning at about `at` (0 to 1) of them: onward to the last, then back to the first.
pub(super) fn from(at: f64, n: usize) -> impl Iterator<Item = usize> {
    let start = ((n as f64 * at.clamp(0.0, 1.0)) as usize).min(n.saturating_sub(1));
    (start..n).chain((0..start).rev())
}
