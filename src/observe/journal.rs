//! What elected components say of their own leadership, from their hosts' journals, read once at the end of a run.
//!
//! The journal is append-only, survives a cut, and stamps each line with the host's monotonic clock and boot.
//!
//! # Invariants
//! * An end is laid to the process that ended: systemd names the unit's invocation, which its process names too.
//! * Of what was said before the run only that counts which still holds when it begins.
//! * Lines that the journal dropped, and components that it does not know, are told in the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{At, Belief, BeliefEvent, Entry, HostTime};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::Seen;
use crate::host::clock::RESOLUTION;
use crate::host::remote::{Outcome, Remote, Script};
use crate::inventory::Inventory;
use crate::run::recorder::Recorder;

/// The journals of all control-plane hosts.
#[derive(Debug)]
pub struct Journals {
    hosts: Vec<String>,
    components: Vec<String>,
    script: Script,
}

/// How long reading one journal may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a journal is asked for: reading it changes nothing, so a lost answer may be asked for again.
const TRIES: usize = 3;

/// systemd's id of "a unit was started", the same in every version and language (`systemd/sd-messages.h`).
const STARTED: &str = "39f53479d3a045ac8e11786248231fbf";

/// What journald says if a unit wrote more than it may.
const DROPPED: &str = "suppressed ";

/// Words of a log line that say something of leadership, in lower case; the stable stems of client-go's and the
/// components' messages from 1.19 to 1.36.
const WORDS: [(&str, BeliefEvent); 7] = [
    ("attempting to acquire leader lease", BeliefEvent::Candidate),
    ("successfully acquired lease", BeliefEvent::Leads),
    ("failed to renew lease", BeliefEvent::Lost),
    ("leaderelection lost", BeliefEvent::Lost),
    ("lost master", BeliefEvent::Lost),
    // systemd's words for an end of either kind.
    ("main process exited", BeliefEvent::Exits),
    ("deactivated successfully", BeliefEvent::Exits),
];

impl Journals {
    /// For the elected components of an inventory's control plane.
    #[must_use]
    pub fn new(inventory: &Inventory, components: &[String]) -> Self {
        let hosts =
            inventory.hosts().filter(|h| h.has_role("control-plane")).map(|h| h.name.clone()).collect();
        Self { hosts, components: components.to_vec(), script: script(components) }
    }

    /// Writes what was said during the run, and who had said before that he leads; from all hosts at once.
    pub async fn collect(
        self,
        remote: &Arc<dyn Remote>,
        clocks: &Clocks,
        recorder: &Recorder,
        end: Instant,
    ) -> Vec<(String, Seen)> {
        let mut reading = JoinSet::new();
        for (place, host) in self.hosts.iter().cloned().enumerate() {
            let (remote, script) = (Arc::clone(remote), self.script.clone());
            reading.spawn(async move { (place, read(remote.as_ref(), &host, &script, end).await) });
        }
        let mut texts = BTreeMap::new();
        while let Some(Ok((place, text))) = reading.join_next().await {
            texts.insert(place, text);
        }
        let mut report = Vec::new();
        for (place, host) in self.hosts.iter().enumerate() {
            let seen = match texts.remove(&place) {
                Some(Ok(text)) => write(host, &text, &self.components, clocks, recorder),
                Some(Err(reason)) => Seen::nothing(reason),
                None => Seen::nothing("it could not be read"),
            };
            report.push((format!("journal:{host}"), seen));
        }
        report
    }
}

/// Filtered on the host: a control plane that is cut off writes megabytes a minute.
fn script(components: &[String]) -> Script {
    let mut words: Vec<&str> = WORDS.iter().map(|(w, _)| *w).collect();
    words.push(STARTED);
    let words = words.join("|");
    let fields = "MESSAGE,MESSAGE_ID,_PID,_SYSTEMD_UNIT,UNIT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID";
    let mut script = format!("ask='journalctl -q --no-pager -b -o json --output-fields={fields}'\n");
    for component in components {
        let _ = writeln!(script, "$ask -u {component}.service | grep -iE '{words}'");
    }
    let _ = writeln!(script, "$ask -t systemd-journald | grep -iF '{DROPPED}'");
    // What `grep` did not find is no failure; that there is no journal is.
    script.push_str("journalctl -q -b -n 1 >/dev/null\n");
    Script::new(script).limit(LIMIT).cap(64 << 20)
}

