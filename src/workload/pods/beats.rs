//! What a worker tells of its heartbeat files, and what that means on the controller's clock.
//!
//! # Invariants
//! * A span holds only heartbeats of one boot, none further than [`LONGEST`] from the one before: a longer silence is
//!   no proof of life, so it parts two spans.
//! * A reading of `/proc/uptime` stands for the hundredth of a second that begins with it.
//! * A summary without its last line is none: what was cut off on the way is never taken for the whole.
//!
//! Summed up on the host, not fetched whole, because an hour's heartbeats are megabytes and their ends say it all.

use std::fmt;
use std::str::FromStr;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{At, HostTime, PodSeen, PodSource, PodState};

use super::manifest::{Workload, folder};
use crate::host::clock::RESOLUTION;
use crate::observe::journal::placed_uptime;
use crate::observe::plain_boot;

/// Longest silence within a span, hundredths of a second: five heartbeats.
pub const LONGEST: u64 = 100;

const COLLECT: &str = include_str!("collect.sh");

/// The script that sums up the heartbeats of the run with that token.
#[must_use]
pub fn script(token: &str) -> String {
    format!("dir={}\nlongest={LONGEST}\n{COLLECT}", folder(token))
}

/// All heartbeat files of one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Containers, by file name.
    pub containers: Vec<Container>,
}

/// One container's heartbeat file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The pod's UID.
    pub uid: String,
    /// The pod's name.
    pub name: String,
    /// What it belongs to.
    pub workload: Workload,
    /// A token made when the container started.
    pub token: String,
    /// Spans with signs of life throughout, in order.
    pub spans: Vec<Span>,
    /// When it said that it was told to end.
    pub stopped: Option<Moment>,
    /// Heartbeats that are not in the file, as their numbers tell: the disk was full.
    pub lost: u64,
    /// Lines that are no heartbeats: the machine lost its power while they were written.
    pub torn: u64,
}

/// A span of heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The boot id as the kernel writes it.
    pub boot: String,
    /// First heartbeat, hundredths of a second since boot.
    pub from: u64,
    /// Last heartbeat, hundredths of a second since boot.
    pub to: u64,
    /// How many.
    pub beats: u64,
    /// Longest silence between two of them, hundredths of a second.
    pub gap: u64,
}

/// A moment on the host's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The boot id as the kernel writes it.
    pub boot: String,
    /// Hundredths of a second since boot.
    pub at: u64,
}

/// A summary that is not as the script writes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSummary {
    /// A line is not understood.
    #[error("line {number} of its summary is not understood: `{line}`")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// The line, at most 100 characters of it.
        line: String,
    },
    /// It ends too soon, or speaks of another number of files.
    #[error("its summary is not whole: {told} files were told of, {said}")]
    Torn {
        /// Files that were told of.
        told: usize,
        /// What its last line says.
        said: String,
    },
}

impl FromStr for Summary {
    type Err = BadSummary;

    fn from_str(text: &str) -> Result<Self, BadSummary> {
        let mut containers = Vec::new();
        // Files without a first line are counted by the script and told of by no `container`.
        let mut nameless = 0;
        let mut lines = text.lines().enumerate();
        for (at, line) in lines.by_ref() {
            let bad = || BadSummary::Line { number: at + 1, line: line.chars().take(100).collect() };
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<u64>().map_err(|_| bad());
            if let ["end", files] = words[..] {
                let told = containers.len() + nameless;
                let said = format!("it says {files}");
                return match (number(files)? == told as u64, lines.next()) {
                    (true, None) => Ok(Self { containers }),
                    _ => Err(BadSummary::Torn { told, said }),
                };
            }
            let last = containers.last_mut();
            match (&words[..], last) {
                (["nameless"], _) => nameless += 1,
                (["container", uid, name, workload, token], _) => containers.push(Container {
                    uid: (*uid).to_owned(),
                    name: (*name).to_owned(),
                    workload: workload.parse().map_err(|_| bad())?,
                    token: (*token).to_owned(),
                    spans: Vec::new(),
                    stopped: None,
                    lost: 0,
                    torn: 0,
                }),
                (["span", boot, from, to, beats, gap], Some(last)) => last.spans.push(Span {
                    boot: (*boot).to_owned(),
                    from: number(from)?,
                    to: number(to)?,
                    beats: number(beats)?,
                    gap: number(gap)?,
                }),
                (["stopped", boot, time], Some(last)) => {
                    last.stopped = Some(Moment { boot: (*boot).to_owned(), at: number(time)? });
                }
                (["lost", count], Some(last)) => last.lost = number(count)?,
                (["torn", count], Some(last)) => last.torn = number(count)?,
                _ => return Err(bad()),
            }
        }
        Err(BadSummary::Torn {
            told: containers.len() + nameless,
            said: "its last line did not come".to_owned(),
        })
    }
}

