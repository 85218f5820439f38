//! Processes by the name of their program: paused, killed, killed again and again.
//!
//! A process is named by its pid and the time at which it was started: a pid alone is given to others later.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::super::host_loop;
use super::amount::Name;
use super::{Ground, Lines, No};
use crate::fault::script;
use crate::length::Length;

pub(super) const FIND: &str = include_str!("../sh/process.sh");

/// What is done to processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Process {
    /// Stopped (SIGSTOP) until the heal: connections stay open, timers run out, nothing is answered.
    Pause(Name),
    /// Killed once (SIGKILL); what starts it again does so.
    Kill(Name),
    /// Killed again whenever it was started.
    CrashLoop(CrashLoop),
}

/// A program that does not stay up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CrashLoop {
    /// The program's name.
    pub program: Name,
    /// Time between two looks for it, at least 1 s.
    pub every: Length,
}

impl Process {
    pub(super) const fn program(&self) -> &Name {
        match self {
            Self::Pause(name) | Self::Kill(name) => name,
            Self::CrashLoop(c) => &c.program,
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Pause(_) => "process/pause",
            Self::Kill(_) => "process/kill",
            Self::CrashLoop(_) => "process/crash-loop",
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            Self::Pause(name) => format!("{name} is paused"),
            Self::Kill(name) => format!("{name} is killed"),
            Self::CrashLoop(c) => format!("{} is killed every {}", c.program, c.every),
        }
    }

    /// `process=PID START BY RESTART`: each process, the unit that it belongs to and that unit's rule for restarts.
    pub(super) fn scout(&self) -> String {
        format!(
            r#"{FIND}rr_find {} | while read -r rr_pid rr_when; do
    rr_by=$(sed -n 's|^.*/\([^/]*\.service\)\(/.*\)\{{0,1\}}$|\1|p' "/proc/$rr_pid/cgroup" 2>/dev/null | head -n 1)
    grep -q -e kubepods -e /cri- -e libpod "/proc/$rr_pid/cgroup" 2>/dev/null && rr_by=kubelet
    rr_rule=
    case $rr_by in *.service) rr_rule=$(systemctl show --value --property=Restart "$rr_by" 2>/dev/null) ;; esac
    echo "process=$rr_pid $rr_when ${{rr_by:-nobody}} ${{rr_rule:-none}}"
done
"#,
            self.program()
        )
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let name = self.program();
        let found: Vec<Vec<&str>> = script::pairs(ground.scouted)
            .filter(|(key, _)| *key == "process")
            .map(|(_, value)| value.split(' ').collect())
            .collect();
        if found.is_empty() {
            return Err(No::Refused(format!("no process of a program called {name} runs there")));
        }
        let mut units = Vec::new();
        let mut notes = Vec::new();
        for process in &found {
            let [pid, _, by, rule] = process.as_slice() else { continue };
            if by.ends_with(".service") && !units.contains(by) {
                units.push(*by);
            }
            let again = match (*by, *rule) {
                ("kubelet", _) => "the kubelet starts it again".to_owned(),
                ("nobody", _) => "nothing is known to start it again, and neither does the heal".to_owned(),
                (unit, "no" | "none") => format!("{unit} does not start it again, so the heal does"),
                (unit, rule) => format!("{unit} starts it again (Restart={rule})"),
            };
            match self {
                Self::Pause(_) => notes.push(format!("{name} pid {pid}")),
                Self::Kill(_) | Self::CrashLoop(_) => notes.push(format!("{name} pid {pid}: {again}")),
            }
        }
        let mut lines = match self {
            Self::Pause(_) => pause(name),
            Self::Kill(_) => kill(name),
            Self::CrashLoop(c) => crash_loop(c),
        };
        if !matches!(self, Self::Pause(_)) {
            lines.start_again(&units);
        }
        lines.notes = notes;
        Ok(lines)
    }
}

impl Lines {
    /// After a kill: units that do not run are started, and a host is clean only when they do.
    fn start_again(&mut self, units: &[&str]) {
        for unit in units {
            let _ = write!(
                self.undo,
                r#"if [ -e "$dir/killed" ] && ! systemctl is-active --quiet {unit}; then
    systemctl reset-failed {unit} 2>/dev/null
    timeout 20 systemctl start {unit} </dev/null
fi
"#
            );
            let _ = writeln!(
                self.left,
                "if [ -e \"$dir/killed\" ] && ! systemctl is-active --quiet {unit}; then echo '{unit} does not run'; fi"
            );
        }
    }
}

