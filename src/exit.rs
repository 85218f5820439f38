//! Exit codes: one table, printed in `--help`.

use rackrift_checkers::verdict::Verdict;

/// How the program ended. The greater of two by [`Exit::merge`] wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All checks passed.
    Passed,
    /// A check failed.
    Failed,
    /// Undecided, or the run proves nothing.
    Undecided,
    /// The harness failed: a host unreachable, a fault not applied.
    Harness,
    /// Nothing ran.
    Nothing,
    /// Hosts are not verified clean.
    Dirty,
    /// Wrong usage or input.
    Usage,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Undecided => 2,
            Self::Harness => 3,
            Self::Nothing => 4,
            Self::Dirty => 5,
            Self::Usage => 64,
        }
    }

    /// Precedence 5 > 1 > 3 > 2 > 4 > 0; wrong usage never meets another.
    #[must_use]
    pub const fn merge(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Nothing => 1,
            Self::Undecided => 2,
            Self::Harness => 3,
            Self::Failed => 4,
            Self::Dirty => 5,
            Self::Usage => 6,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(v: Verdict) -> Self {
        match v {
            Verdict::Pass => Self::Passed,
            Verdict::Fail => Self::Failed,
            Verdict::Unknown | Verdict::Invalid => Self::Undecided,
            Verdict::Error => Self::Harness,
            Verdict::Skipped => Self::Nothing,
        }
    }
}
