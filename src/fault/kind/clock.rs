//! A host's wall clock: jumped, made too fast or too slow, swung to and fro.
//!
//! Time daemons are stopped for as long, or they would put the clock right; the heal starts them again. What the
//! clock should show is known from the time since boot, which nobody can set.
//!
//! # Invariants
//! * Refused where the clock may be shared with other machines: in containers.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::super::host_loop;
use super::machine::OWN;
use super::{Ground, Lines, No};
use crate::fault::script;
use crate::length::Length;

const CLOCK: &str = include_str!("../sh/clock.sh");

/// Units of time daemons, as the distributions call them.
const DAEMONS: &str = "chronyd chrony ntpd ntp ntpsec openntpd systemd-timesyncd ptp4l phc2sys";

/// What becomes of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Clock {
    /// It jumps ahead by this.
    Ahead(Length),
    /// It jumps back by this.
    Back(Length),
    /// It gains so many parts in ten thousand, 1 to 1000 (1 is 100 ppm, 1000 a tenth).
    Gain(Rate),
    /// It loses as many.
    Lose(Rate),
    /// It jumps ahead and back again and again.
    Strobe(Strobe),
}

/// Parts in ten thousand, 1 to 1000: the range of the kernel's tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "NonZeroU16")]
pub struct Rate(#[schemars(range(min = 1, max = 1000))] u16);

impl TryFrom<NonZeroU16> for Rate {
    type Error = String;

    fn try_from(n: NonZeroU16) -> Result<Self, String> {
        if n.get() > 1_000 {
            return Err(format!("{n} parts in ten thousand are more than the kernel takes: 1 to 1000"));
        }
        Ok(Self(n.get()))
    }
}

/// A clock that swings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strobe {
    /// How far ahead.
    pub by: Length,
    /// How long it stays on each side, at least 1 s.
    pub every: Length,
}

/// `own=yes`, `adjtimex=yes`, `daemons=those that run`.
pub(super) fn scout() -> String {
    format!(
        "{OWN}rr_own && echo own=yes\ncommand -v adjtimex >/dev/null 2>&1 && echo adjtimex=yes\n\
         echo \"daemons=$(for rr_d in {DAEMONS}; do systemctl is-active --quiet $rr_d 2>/dev/null && printf '%s ' $rr_d; done)\"\n"
    )
}

impl Clock {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Ahead(_) | Self::Back(_) => "clock/jump",
            Self::Gain(_) | Self::Lose(_) => "clock/rate",
            Self::Strobe(_) => "clock/strobe",
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            Self::Ahead(by) => format!("the clock is {by} ahead"),
            Self::Back(by) => format!("the clock is {by} behind"),
            Self::Gain(rate) => format!("the clock gains {} in 10,000", rate.0),
            Self::Lose(rate) => format!("the clock loses {} in 10,000", rate.0),
            Self::Strobe(s) => format!("the clock jumps by {} every {}", s.by, s.every),
        }
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        if script::value(ground.scouted, "own") != Some("yes") {
            return Err(No::Refused(
                "it is a container, or not run by systemd: its clock may be that of other machines too"
                    .to_owned(),
            ));
        }
        let daemons = script::value(ground.scouted, "daemons").unwrap_or_default().trim();
        let mut lines = match self {
            Self::Ahead(by) => jump(&seconds(*by)),
            Self::Back(by) => jump(&format!("-{}", seconds(*by))),
            Self::Strobe(s) => strobe(s),
            Self::Gain(_) | Self::Lose(_) if script::value(ground.scouted, "adjtimex") != Some("yes") => {
                return Err(No::Missing("adjtimex; install adjtimex there".to_owned()));
            }
            Self::Gain(rate) => tick(10_000 + rate.0),
            Self::Lose(rate) => tick(10_000 - rate.0),
        };
        let stop = daemons.split_whitespace().map(|d| {
            format!("    echo {d} >>\"$dir/daemons\"\n    systemctl stop {d} </dev/null || bad=\"$bad {d} did not stop;\"\n")
        });
        lines.commit = format!(
            "{CLOCK}if [ ! -e \"$dir/offset\" ]; then\n{}    rr_offset >\"$dir/offset\"\n{}fi\n",
            stop.collect::<String>(),
            lines.commit
        );
        lines.undo = format!(
            r#"{CLOCK}{}if [ -s "$dir/offset" ]; then
    rr_before=$(cat "$dir/offset")
    [ "$(rr_off_by "$(rr_offset)" "$rr_before")" -gt 50 ] && rr_set "$rr_before"
fi
if [ -e "$dir/daemons" ]; then
    while read -r rr_d; do systemctl start "$rr_d" </dev/null; done <"$dir/daemons"
fi
"#,
            lines.undo
        );
        lines.left.push_str(
            r#"if [ -s "$dir/offset" ]; then
    rr_by=$(rr_off_by "$(rr_offset)" "$(cat "$dir/offset")")
    [ "$rr_by" -gt 1000 ] && echo "the clock is off by $rr_by ms"
fi
if [ -e "$dir/daemons" ]; then
    while read -r rr_d; do systemctl is-active --quiet "$rr_d" || echo "$rr_d does not run"; done <"$dir/daemons"
fi
"#,
        );
        lines.look = format!("{CLOCK}{}", lines.look);
        if !daemons.is_empty() {
            lines.notes.push(format!("stopped for as long: {daemons}"));
        }
        Ok(lines)
    }
}