impl fmt::Display for Summary {
    /// As the script writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for container in &self.containers {
            let Container { uid, name, workload, token, .. } = container;
            writeln!(f, "container {uid} {name} {workload} {token}")?;
            for Span { boot, from, to, beats, gap } in &container.spans {
                writeln!(f, "span {boot} {from} {to} {beats} {gap}")?;
            }
            if let Some(Moment { boot, at }) = &container.stopped {
                writeln!(f, "stopped {boot} {at}")?;
            }
            for (word, count) in [("lost", container.lost), ("torn", container.torn)] {
                if count > 0 {
                    writeln!(f, "{word} {count}")?;
                }
            }
        }
        writeln!(f, "end {}", self.containers.len())
    }
}

/// The history's lines for a container of `host`, which is the node `node`.
///
/// # Errors
/// If the host's clock cannot be placed on the controller's.
pub fn lines(container: &Container, host: &str, node: &str, clocks: &Clocks) -> Result<Vec<PodSeen>, String> {
    let mut lines = Vec::new();
    let line = |state, from: (At, HostTime), to: (At, HostTime), beats, gap| PodSeen {
        from: from.0,
        to: to.0,
        source: PodSource::Heartbeat,
        node: node.to_owned(),
        via: None,
        owner_kind: container.workload.owner_kind().to_owned(),
        identity: container.workload.identity(&container.name, node),
        name: container.name.clone(),
        uid: container.uid.clone(),
        container: Some(container.token.clone()),
        state,
        beats,
        gap,
        host_from: Some(from.1),
        host_to: Some(to.1),
    };
    for span in &container.spans {
        let from = placed(clocks, host, &span.boot, span.from)?;
        let to = placed(clocks, host, &span.boot, span.to)?;
        lines.push(line(PodState::Running, from, to, span.beats, span.gap.saturating_mul(RESOLUTION)));
    }
    if let Some(stopped) = &container.stopped {
        let at = placed(clocks, host, &stopped.boot, stopped.at)?;
        lines.push(line(PodState::Stopped, at.clone(), at, 0, 0));
    }
    Ok(lines)
}

