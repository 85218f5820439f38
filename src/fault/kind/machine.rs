//! The machine as a whole: booted again, in good order or not.

use serde::{Deserialize, Serialize};

use super::{Ground, Lines, No};
use crate::fault::script;

/// What becomes of a machine. It comes back by itself; the heal waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    /// Shut down in good order and booted.
    Reboot,
    /// Booted at once, without a word to anybody and without writing what was not written (sysrq `b`).
    Crash,
}

/// `boot=ID`, `own=yes` if this is a machine of its own.
pub(super) fn scout() -> String {
    format!("{OWN}echo \"boot=$(cat /proc/sys/kernel/random/boot_id)\"\nrr_own && echo own=yes\n")
}

/// Whether clock and kernel belong to this host alone: systemd is its first process, and nothing says container.
pub(super) const OWN: &str = r"rr_own() {
    [ -d /run/systemd/system ] && [ ! -e /run/systemd/container ] && [ ! -e /.dockerenv ] || return 1
    if tr '\0' '\n' 2>/dev/null </proc/1/environ | grep -q '^container='; then return 1; fi
    read -r rr_first </proc/1/comm
    [ $rr_first = systemd ]
}
";

impl Machine {
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Reboot => "machine/reboot",
            Self::Crash => "machine/crash",
        }
    }

    pub(super) fn summary(self) -> String {
        match self {
            Self::Reboot => "the machine is rebooted".to_owned(),
            Self::Crash => "the machine crashes and boots".to_owned(),
        }
    }

    pub(super) fn lines(self, ground: &Ground<'_>) -> Result<Lines, No> {
        if script::value(ground.scouted, "own") != Some("yes") {
            return Err(No::Refused(
                "it is a container, or not run by systemd: it has no kernel of its own to boot".to_owned(),
            ));
        }
        let boot = script::value(ground.scouted, "boot").unwrap_or_default();
        let act = match self {
            Self::Reboot => "systemctl reboot",
            Self::Crash => "echo 1 >/proc/sys/kernel/sysrq; echo b >/proc/sysrq-trigger",
        };
        Ok(Lines {
            // A second later, so that the answer still gets out; in a session of its own, so that it outlives ours.
            commit: format!(
                "if [ ! -e \"$dir/committed\" ]; then setsid /bin/sh -c 'sleep 1; {act}' </dev/null >/dev/null 2>&1 & fi\n"
            ),
            left: format!(
                "if [ -e \"$dir/committed\" ] && [ \"$(cat /proc/sys/kernel/random/boot_id)\" = '{boot}' ]; then echo 'it was not booted again'; fi\n"
            ),
            look: format!(
                "if [ \"$(cat /proc/sys/kernel/random/boot_id)\" = '{boot}' ]; then echo 'sign=no it was not booted again'; \
                 else read -r rr_up _ </proc/uptime; echo \"sign=yes it was booted again and is up for ${{rr_up%%.*}} s\"; fi\n"
            ),
            ..Lines::default()
        })
    }
}
