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

/// The journals of all control-plane hosts.
#[derive(Debug)]
pub struct Journals {
    hosts: Vec<String>,
    script: Script,
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
    /// For the elected components of an inventory's control plane.
    #[must_use]
    pub fn new(inventory: &Inventory, components: &[String]) -> Self {
        let hosts =
            inventory.hosts().filter(|h| h.has_role("control-plane")).map(|h| h.name.clone()).collect();
        let words: Vec<&str> = WORDS.iter().map(|(w, _)| *w).collect();
        let mut script = String::new();
        for component in components {
            // This boot's, filtered on the host: a control plane that is cut off writes megabytes a minute.
            let _ = writeln!(
                script,
                "journalctl -q --no-pager -b -o json --output-fields=MESSAGE,_PID,_SYSTEMD_UNIT,UNIT \
                 -u {component}.service | grep -iE '{}'",
                words.join("|")
            );
        }
        Self { hosts, script: Script::new(script + ":\n").limit(LIMIT).cap(64 << 20) }
    }

    /// Writes what was said during the run, and who had said before that he leads.
    pub async fn collect(
        self,
        remote: &Arc<dyn Remote>,
        clocks: &Clocks,
        recorder: &Recorder,
    ) -> Vec<(String, Seen)> {
        let mut report = Vec::new();
        for host in &self.hosts {
            let mut seen = Seen::default();
            match remote.run(host, &self.script).await.ok() {
                Err(reason) => seen.miss(reason),
                Ok(text) => write(host, &text, clocks, recorder, &mut seen),
            }
            report.push((format!("journal:{host}"), seen));
        }
        report
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
    let mut lines = Vec::new();
    for said in text.lines().filter_map(said) {
        if let Some(pid) = said.pid {
            last.insert(said.component.clone(), pid);
        }
        // A process that ended without having said anything has nothing to end.
        let Some(pid) = said.pid.or_else(|| last.get(&said.component).copied()) else { continue };
        let mono = said.monotonic_us.saturating_mul(1000);
        match placed(clocks, host, &said.boot, mono, mono) {
            Err(reason) => seen.miss(reason),
            Ok((at, host_time)) => lines.push(Belief {
                at,
                host: host.to_owned(),
                component: said.component,
                pid,
                event: said.event,
                host_time,
                line: said.line,
            }),
        }
    }
    for line in of_the_run(lines) {
        recorder.record(Entry::Belief(line));
        seen.lines += 1;
    }
}

/// Of lines in order: those of the run, and of those before it a "leads" that nothing before it took back.
fn of_the_run(lines: Vec<Belief>) -> Vec<Belief> {
    let mut leads: BTreeMap<String, Belief> = BTreeMap::new();
    let mut during = Vec::new();
    for line in lines {
        if line.at.hi > 0 {
            during.push(line);
            continue;
        }
        match line.event {
            BeliefEvent::Leads => {
                leads.insert(line.component.clone(), line);
            }
            BeliefEvent::Lost | BeliefEvent::Exits | BeliefEvent::Starts | BeliefEvent::Candidate => {
                leads.remove(&line.component);
            }
        }
    }
    leads.into_values().chain(during).collect()
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
    fn who_led_before_the_run_is_known_and_no_more() {
        let line = |hi: u64, pid: u32, event: BeliefEvent| Belief {
            at: At { lo: 0, hi },
            host: "m1".to_owned(),
            component: "kube-scheduler".to_owned(),
            pid,
            event,
            host_time: HostTime { boot: "b".to_owned(), mono: 0 },
            line: String::new(),
        };
        use BeliefEvent::{Candidate, Exits, Leads, Lost};
        let kept = |lines: &[Belief]| -> Vec<(u32, BeliefEvent)> {
            of_the_run(lines.to_vec()).iter().map(|l| (l.pid, l.event)).collect()
        };
        let old = [line(0, 1, Candidate), line(0, 1, Leads), line(0, 1, Lost), line(0, 1, Exits)];
        assert_eq!(kept(&old), []);
        let still = [line(0, 2, Candidate), line(0, 2, Leads), line(9, 2, Lost)];
        assert_eq!(kept(&[&old[..], &still[..]].concat()), [(2, Leads), (2, Lost)]);
    }

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
