//! Processors kept busy, memory taken.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::amount::Bytes;
use super::{Ground, Lines, No};
use crate::fault::script;

/// Memory that is left to the host whatever is asked for, KiB.
const RESERVE_KIB: u64 = 128 << 10;

/// What is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Pressure {
    /// So many loops that do nothing.
    Cpu(NonZeroU16),
    /// So much memory, held by a file in `/dev/shm`.
    Memory(Bytes),
}

impl Pressure {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Cpu(_) => "pressure/cpu",
            Self::Memory(_) => "pressure/memory",
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            Self::Cpu(n) => format!("{n} busy loops"),
            Self::Memory(bytes) => format!("{bytes} of memory are taken"),
        }
    }

    /// `processors=`, `available=KIB`, `shm=KIB`.
    pub(super) fn scout(&self) -> String {
        "echo \"processors=$(grep -c '^processor' /proc/cpuinfo)\"\n\
         echo \"available=$(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)\"\n\
         if [ -d /dev/shm ]; then echo \"shm=$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')\"; fi\n"
            .to_owned()
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        match self {
            Self::Cpu(n) => {
                let mut lines = cpu(*n);
                let processors = script::value(ground.scouted, "processors").unwrap_or("?");
                lines.notes = vec![format!("{processors} processors")];
                Ok(lines)
            }
            Self::Memory(bytes) => {
                let number = |key| script::value(ground.scouted, key).and_then(|v| v.parse::<u64>().ok());
                let want = bytes.count().div_ceil(1 << 10);
                let Some(room) = number("shm") else {
                    return Err(No::Missing("/dev/shm".to_owned()));
                };
                let free = number("available").unwrap_or(0).saturating_sub(RESERVE_KIB).min(room);
                if want > free {
                    return Err(No::Refused(format!(
                        "of {bytes} only {} MiB can be taken: 128 MiB are left to the host, and /dev/shm has a limit",
                        free >> 10
                    )));
                }
                Ok(memory(want, ground))
            }
        }
    }
}

fn cpu(n: NonZeroU16) -> Lines {
    Lines {
        stage: r#"cat >"$dir/burn.sh" <<'RACKRIFT-LOOP' || fail "cannot write the loop in $dir"
dir=$1
echo $$ >>"$dir/burners"
while [ -e "$dir/burn.sh" ]; do
    n=0
    while [ $n -lt 100000 ]; do n=$((n + 1)); done
done
RACKRIFT-LOOP
"#
        .to_owned(),
        commit: format!(
            r#"if [ ! -e "$dir/burners" ]; then
    : >"$dir/burners"
    rr_n=0
    while [ $rr_n -lt {n} ]; do
        setsid /bin/sh "$dir/burn.sh" "$dir" </dev/null >/dev/null 2>&1 &
        rr_n=$((rr_n + 1))
    done
fi
"#
        ),
        undo: r#"rm -f "$dir/burn.sh"
rr_burning() {
    [ -e "$dir/burners" ] || return 0
    while read -r rr_pid; do
        grep -q "$dir/burn.sh" "/proc/$rr_pid/cmdline" 2>/dev/null && echo "$rr_pid"
    done <"$dir/burners"
}
for rr_pid in $(rr_burning); do kill -KILL "$rr_pid" 2>/dev/null; done
"#
        .to_owned(),
        left: "for rr_pid in $(rr_burning); do echo \"the loop with pid $rr_pid still runs\"; done\n"
            .to_owned(),
        look: format!(
            r#"rr_count=0
if [ -e "$dir/burners" ]; then
    while read -r rr_pid; do
        grep -q "$dir/burn.sh" "/proc/$rr_pid/cmdline" 2>/dev/null && rr_count=$((rr_count + 1))
    done <"$dir/burners"
fi
read -r rr_load _ </proc/loadavg
if [ $rr_count -ge {n} ]; then echo "sign=yes $rr_count loops run, the load is $rr_load"; else echo "sign=no $rr_count of {n} loops run"; fi
"#
        ),
        ..Lines::default()
    }
}

fn memory(kib: u64, ground: &Ground<'_>) -> Lines {
    let file = format!("/dev/shm/rackrift-{}", ground.id);
    Lines {
        commit: format!(
            "[ -e {file} ] || dd if=/dev/zero of={file} bs=1024k count={kib}k iflag=count_bytes 2>/dev/null || bad=\"$bad {file} cannot be written;\"\n"
        ),
        undo: format!("rm -f {file}\n"),
        left: format!("if [ -e {file} ]; then echo '{file} is still there'; fi\n"),
        look: format!(
            r#"rr_size=$(stat -c %s {file} 2>/dev/null)
rr_free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
if [ "${{rr_size:-0}}" -ge $(({kib} * 1024)) ]; then
    echo "sign=yes $((rr_size / 1048576)) MiB are held, $((rr_free / 1024)) MiB are left"
else
    echo "sign=no only $((${{rr_size:-0}} / 1048576)) MiB are held"
fi
"#
        ),
        ..Lines::default()
    }
}
