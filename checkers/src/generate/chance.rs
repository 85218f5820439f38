//! A small seeded source of chance.
//!
//! SplitMix64, not the `rand` crate, because this crate is pure, a history must follow from its seed alone, on every
//! machine and in every later version, and nothing here needs more than equidistribution.
//! Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.

/// A seeded source of chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// The same seed gives the same sequence.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A position in a list of `n`.
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// True `parts` times out of `whole`.
    pub fn happens(&mut self, parts: u64, whole: u64) -> bool {
        self.below(whole) < parts
    }

    /// One of the list.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }
}
