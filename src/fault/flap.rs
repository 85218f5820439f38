//! A partition that comes and goes: how long it stays each time, and the loop on a host that does it.
//!
//! Both directions between two hosts are taken at one of the two, or a partition would be as long as the longer of
//! two loops that drift apart. The loop goes by the host's own clock, so that it needs no controller.
//!
//! # Invariants
//! * The loop only hooks and unhooks; the rules stay, and their counters with them.
//! * The undo ends the loop before it takes the rules away, and looks again afterwards.

use std::time::Duration;

use rackrift_checkers::generate::Chance;
use serde::{Deserialize, Serialize};

use super::host_loop;
use crate::length::Length;

const LOOP: &str = include_str!("sh/flap.sh");
/// The loop's name on the host.
pub(super) const NAME: &str = "flap";
/// How many times are drawn before they begin again.
const DRAWN: usize = 64;
/// Shorter times than this are mostly those of iptables itself.
const SHORTEST: Duration = Duration::from_millis(500);

/// How it comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flap {
    /// How long it stays, at least 500ms.
    pub on: Length,
    /// How long it is away, at least 500ms.
    pub off: Length,
    /// Each time is longer or shorter by up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Length>,
    /// What the jitter is drawn from.
    #[serde(default)]
    pub seed: u64,
}

/// Reads and refuses times that are too short, where line and column are still known.
pub(crate) fn checked<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Flap>, D::Error> {
    let Some(flap) = Option::<Flap>::deserialize(d)? else { return Ok(None) };
    let jitter = flap.jitter.map_or(Duration::ZERO, Length::duration);
    for (word, time) in [("on", flap.on), ("off", flap.off)] {
        if time.duration() < SHORTEST + jitter {
            let less = if jitter.is_zero() { "" } else { " and the jitter" };
            return Err(serde::de::Error::custom(format!("`{word}: {time}` is shorter than 500ms{less}")));
        }
    }
    Ok(Some(flap))
}

impl Flap {
    /// On and off, in turn.
    #[must_use]
    pub fn times(&self) -> Vec<(Duration, Duration)> {
        let mut chance = Chance::seeded(self.seed);
        let jitter =
            self.jitter.map_or(0, |j| u64::try_from(j.duration().as_millis()).unwrap_or(u64::MAX / 4));
        let mut draw = |time: Length| {
            let shift = Duration::from_millis(chance.below(2 * jitter + 1));
            (time.duration() + shift).saturating_sub(Duration::from_millis(jitter))
        };
        (0..DRAWN).map(|_| (draw(self.on), draw(self.off))).collect()
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let jitter = self.jitter.map_or_else(String::new, |j| format!(" ± {j}"));
        format!("{} on, {} off{jitter}", self.on, self.off)
    }

    /// Lays the loop down: `up` and `down` are lines that hook and unhook.
    pub(super) fn stage(&self, up: &str, down: &str) -> String {
        let text = LOOP.replace("@UP@\n", up).replace("@DOWN@\n", down);
        let mut lines = format!(
            "cat >\"$dir/flap.new\" <<'RACKRIFT-LOOP' || fail \"cannot write the loop in $dir\"\n{text}RACKRIFT-LOOP\n\
             cat >\"$dir/flap.times\" <<'RACKRIFT-TIMES' || fail \"cannot write the loop's times in $dir\"\n"
        );
        for (on, off) in self.times() {
            lines += &format!("{:.3} {:.3}\n", on.as_secs_f64(), off.as_secs_f64());
        }
        lines
            + "RACKRIFT-TIMES\nmv \"$dir/flap.new\" \"$dir/flap.sh\" || fail \"cannot write the loop in $dir\"\n"
    }
}

/// Prints `flap=yes` if the loop runs, else `flap=no`.
pub(super) fn look() -> String {
    format!("if {}; then\n    echo flap=yes\nelse\n    echo flap=no\nfi\n", host_loop::running(NAME))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(default, deserialize_with = "checked")]
        flap: Option<Flap>,
    }

    fn read(text: &str) -> Result<Option<Flap>, String> {
        let read: Result<Holder, _> = crate::yaml::Source { origin: "a test", text }.parse();
        read.map(|h| h.flap).map_err(|e| e.to_string())
    }

    proptest! {
        #[test]
        fn times_stay_within_the_jitter_and_follow_from_the_seed(
            on in 500_u64..9_000, off in 500_u64..9_000, jitter in 0_u64..5_000, seed: u64
        ) {
            let text = format!("flap: {{on: {}ms, off: {}ms, jitter: {jitter}ms, seed: {seed}}}", on + jitter, off + jitter);
            let flap = read(&text).unwrap().unwrap();
            prop_assert_eq!(flap.times(), flap.times());
            for (a, b) in flap.times() {
                for (is, mean) in [(a, on + jitter), (b, off + jitter)] {
                    let is = u64::try_from(is.as_millis()).unwrap();
                    prop_assert!((mean - jitter..=mean + jitter).contains(&is));
                }
            }
        }
    }

    #[test]
    fn times_that_iptables_cannot_keep_are_refused_with_their_place() {
        let said: Vec<String> = [
            "flap: {on: 100ms, off: 2s}",
            "flap: {on: 2s, off: 2s, jitter: 1800ms}",
            "flap: {on: 2s}",
            "flap: {on: 2s, off: 0s}",
        ]
        .iter()
        .map(|t| read(t).unwrap_err())
        .collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