/// Asks again if an answer was lost.
async fn read(remote: &dyn Remote, host: &str, script: &Script, end: Instant) -> Result<String, String> {
    let mut why = "there was no time left to read it".to_owned();
    for _ in 0..TRIES {
        let Ok(outcome) = timeout_at(end, remote.run(host, script)).await else { break };
        match outcome {
            Outcome::Done(done) if done.status == 0 && done.truncated => {
                return Err("it says more than can be read".to_owned());
            }
            lost @ (Outcome::Lost { .. } | Outcome::TimedOut { .. } | Outcome::Refused { .. }) => {
                why = lost.to_string();
            }
            other => return other.ok(),
        }
    }
    Err(why)
}

/// A line of `journalctl -o json`.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "MESSAGE")]
    message: Message,
    #[serde(rename = "MESSAGE_ID")]
    message_id: Option<String>,
    #[serde(rename = "_PID")]
    pid: Option<String>,
    #[serde(rename = "UNIT")]
    unit: Option<String>,
    #[serde(rename = "_SYSTEMD_UNIT")]
    own_unit: Option<String>,
    #[serde(rename = "INVOCATION_ID")]
    invocation: Option<String>,
    #[serde(rename = "_SYSTEMD_INVOCATION_ID")]
    own_invocation: Option<String>,
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
    /// Of the process that speaks; systemd speaks of a unit.
    pid: Option<u32>,
    /// The unit's invocation, if this systemd names it.
    invocation: Option<String>,
    event: BeliefEvent,
    boot: String,
    monotonic_us: u64,
    line: String,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Said(Said),
    /// The journal dropped lines of a unit.
    Dropped {
        monotonic_us: u64,
        boot: String,
        line: String,
    },
}