fn pause(name: &Name) -> Lines {
    Lines {
        commit: format!(
            r#"{FIND}rr_find {name} >"$dir/found"
[ -s "$dir/found" ] || bad="$bad no process of {name} is there;"
while read -r rr_pid rr_when; do
    # Written down before it is stopped, so that the undo knows of it whatever happens here.
    grep -qx "$rr_pid $rr_when" "$dir/paused" 2>/dev/null || echo "$rr_pid $rr_when" >>"$dir/paused"
    kill -STOP "$rr_pid" || bad="$bad pid $rr_pid was not stopped;"
done <"$dir/found"
"#
        ),
        undo: format!(
            r#"{FIND}if [ -e "$dir/paused" ]; then
    while read -r rr_pid rr_when; do
        rr_same "$rr_pid" "$rr_when" && kill -CONT "$rr_pid"
    done <"$dir/paused"
fi
"#
        ),
        left: format!(
            r#"if [ -e "$dir/paused" ]; then
    while read -r rr_pid rr_when; do
        rr_same "$rr_pid" "$rr_when" || continue
        case $(rr_stat "$rr_pid") in T*) echo "{name} pid $rr_pid is still stopped" ;; esac
    done <"$dir/paused"
fi
"#
        ),
        look: format!(
            r#"{FIND}if [ -e "$dir/paused" ]; then
    while read -r rr_pid rr_when; do
        if ! rr_same "$rr_pid" "$rr_when"; then
            echo "sign=no {name} pid $rr_pid is gone"
            continue
        fi
        case $(rr_stat "$rr_pid") in
        T*) echo "sign=yes {name} pid $rr_pid is stopped" ;;
        *) echo "sign=no {name} pid $rr_pid goes on" ;;
        esac
    done <"$dir/paused"
fi
"#
        ),
        ..Lines::default()
    }
}

fn kill(name: &Name) -> Lines {
    Lines {
        commit: format!(
            r#"{FIND}if [ ! -e "$dir/killed" ]; then
    rr_find {name} >"$dir/killed"
    [ -s "$dir/killed" ] || bad="$bad no process of {name} is there;"
    while read -r rr_pid rr_when; do
        kill -KILL "$rr_pid" || bad="$bad pid $rr_pid was not killed;"
    done <"$dir/killed"
fi
"#
        ),
        look: format!(
            r#"{FIND}if [ -e "$dir/killed" ]; then
    while read -r rr_pid rr_when; do
        if rr_same "$rr_pid" "$rr_when"; then
            echo "sign=no {name} pid $rr_pid lives"
        else
            rr_now=$(rr_find {name} | cut -d ' ' -f 1 | tr '\n' ' ')
            echo "sign=yes {name} pid $rr_pid is gone; now ${{rr_now:-none}}"
        fi
    done <"$dir/killed"
fi
"#
        ),
        ..Lines::default()
    }
}

fn crash_loop(spec: &CrashLoop) -> Lines {
    let name = &spec.program;
    let seconds = spec.every.duration().as_secs().max(1);
    Lines {
        stage: format!(
            r#"cat >"$dir/loop.sh" <<'RACKRIFT-LOOP' || fail "cannot write the loop in $dir"
dir=$1
echo $$ >"$dir/loop.pid"
{FIND}while [ -e "$dir/loop.sh" ]; do
    rr_find {name} >"$dir/found"
    while read -r rr_pid rr_when; do
        kill -KILL "$rr_pid" && echo "$rr_pid $rr_when" >>"$dir/killed"
    done <"$dir/found"
    sleep {seconds}
done
RACKRIFT-LOOP
"#
        ),
        commit: host_loop::start("loop"),
        undo: host_loop::end("loop"),
        left: host_loop::left("loop"),
        look: format!(
            r#"if {running}; then
    rr_count=$(wc -l 2>/dev/null <"$dir/killed")
    if [ "${{rr_count:-0}}" -gt 0 ]; then
        echo "sign=yes {name} was killed $((rr_count)) times"
    else
        echo "sign=no {name} was not killed yet"
    fi
else
    echo "sign=no the loop does not run"
fi
"#,
            running = host_loop::running("loop")
        ),
        ..Lines::default()
    }
}
