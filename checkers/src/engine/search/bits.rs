//! A set of places among the open operations: `W` words in an array, not a growing vector, so that a configuration
//! can be copied, compared and hashed without following a pointer.

/// A set of numbers below `64 * W`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bits<const W: usize>([u64; W]);

impl<const W: usize> Bits<W> {
    /// The empty set.
    pub(super) const NONE: Self = Self([0; W]);

    pub(super) fn has(&self, i: u32) -> bool {
        self.0[i as usize / 64] >> (i % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, i: u32) {
        self.0[i as usize / 64] |= 1 << (i % 64);
    }

    pub(super) fn remove(&mut self, i: u32) {
        self.0[i as usize / 64] &= !(1 << (i % 64));
    }

    /// Adds all of `other` that are not in `except`.
    pub(super) fn add_all_but(&mut self, other: &Self, except: &Self) {
        for ((to, from), not) in self.0.iter_mut().zip(other.0).zip(except.0) {
            *to |= from & !not;
        }
    }

    /// Those that are not in `other`.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|w| self.0[w] & !other.0[w]))
    }

    /// The members, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        self.0.into_iter().zip(0u32..).flat_map(|(mut word, w)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                (word != 0).then(|| {
                    word &= word - 1;
                    w * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_kept_across_words() {
        let mut b = Bits::<2>::NONE;
        for i in [127, 0, 63, 64] {
            b.add(i);
        }
        b.remove(63);
        assert_eq!(b.iter().collect::<Vec<_>>(), [0, 64, 127]);
        assert!(b.has(64) && !b.has(63));
        let mut c = Bits::<2>::NONE;
        c.add(64);
        assert_eq!(b.without(&c).iter().collect::<Vec<_>>(), [0, 127]);
        c.add_all_but(&b, &Bits::NONE);
        assert_eq!(c, b);
    }
}
