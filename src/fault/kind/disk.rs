//! Room on a disk, taken away but for a reserve.

use serde::{Deserialize, Serialize};

use super::amount::{Bytes, Place};
use super::{Ground, Lines, No};
use crate::fault::script;

/// The least that is left: the journal of a host, and the undo, must go on being written.
const LEAST_LEFT: u64 = 16 << 20;

/// A file that leaves only so much room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// A folder on the file system.
    pub path: Place,
    /// How much room is left, at least 16MiB.
    #[serde(deserialize_with = "reserve")]
    pub leave: Bytes,
}

fn reserve<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
    let bytes = Bytes::deserialize(d)?;
    if bytes.count() < LEAST_LEFT {
        let told = format!("{bytes} is less than the 16MiB that must be left");
        return Err(serde::de::Error::custom(told));
    }
    Ok(bytes)
}

impl Fill {
    pub(super) fn summary(&self) -> String {
        format!("the disk under {} has {} left", self.path, self.leave)
    }

    /// `room=KIBIBYTES`, `fallocate=yes`.
    pub(super) fn scout(&self) -> String {
        format!(
            "if [ -d {0} ]; then echo \"room=$(df -Pk {0} 2>/dev/null | awk 'NR == 2 {{ print $4 }}')\"; fi\n\
             command -v fallocate >/dev/null 2>&1 && echo fallocate=yes\n",
            self.path
        )
    }

    /// What is written stays over a reboot, so where it is stands in `/var/lib/rackrift` too, for a heal without a run.
    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let path = &self.path;
        let leave = self.leave.count() >> 10;
        let Some(room) = script::value(ground.scouted, "room").and_then(|r| r.parse::<u64>().ok()) else {
            return Err(No::Refused(format!("there is no folder {path}")));
        };
        if script::value(ground.scouted, "fallocate") != Some("yes") {
            return Err(No::Missing("fallocate; install util-linux there".to_owned()));
        }
        if room <= leave {
            return Err(No::Refused(format!("{path} has only {} MiB left by itself", room >> 10)));
        }
        let file = format!("{}/.rackrift-{}.fill", path.as_str().trim_end_matches('/'), ground.id);
        let note = format!("/var/lib/rackrift/{}.fill", ground.id);
        Ok(Lines {
            commit: format!(
                r#"if [ ! -e {file} ]; then
    mkdir -p /var/lib/rackrift && echo {file} >{note} || bad="$bad {note} cannot be written;"
    rr_room=$(df -Pk {path} | awk 'NR == 2 {{ print $4 }}')
    fallocate -l "$((rr_room - {leave}))KiB" {file} || bad="$bad {file} cannot be made;"
fi
"#
            ),
            undo: format!("rm -f {file} {note}\nrmdir /var/lib/rackrift 2>/dev/null\n"),
            left: format!("if [ -e {file} ]; then echo '{file} is still there'; fi\n"),
            look: format!(
                r#"rr_room=$(df -Pk {path} | awk 'NR == 2 {{ print $4 }}')
if [ -e {file} ] && [ "$rr_room" -le $(({leave} * 2)) ]; then
    echo "sign=yes {path} has $((rr_room / 1024)) MiB left"
else
    echo "sign=no {path} has $((rr_room / 1024)) MiB left"
fi
"#
            ),
            notes: vec![format!("{path} has {} MiB left now", room >> 10)],
            ..Lines::default()
        })
    }
}