/// A reading of the host's clock on the controller's: from its earliest moment to its latest.
fn placed(clocks: &Clocks, host: &str, boot: &str, hundredths: u64) -> Result<(At, HostTime), String> {
    placed_uptime(clocks, host, &plain_boot(boot), hundredths.saturating_mul(RESOLUTION))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;
    use rackrift_checkers::clock::Drift;
    use rackrift_checkers::history::ClockSample;

    use super::*;

    const BOOT: &str = "5b5a2d0e-8f0a-4c39-9f2c-0d4c0a1b2c3d";

    /// Runs the collecting script over these files, as a worker does.
    fn summed(files: &[(&str, String)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let script = script("t").replace(&folder("t"), dir.path().to_str().unwrap());
        let out = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn up(hundredths: u64) -> String {
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }

    fn begin(uid: &str) -> String {
        format!("begin {uid} web-1 web tok\n")
    }

    #[test]
    fn a_pause_a_stop_a_lost_and_a_torn_line() {
        let mut text = begin("u1");
        for (seq, at) in [(0, 1000), (1, 1020), (2, 1041), (4, 1300), (5, 1321)] {
            text += &format!("beat u1 {seq} {BOOT} {}\n", up(at));
        }
        text += &format!("stopped u1 6 {BOOT} 13.40\nbeat u1 7 {BOOT} 13.6");
        let empty = String::new();
        insta::assert_snapshot!(summed(&[("a", text), ("b", empty)]));
        assert_eq!(summed(&[]), "end 0\n");
    }

    #[test]
    fn a_long_uptime_is_not_cut_to_31_bits() {
        // 300 days are over 2^31 hundredths of a second.
        let text = format!("{}beat u1 0 {BOOT} 25920000.00\nbeat u1 1 {BOOT} 25920000.20\n", begin("u1"));
        let told: Summary = summed(&[("a", text)]).parse().unwrap();
        let span = Span { boot: BOOT.into(), from: 2_592_000_000, to: 2_592_000_020, beats: 2, gap: 20 };
        assert_eq!(told.containers[0].spans, [span]);
    }

    #[test]
    fn a_summary_that_is_cut_off_is_refused() {
        let whole = format!("container u web-1 web t\nspan {BOOT} 1 2 2 1\nend 1\n");
        assert!(whole.parse::<Summary>().is_ok());
        let errors: Vec<String> =
            [&whole[..24], "end 1\n", "span b 1 2 3 4\nend 0\n", "container u p nginx t\nend 1\n"]
                .iter()
                .map(|text| text.parse::<Summary>().unwrap_err().to_string())
                .collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    fn clocks() -> Clocks {
        let sample = |sent, mono| ClockSample {
            host: "w1".into(),
            sent,
            received: sent + 2_000_000,
            host_time: HostTime { boot: BOOT.replace('-', ""), mono },
            resolution: RESOLUTION,
            wall: None,
        };
        // The host's clock is 100 s ahead of the controller's.
        Clocks::from_samples(
            &[sample(1_000_000_000, 101_000_000_000), sample(61_000_000_000, 161_000_000_000)],
            Drift::ppm(500),
        )
    }

    fn container(spans: Vec<Span>, stopped: Option<Moment>) -> Container {
        Container {
            uid: "u1".into(),
            name: "db-0".into(),
            workload: Workload::Db,
            token: "tok".into(),
            spans,
            stopped,
            lost: 0,
            torn: 0,
        }
    }

    #[test]
    fn a_span_on_the_controllers_clock() {
        let span = Span { boot: BOOT.into(), from: 10_200, to: 11_000, beats: 41, gap: 23 };
        let stopped = Some(Moment { boot: BOOT.into(), at: 11_000 });
        let lines = lines(&container(vec![span], stopped), "w1", "node-1", &clocks()).unwrap();
        assert_eq!(lines.len(), 2);
        let ran = &lines[0];
        assert!(ran.from.lo <= 2_000_000_000 && ran.from.hi >= 2_010_000_000, "{:?}", ran.from);
        assert!(ran.from.hi - ran.from.lo < 40_000_000, "{:?}", ran.from);
        assert_eq!((ran.identity.as_str(), ran.node.as_str(), ran.beats), ("rackrift/db-0", "node-1", 41));
        assert_eq!((ran.gap, ran.state), (230_000_000, PodState::Running));
        assert_eq!((lines[1].state, lines[1].from), (PodState::Stopped, ran.to));
    }

    #[test]
    fn a_boot_that_no_clock_sample_knows_is_told() {
        let span = Span { boot: "other".into(), from: 1, to: 2, beats: 2, gap: 1 };
        let error = lines(&container(vec![span], None), "w1", "w1", &clocks()).unwrap_err();
        assert!(error.contains("w1") && error.contains("other"), "{error}");
    }

    fn spans() -> impl Strategy<Value = Vec<Span>> {
        let span = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(from, to, beats, gap)| Span { boot: BOOT.into(), from, to, beats, gap });
        proptest::collection::vec(span, 0..4)
    }

    fn containers() -> impl Strategy<Value = Container> {
        let moment = any::<u64>().prop_map(|at| Moment { boot: BOOT.into(), at });
        let of = proptest::sample::select(&Workload::ALL[..]);
        ("[a-f0-9-]{1,36}", "[a-z0-9-]{1,20}", of, spans(), proptest::option::of(moment), 0..9_u64, 0..9_u64)
            .prop_map(|(uid, name, workload, spans, stopped, lost, torn)| Container {
                token: format!("t-{uid}"),
                uid,
                name,
                workload,
                spans,
                stopped,
                lost,
                torn,
            })
    }

    /// The spans that these beats (sequence number is the position, times in order) make.
    fn model(times: &[u64]) -> Vec<(u64, u64, u64, u64)> {
        let mut spans: Vec<(u64, u64, u64, u64)> = Vec::new();
        for &at in times {
            match spans.last_mut() {
                Some((_, to, beats, gap)) if at - *to <= LONGEST => {
                    *gap = (*gap).max(at - *to);
                    *to = at;
                    *beats += 1;
                }
                _ => spans.push((at, at, 1, 0)),
            }
        }
        spans
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(containers in proptest::collection::vec(containers(), 0..4)) {
            let summary = Summary { containers };
            prop_assert_eq!(summary.to_string().parse(), Ok(summary));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Summary>();
        }
    }

    proptest! {
        // Each case starts a shell and an awk.
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_script_finds_the_spans_that_the_beats_make(
            start in 0..4_000_000_000_u64,
            steps in proptest::collection::vec(prop_oneof![0..40_u64, 90..110_u64, 100..5000_u64], 0..60),
        ) {
            let mut times = vec![start];
            for step in steps {
                times.push(times[times.len() - 1] + step);
            }
            let beats = times.iter().enumerate().map(|(seq, &at)| format!("beat u1 {seq} {BOOT} {}\n", up(at)));
            let told: Summary = summed(&[("a", begin("u1") + &beats.collect::<String>())]).parse().unwrap();
            let found: Vec<_> =
                told.containers[0].spans.iter().map(|s| (s.from, s.to, s.beats, s.gap)).collect();
            prop_assert_eq!(found, model(&times));
            prop_assert_eq!((told.containers[0].lost, told.containers[0].torn), (0, 0));
        }
    }
}