fn told(line: &str) -> Told {
    let Ok(line) = serde_json::from_str::<Line>(line) else { return Told::Nothing };
    let Ok(monotonic_us) = line.monotonic_us.parse() else { return Told::Nothing };
    let message = match line.message {
        Message::Text(text) => text,
        Message::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let lower = message.to_lowercase();
    // No component begins a line so: theirs begin with a level and a time.
    if lower.starts_with(DROPPED) {
        return Told::Dropped { monotonic_us, boot: line.boot, line: message };
    }
    let event = if line.unit.is_some() && line.message_id.as_deref() == Some(STARTED) {
        BeliefEvent::Starts
    } else if let Some((_, event)) = WORDS.iter().find(|(words, _)| lower.contains(words)) {
        *event
    } else {
        return Told::Nothing;
    };
    // systemd speaks of a unit; then the pid is systemd's own.
    let (pid, invocation) = if line.unit.is_some() {
        (None, line.invocation)
    } else {
        (line.pid.and_then(|p| p.parse().ok()), line.own_invocation)
    };
    let Some(unit) = line.unit.or(line.own_unit) else { return Told::Nothing };
    let component = unit.strip_suffix(".service").unwrap_or(&unit).to_owned();
    Told::Said(Said { component, pid, invocation, event, boot: line.boot, monotonic_us, line: message })
}

fn write(host: &str, text: &str, components: &[String], clocks: &Clocks, recorder: &Recorder) -> Seen {
    let mut seen = Seen::default();
    let (mut all, mut dropped) = (Vec::new(), Vec::new());
    for told in text.lines().map(told) {
        match told {
            Told::Nothing => {}
            Told::Said(said) => all.push(said),
            Told::Dropped { monotonic_us, boot, line } => dropped.push((monotonic_us, boot, line)),
        }
    }
    let place = |us: u64, boot: &str| {
        let mono = us.saturating_mul(1000);
        placed(clocks, host, boot, mono, mono)
    };
    let mut lines = Vec::new();
    for (said, pid) in with_pids(all) {
        match place(said.monotonic_us, &said.boot) {
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
    for (us, boot, line) in dropped {
        if !components.iter().any(|c| line.contains(c.as_str())) {
            continue;
        }
        if place(us, &boot).is_ok_and(|(at, _)| at.hi > 0) {
            seen.miss(format!("the journal dropped lines: {line}"));
        }
    }
    let spoke: BTreeSet<&str> = lines.iter().map(|l| l.component.as_str()).collect();
    for silent in components.iter().filter(|c| !spoke.contains(c.as_str())) {
        seen.miss(format!("the journal has no word of {silent}; is it a unit of that name?"));
    }
    for line in of_the_run(lines) {
        recorder.record(Entry::Belief(line));
        seen.lines += 1;
    }
    seen
}

/// Gives each line its process; drops what is said of processes that never said anything of leadership.
fn with_pids(all: Vec<Said>) -> Vec<(Said, u32)> {
    let by_invocation: BTreeMap<String, u32> =
        all.iter().filter_map(|s| Some((s.invocation.clone()?, s.pid?))).collect();
    // Without invocations, by order: the process that spoke last is the one that ends, once.
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    let mut known = Vec::new();
    for said in all {
        if let Some(pid) = said.pid {
            last.insert(said.component.clone(), pid);
        }
        let pid = match (&said.invocation, said.pid) {
            (_, Some(pid)) => Some(pid),
            (Some(invocation), None) => by_invocation.get(invocation).copied(),
            (None, None) if said.event == BeliefEvent::Exits => last.remove(&said.component),
            (None, None) => None,
        };
        known.extend(pid.map(|pid| (said, pid)));
    }
    known
}

/// Of lines in order: those of the run, and of those before it each process's last word, unless it had lost or ended.
fn of_the_run(lines: Vec<Belief>) -> Vec<Belief> {
    let mut still: BTreeMap<String, Belief> = BTreeMap::new();
    let mut during = Vec::new();
    for line in lines {
        if line.at.hi > 0 {
            during.push(line);
            continue;
        }
        match line.event {
            BeliefEvent::Leads | BeliefEvent::Candidate | BeliefEvent::Starts => {
                still.insert(line.component.clone(), line);
            }
            BeliefEvent::Lost | BeliefEvent::Exits => {
                still.remove(&line.component);
            }
        }
    }
    still.into_values().chain(during).collect()
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
    use crate::host::remote::Finished;
    use crate::observe::theatre::{Theatre, entries, recorder};
    use proptest::prelude::*;
    use rackrift_checkers::clock::Drift;
    use rackrift_checkers::history::ClockSample;

    /// The journal of a real m1 (Kubernetes 1.34.4, systemd 252): both components lead, are cut off, exit, are
    /// started again and try.
    const SAMPLE: &str = include_str!("samples/journal.jsonl");

    /// The sample's boot, and its first and last moments, us.
    const BOOT: &str = "7f0263f0bdc5439c9d23e6c30ce217a9";
    const FIRST: u64 = 19_243_308_189;
    const LAST: u64 = 19_409_141_947;

    fn components() -> Vec<String> {
        ["kube-controller-manager", "kube-scheduler"].map(str::to_owned).to_vec()
    }

    /// Clocks of a run whose origin was at that moment of m1's clock.
    fn clocks(origin_us: u64) -> Clocks {
        let sample = |us: u64| ClockSample {
            host: "m1".to_owned(),
            sent: (us - origin_us) * 1000,
            received: (us - origin_us) * 1000 + 1,
            host_time: HostTime { boot: BOOT.to_owned(), mono: us * 1000 },
            resolution: 1,
            wall: None,
        };
        Clocks::from_samples([&sample(origin_us), &sample(LAST + 1)], Drift::ppm(0))
    }

    fn beliefs(origin_us: u64, text: &str) -> (Vec<(String, u32, BeliefEvent, u64)>, Seen) {
        let (recorder, path, _dir) = recorder();
        let seen = write("m1", text, &components(), &clocks(origin_us), &recorder);
        let all = entries(&path).into_iter().map(|e| {
            let Entry::Belief(b) = e else { panic!("{e:?}") };
            (b.component, b.pid, b.event, b.at.lo / 1_000_000)
        });
        (all.collect(), seen)
    }

    #[test]
    fn a_real_journal_from_start_to_the_next_candidate() {
        use BeliefEvent::{Candidate, Exits, Leads, Lost, Starts};
        let (all, seen) = beliefs(FIRST - 1, SAMPLE);
        let of = |component: &str| -> Vec<(u32, BeliefEvent, u64)> {
            all.iter().filter(|b| b.0 == component).map(|b| (b.1, b.2, b.3)).collect()
        };
        assert_eq!(
            of("kube-controller-manager"),
            [
                (72, Starts, 0),
                (72, Candidate, 745),
                (72, Leads, 3_730),
                (72, Lost, 56_166),
                (72, Lost, 56_167),
                (72, Exits, 56_701),
                (857, Starts, 58_930),
                (857, Candidate, 59_194),
            ]
        );
        assert_eq!(
            of("kube-scheduler"),
            [
                (73, Starts, 1),
                (73, Candidate, 4_655),
                (73, Leads, 4_662),
                (73, Lost, 55_049),
                (73, Lost, 60_051),
                (73, Exits, 60_069),
                (886, Starts, 62_166),
                (886, Candidate, 165_833),
            ]
        );
        assert_eq!(seen, Seen { lines: 16, ..Seen::default() });
    }

    #[test]
    fn of_what_was_said_before_the_run_only_that_counts_which_still_holds() {
        use BeliefEvent::{Candidate, Exits, Leads, Lost};
        // The run begins while both lead.
        let (all, _) = beliefs(19_250_000_000, SAMPLE);
        let first: Vec<(u32, BeliefEvent, u64)> = all[..2].iter().map(|b| (b.1, b.2, b.3)).collect();
        assert_eq!(first, [(72, Leads, 0), (73, Leads, 0)]);
        // It begins after both had lost it: the next processes try, and nobody is said to lead.
        let (all, _) = beliefs(19_306_000_000, SAMPLE);
        assert!(all.iter().all(|b| !matches!(b.2, Leads | Lost | Exits)), "{all:?}");
        assert!(all.contains(&("kube-controller-manager".to_owned(), 857, Candidate, 0)), "{all:?}");
    }

    #[test]
    fn an_end_is_laid_to_the_process_that_ended() {
        let line = |rest: &str| format!(r#"{{"_BOOT_ID":"{BOOT}","__MONOTONIC_TIMESTAMP":"{LAST}",{rest}}}"#);
        let own = |pid: u32, invocation: &str| {
            line(&format!(
                r#""_PID":"{pid}","_SYSTEMD_UNIT":"kube-scheduler.service",{invocation}"MESSAGE":"successfully acquired lease kube-system/kube-scheduler""#
            ))
        };
        let end = |invocation: &str, how: &str| {
            line(&format!(
                r#""_PID":"1","UNIT":"kube-scheduler.service",{invocation}"_SYSTEMD_UNIT":"init.scope","MESSAGE":"kube-scheduler.service: {how}""#
            ))
        };
        let (mine, other) = (r#""_SYSTEMD_INVOCATION_ID":"i1","#, r#""INVOCATION_ID":"i2","#);
        let pids = |text: &[String]| -> Vec<(u32, BeliefEvent)> {
            beliefs(FIRST, &text.join("\n")).0.into_iter().map(|b| (b.1, b.2)).collect()
        };
        use BeliefEvent::{Exits, Leads};
        let killed = "Main process exited, code=killed, status=9/KILL";
        // A process that ended before it said anything is not the one that leads.
        assert_eq!(pids(&[own(7, mine), end(other, killed)]), [(7, Leads)]);
        let same = r#""INVOCATION_ID":"i1","#;
        assert_eq!(pids(&[own(7, mine), end(same, "Deactivated successfully.")]), [(7, Leads), (7, Exits)]);
        // An older systemd names no invocation: then the last that spoke ended, and only once.
        assert_eq!(pids(&[own(7, ""), end("", killed), end("", killed)]), [(7, Leads), (7, Exits)]);
    }

    #[test]
    fn what_the_journal_lacks_is_told() {
        let (_, seen) = beliefs(FIRST, "");
        assert_eq!(seen.missed, 2);
        assert!(seen.reason.unwrap().contains("no word of kube-scheduler"));
        let dropped = format!(
            r#"{{"_BOOT_ID":"{BOOT}","__MONOTONIC_TIMESTAMP":"{LAST}","_SYSTEMD_UNIT":"systemd-journald.service","MESSAGE":"Suppressed 17898 messages from kube-scheduler.service"}}"#
        );
        let other = dropped.replace("kube-scheduler", "kubelet");
        let (_, seen) = beliefs(FIRST, &format!("{SAMPLE}{dropped}\n{other}\n"));
        assert_eq!(
            (seen.missed, seen.reason.as_deref()),
            (1, Some("the journal dropped lines: Suppressed 17898 messages from kube-scheduler.service"))
        );
        // A boot whose clock nobody read has no place on the controller's clock.
        let (all, seen) = beliefs(FIRST, &SAMPLE.replace(BOOT, "00"));
        assert_eq!((all.len(), seen.missed), (0, 18));
    }

    #[test]
    fn words_of_other_versions_and_forms() {
        let event = |unit: &str, message: &str| {
            let line = format!(
                r#"{{"_BOOT_ID":"b","__MONOTONIC_TIMESTAMP":"5","_PID":"73","_SYSTEMD_UNIT":"{unit}","MESSAGE":{message}}}"#
            );
            match told(&line) {
                Told::Said(said) => Some((said.event, said.pid, said.component)),
                Told::Nothing | Told::Dropped { .. } => None,
            }
        };
        let said = |e: BeliefEvent| Some((e, Some(73), "a".to_owned()));
        let structured = r#""I1201 04:09:38.752567 73 leaderelection.go:258] \"Successfully acquired lease\" lock=\"kube-system/kube-scheduler\"""#;
        assert_eq!(event("a.service", structured), said(BeliefEvent::Leads));
        let old = r#""attempting to acquire leader lease  kube-system/kube-scheduler...""#;
        assert_eq!(event("a.service", old), said(BeliefEvent::Candidate));
        let bytes = "[108,111,115,116,32,109,97,115,116,101,114]";
        assert_eq!(event("a.service", bytes), said(BeliefEvent::Lost));
        assert_eq!(event("a.service", r#""I1201 nothing of the kind""#), None);
        assert_eq!(told("no json"), Told::Nothing);
    }

    #[test]
    fn the_script_as_it_is_sent() {
        insta::assert_snapshot!(script(&components()).body);
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_for_again_and_a_failure_is_not() {
        let end = Instant::now() + LIMIT;
        let done = |status, stderr: &str| {
            Outcome::Done(Finished { status, stdout: "x".into(), stderr: stderr.into(), truncated: false })
        };
        let lost = || Outcome::Lost { reason: "connection reset".to_owned() };
        let script = script(&components());
        let theatre = Theatre::answering(vec![lost(), done(0, "")]);
        assert_eq!(read(theatre.as_ref(), "m1", &script, end).await, Ok("x".to_owned()));
        let theatre = Theatre::answering(vec![lost(), lost(), lost(), done(0, "")]);
        assert!(read(theatre.as_ref(), "m1", &script, end).await.unwrap_err().contains("connection reset"));
        let theatre = Theatre::answering(vec![done(127, "journalctl: not found"), done(0, "")]);
        assert!(read(theatre.as_ref(), "m1", &script, end).await.unwrap_err().contains("not found"));
        assert_eq!(theatre.asked().len(), 1);
    }

    proptest! {
        #[test]
        fn no_line_panics(line: String) {
            let _ = told(&line);
        }
    }
}
