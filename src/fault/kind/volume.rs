//! A volume of the device mapper, prepared beforehand as one `linear` piece: slow, failing or hung.

use serde::{Deserialize, Serialize};

use super::amount::Name;
use super::{Ground, Lines, No};
use crate::fault::script;
use crate::length::Length;

/// A prepared volume and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Its name under `/dev/mapper`.
    pub name: Name,
    /// What it does.
    pub does: Behaviour,
}

/// What a volume does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Behaviour {
    /// Each request takes so much longer.
    Delay(Length),
    /// Writes fail, reads go on.
    FailWrites,
    /// All requests fail.
    Fail,
    /// Requests wait, `fsync` with them, until the heal.
    Hang,
}

impl Volume {
    pub(super) const fn kind(&self) -> &'static str {
        match self.does {
            Behaviour::Delay(_) => "volume/delay",
            Behaviour::FailWrites => "volume/fail-writes",
            Behaviour::Fail => "volume/fail",
            Behaviour::Hang => "volume/hang",
        }
    }

    pub(super) fn summary(&self) -> String {
        let name = &self.name;
        match self.does {
            Behaviour::Delay(by) => format!("requests to {name} take {by} longer"),
            Behaviour::FailWrites => format!("writes to {name} fail"),
            Behaviour::Fail => format!("requests to {name} fail"),
            Behaviour::Hang => format!("requests to {name} hang"),
        }
    }

    /// `dmsetup=yes`, `table=...`, `targets=KIND KIND ...`.
    pub(super) fn scout(&self) -> String {
        format!(
            "command -v dmsetup >/dev/null 2>&1 && echo dmsetup=yes\n\
             for rr_m in dm-delay dm-flakey; do modprobe $rr_m 2>/dev/null; done\n\
             echo \"targets=$(dmsetup targets 2>/dev/null | cut -d ' ' -f 1 | tr '\\n' ' ')\"\n\
             echo \"table=$(dmsetup table {} 2>/dev/null)\"\n",
            self.name
        )
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let name = &self.name;
        if script::value(ground.scouted, "dmsetup") != Some("yes") {
            return Err(No::Missing("dmsetup; install dmsetup there".to_owned()));
        }
        let table: Vec<&str> =
            script::value(ground.scouted, "table").unwrap_or_default().split_whitespace().collect();
        let ["0", sectors, "linear", device, offset] = table.as_slice() else {
            return Err(No::Refused(format!(
                "/dev/mapper/{name} is not one linear piece there (its table: `{}`); prepare it as docs/faults.md says",
                table.join(" ")
            )));
        };
        let (target, new) = match self.does {
            Behaviour::Delay(by) => {
                ("delay", format!("0 {sectors} delay {device} {offset} {}", by.duration().as_millis()))
            }
            // Up for 0 s, down for an hour, over and over.
            Behaviour::FailWrites => {
                ("flakey", format!("0 {sectors} flakey {device} {offset} 0 3600 1 error_writes"))
            }
            Behaviour::Fail => ("error", format!("0 {sectors} error")),
            Behaviour::Hang => ("linear", String::new()),
        };
        let targets = script::value(ground.scouted, "targets").unwrap_or_default();
        if !targets.split(' ').any(|t| t == target) {
            return Err(No::Missing(format!("the kernel has no device-mapper target `{target}`")));
        }
        let load = |table: &str| {
            format!(
                "dmsetup suspend --noflush --nolockfs {name} && dmsetup load {name} --table '{table}' && dmsetup resume {name}"
            )
        };
        let old = table.join(" ");
        let commit = match self.does {
            Behaviour::Hang => format!("dmsetup suspend --noflush --nolockfs {name}"),
            _ => load(&new),
        };
        Ok(Lines {
            commit: format!(": >\"$dir/volume\"\n{commit} || bad=\"$bad {name} did not take its table;\"\n"),
            undo: format!("if [ -e \"$dir/volume\" ]; then {}; fi\n", load(&old)),
            left: format!(
                r#"if [ -e "$dir/volume" ]; then
    [ "$(dmsetup table {name})" = '{old}' ] || echo '{name} does not have its table back'
    case $(dmsetup info --noheadings --columns --options suspended {name}) in Suspended) echo '{name} is suspended' ;; esac
fi
"#
            ),
            look: match self.does {
                Behaviour::Hang => format!(
                    "case $(dmsetup info --noheadings --columns --options suspended {name}) in Suspended) echo 'sign=yes {name} is suspended' ;; *) echo 'sign=no {name} goes on' ;; esac\n"
                ),
                _ => format!(
                    "case $(dmsetup table {name}) in *' {target}'*) echo 'sign=yes {name} is {target}' ;; *) echo 'sign=no {name} is as before' ;; esac\n"
                ),
            },
            ..Lines::default()
        })
    }
}