fn seconds(length: Length) -> String {
    format!("{:.3}", length.duration().as_secs_f64())
}

fn jump(by: &str) -> Lines {
    Lines {
        commit: format!(
            "    rr_set \"$(awk -v o=\"$(cat \"$dir/offset\")\" 'BEGIN {{ printf \"%.3f\", o + ({by}) }}')\" || bad=\"$bad the clock was not set;\"\n"
        ),
        look: format!(
            r#"if [ -s "$dir/offset" ]; then
    rr_should=$(awk -v o="$(cat "$dir/offset")" 'BEGIN {{ printf "%.3f", o + ({by}) }}')
    rr_by=$(rr_off_by "$(rr_offset)" "$rr_should")
    if [ "$rr_by" -lt 1000 ]; then echo "sign=yes the clock is off by {by} s, within $rr_by ms"; else echo "sign=no the clock is $rr_by ms from where it should be"; fi
fi
"#
        ),
        ..Lines::default()
    }
}

fn tick(want: u16) -> Lines {
    Lines {
        commit: format!(
            "    rr_tick >\"$dir/tick\"\n    adjtimex --tick {want} >/dev/null || bad=\"$bad adjtimex;\"\n"
        ),
        undo: "if [ -s \"$dir/tick\" ]; then adjtimex --tick \"$(cat \"$dir/tick\")\" >/dev/null; fi\n".to_owned(),
        left: "if [ -s \"$dir/tick\" ] && [ \"$(rr_tick)\" != \"$(cat \"$dir/tick\")\" ]; then echo 'the rate of the clock is not as before'; fi\n"
            .to_owned(),
        look: format!(
            r#"if [ -s "$dir/offset" ]; then
    rr_by=$(rr_off_by "$(rr_offset)" "$(cat "$dir/offset")")
    if [ "$(rr_tick)" = {want} ]; then echo "sign=yes the tick is {want} µs, the clock is off by $rr_by ms"; else echo "sign=no the tick is $(rr_tick) µs"; fi
fi
"#
        ),
        ..Lines::default()
    }
}

fn strobe(spec: &Strobe) -> Lines {
    let (by, every) = (seconds(spec.by), spec.every.duration().as_secs().max(1));
    Lines {
        stage: format!(
            r#"cat >"$dir/strobe.sh" <<'RACKRIFT-LOOP' || fail "cannot write the loop in $dir"
dir=$1
echo $$ >"$dir/strobe.pid"
{CLOCK}rr_here=$(cat "$dir/offset")
rr_there=$(awk -v o="$rr_here" 'BEGIN {{ printf "%.3f", o + {by} }}')
while [ -e "$dir/strobe.sh" ]; do
    rr_set "$rr_there" && echo >>"$dir/swings"
    sleep {every}
    [ -e "$dir/strobe.sh" ] && rr_set "$rr_here"
    sleep {every}
done
RACKRIFT-LOOP
"#
        ),
        commit: host_loop::start("strobe"),
        undo: host_loop::end("strobe"),
        left: host_loop::left("strobe"),
        look: r#"rr_count=$(wc -l 2>/dev/null <"$dir/swings")
if [ "${rr_count:-0}" -gt 0 ]; then echo "sign=yes the clock jumped $((rr_count)) times"; else echo 'sign=no the clock did not jump yet'; fi
"#
        .to_owned(),
        ..Lines::default()
    }
}
