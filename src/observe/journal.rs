//! What elected components say of their own leadership, from their hosts' journals, read once at the end of a run.
//!
//! The journal is append-only, survives a cut, and stamps each line with the host's monotonic clock and boot.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{At, Belief, BeliefEvent, Entry, HostTime};
use serde::Deserialize;

use super::Seen;
use crate::host::clock::RESOLUTION;
use crate::host::remote::{Remote, Script};
use crate::inventory::Inventory;
use crate::run::recorder::Recorder;

/// The first lines of a run's stretch are found by a cursor, taken at its start.
#[derive(Debug)]
pub struct Journals {
    components: Vec<String>,
    cursors: BTreeMap<String, Result<String, String>>,
}

/// How long reading one journal may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Words of a log line that say something of leadership, in lower case; the stable stems of client-go's and the
/// components' messages from 1.19 to 1.36.
const WORDS: [(&str, BeliefEvent); 6] = [
    ("attempting to acquire leader lease", BeliefEvent::Candidate),
    ("successfully acquired lease", BeliefEvent::Leads),
    ("failed to renew lease", BeliefEvent::Lost),
    ("leaderelection lost", BeliefEvent::Lost),
    ("lost master", BeliefEvent::Lost),
    ("main process exited", BeliefEvent::Exits),
];

impl Journals {
    /// Notes where each control-plane host's journal ends now.
    pub async fn start(remote: &Arc<dyn Remote>, inventory: &Inventory, components: Vec<String>) -> Self {
        let script = Script::new("journalctl -q -n 0 --show-cursor");
        let mut cursors = BTreeMap::new();
        for host in inventory.hosts().filter(|h| h.has_role("control-plane")) {
            let outcome = remote.run(&host.name, &script).await.ok();
            let cursor = outcome.and_then(|text| {
                let cursor = text.lines().find_map(|l| l.strip_prefix("-- cursor: "));
                cursor.map(|c| c.trim().to_owned()).ok_or_else(|| "the journal shows no cursor".to_owned())
            });
            cursors.insert(host.name.clone(), cursor);
        }
        Self { components, cursors }
    }

    /// Writes what was said since then.
    pub async fn collect(
        self,
        remote: &Arc<dyn Remote>,
        clocks: &Clocks,
        recorder: &Recorder,
    ) -> Vec<(String, Seen)> {
        let mut report = Vec::new();
        for (host, cursor) in &self.cursors {
            let mut seen = Seen::default();
            match cursor {
                Err(reason) => seen.miss(reason.clone()),
                Ok(cursor) => {
                    let script = Script::new(self.reading(cursor)).limit(LIMIT).cap(64 << 20);
                    match remote.run(host, &script).await.ok() {
                        Err(reason) => seen.miss(reason),
                        Ok(text) => write(host, &text, clocks, recorder, &mut seen),
                    }
                }
            }
            report.push((format!("journal:{host}"), seen));
        }
        report
    }

    /// The lines since the cursor, and before it the last of each unit's that says who led.
    fn reading(&self, cursor: &str) -> String {
        let mut script = String::new();
        let words: Vec<&str> = WORDS.iter().map(|(w, _)| *w).collect();
        let fields = "MESSAGE,_PID,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT";
        let pattern = words.join("|");
        for component in &self.components {
            let _ = writeln!(
                script,
                "journalctl -q --no-pager -o json --output-fields={fields} -u {component}.service \
                 --after-cursor='{cursor}' | grep -iE '{pattern}'"
            );
        }
        script + ":\n"
    }
}

/// A line of `journalctl -o json`.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "MESSAGE")]
    message: Message,
    #[serde(rename = "_PID")]
    pid: Option<String>,
    #[serde(rename = "UNIT")]
    unit: Option<String>,
    #[serde(rename = "_SYSTEMD_UNIT")]
    own_unit: Option<String>,
    #[serde(rename = "__MONOTONIC_TIMESTAMP")]
    monotonic_us: String,
    #[serde(rename = "_BOOT_ID")]
    boot: String,
}

/// A message; the journal writes one that is no text as a list of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
}

/// A line that says something of leadership.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    component: String,
    pid: Option<u32>,
    event: BeliefEvent,
    boot: String,
    monotonic_us: u64,
    line: String,
}

fn said(line: &str) -> Option<Said> {
    let line: Line = serde_json::from_str(line).ok()?;
    let message = match line.message {
        Message::Text(text) => text,
        Message::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let lower = message.to_lowercase();
    let (_, event) = WORDS.iter().find(|(words, _)| lower.contains(words))?;
    // systemd speaks of a unit; then the pid is systemd's own.
    let pid = if line.unit.is_some() { None } else { line.pid.and_then(|p| p.parse().ok()) };
    let unit = line.unit.or(line.own_unit)?;
    Some(Said {
        component: unit.strip_suffix(".service").unwrap_or(&unit).to_owned(),
        pid,
        event: *event,
        boot: line.boot,
        monotonic_us: line.monotonic_us.parse().ok()?,
        line: message,
    })
}

fn write(host: &str, text: &str, clocks: &Clocks, recorder: &Recorder, seen: &mut Seen) {
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for said in text.lines().filter_map(said) {
        if let Some(pid) = said.pid {
            last.insert(said.component.clone(), pid);
        }
        // A process that ended without having said anything has nothing to end.
        let Some(pid) = said.pid.or_else(|| last.get(&said.component).copied()) else { continue };
        let mono = said.monotonic_us.saturating_mul(1000);
        match placed(clocks, host, &said.boot, mono, mono) {
            Err(reason) => seen.miss(reason),
            Ok((at, host_time)) => {
                recorder.record(Entry::Belief(Belief {
                    at,
                    host: host.to_owned(),
                    component: said.component,
                    pid,
                    event: said.event,
                    host_time,
                    line: said.line,
                }));
                seen.lines += 1;
            }
        }
    }
}

/// A host time read as `mono` that was truly somewhere in `[mono, end]`, on the controller's clock.
///
/// # Errors
/// If no clock sample of that boot is there.
pub fn placed(
    clocks: &Clocks,
    host: &str,
    boot: &str,
    mono: u64,
    end: u64,
) -> Result<(At, HostTime), String> {
    let time = HostTime { boot: boot.to_owned(), mono };
    let first = clocks.at(host, &time).map_err(|e| e.to_string())?;
    let last = clocks.at(host, &HostTime { boot: boot.to_owned(), mono: end }).map_err(|e| e.to_string())?;
    Ok((At { lo: first.lo, hi: last.hi }, time))
}

/// The same for a reading of `/proc/uptime`.
///
/// # Errors
/// As [`placed`].
pub fn placed_uptime(clocks: &Clocks, host: &str, boot: &str, mono: u64) -> Result<(At, HostTime), String> {
    placed(clocks, host, boot, mono, mono.saturating_add(RESOLUTION))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as a 1.34.4 control plane under systemd 252 writes them, shortened.
    #[test]
    fn what_components_and_systemd_say() {
        let line =
            |rest: &str| format!(r#"{{"_BOOT_ID":"5110151a","__MONOTONIC_TIMESTAMP":"16803218459",{rest}}}"#);
        let own = |message: &str| {
            line(&format!(r#""_PID":"73","_SYSTEMD_UNIT":"kube-scheduler.service","MESSAGE":"{message}""#))
        };
        let event = |text: &str| said(text).map(|s| (s.event, s.pid, s.component));
        let scheduler = || "kube-scheduler".to_owned();
        assert_eq!(
            event(&own(
                "I1201 leaderelection.go:271] successfully acquired lease kube-system/kube-scheduler"
            )),
            Some((BeliefEvent::Leads, Some(73), scheduler()))
        );
        assert_eq!(
            event(&own("E1201 server.go:1] \\\"Leaderelection lost\\\"")),
            Some((BeliefEvent::Lost, Some(73), scheduler()))
        );
        let exited = line(
            r#""_PID":"1","UNIT":"kube-scheduler.service","_SYSTEMD_UNIT":"init.scope","MESSAGE":"kube-scheduler.service: Main process exited, code=exited, status=1/FAILURE""#,
        );
        assert_eq!(event(&exited), Some((BeliefEvent::Exits, None, scheduler())));
        assert_eq!(event(&own("I1201 nothing of the kind")), None);
        let bytes = line(
            r#""_PID":"73","_SYSTEMD_UNIT":"a.service","MESSAGE":[108,111,115,116,32,109,97,115,116,101,114]"#,
        );
        assert_eq!(event(&bytes), Some((BeliefEvent::Lost, Some(73), "a".to_owned())));
        assert_eq!(said("no json"), None);
    }
}
