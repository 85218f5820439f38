//! Heartbeat files as `workloads/pods/collect.sh` sums them up on a worker.

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{PodSeen, PodSource, PodState};

use super::manifest::{BEATS, Workload};
use crate::host::clock::hundredths;
use crate::observe::journal::placed_uptime;
use crate::observe::plain_boot;

const COLLECT: &str = include_str!("../../../workloads/pods/collect.sh");

/// The script that sums up.
#[must_use]
pub fn collecting() -> String {
    COLLECT.replace("@BEATS@", BEATS)
}

/// One container's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    workload: Workload,
    pod: String,
    uid: String,
    token: String,
    boot: String,
    stretches: Vec<Stretch>,
    /// When it was told to end, ns since boot.
    ended: Option<u64>,
}

/// Beats without a pause of more than a second; ns since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    beats: u64,
    gap: u64,
}

/// Reads what the script printed.
///
/// # Errors
/// If it is not whole.
pub fn read(text: &str) -> Result<Vec<File>, String> {
    let mut files: Vec<File> = Vec::new();
    let mut whole = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let time = |i: usize| words.get(i).and_then(|w| hundredths(w));
        match (words.as_slice(), files.last_mut()) {
            (["none" | "end"], _) => whole = true,
            (["h", workload, pod, uid, token, boot], _) => {
                let Ok(workload) = workload.parse() else { continue };
                files.push(File {
                    workload,
                    pod: (*pod).to_owned(),
                    uid: (*uid).to_owned(),
                    token: (*token).to_owned(),
                    boot: plain_boot(boot),
                    stretches: Vec::new(),
                    ended: None,
                });
            }
            (["s", _, _, beats, _], Some(file)) => {
                let (Some(from), Some(to), Some(gap)) = (time(1), time(2), time(4)) else {
                    return Err(format!("a stretch cannot be read: {line}"));
                };
                let beats = beats.parse().map_err(|e| format!("{line}: {e}"))?;
                file.stretches.push(Stretch { from, to, beats, gap });
            }
            (["x", _], Some(file)) => file.ended = time(1),
            // A file whose first line was cut off by a full disk cannot be told to whom it belongs.
            _ => {}
        }
    }
    if whole { Ok(files) } else { Err("the summary of the heartbeat files is not whole".to_owned()) }
}

impl File {
    /// How many beats it has.
    #[must_use]
    pub fn beats(&self) -> u64 {
        self.stretches.iter().map(|s| s.beats).sum()
    }

    /// Its stretches, and its end, as lines of the history.
    ///
    /// # Errors
    /// If the host's clock was not sampled in that boot.
    pub fn lines(&self, host: &str, node: &str, clocks: &Clocks) -> Result<Vec<PodSeen>, String> {
        let place = |mono: u64| placed_uptime(clocks, host, &self.boot, mono);
        let mut lines = Vec::new();
        for stretch in &self.stretches {
            let (from, host_from) = place(stretch.from)?;
            let (to, host_to) = place(stretch.to)?;
            lines.push(PodSeen {
                from,
                to,
                source: PodSource::Heartbeat,
                node: node.to_owned(),
                via: None,
                owner_kind: self.workload.owner_kind().to_owned(),
                identity: self.workload.identity(&self.pod, node),
                name: self.pod.clone(),
                uid: self.uid.clone(),
                container: Some(self.token.clone()),
                state: PodState::Running,
                beats: stretch.beats,
                gap: stretch.gap,
                host_from: Some(host_from),
                host_to: Some(host_to),
            });
        }
        if let (Some(ended), Some(last)) = (self.ended, lines.last().cloned()) {
            let (at, time) = place(ended)?;
            let (host_from, host_to) = (Some(time.clone()), Some(time));
            let state = PodState::Stopped;
            lines.push(PodSeen { from: at, to: at, state, beats: 0, gap: 0, host_from, host_to, ..last });
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The script itself, on files as the heartbeat writes them.
    fn summed_up(files: &[(&str, String)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let script = COLLECT.replace("@BEATS@", folder.path().to_str().unwrap());
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    const HEAD: &str = "h web web-1 u1 t1 a-b\n";

    #[test]
    fn a_pause_begins_a_new_stretch_and_a_signal_ends_the_file() {
        let beats = "b 10.00 0\nb 10.20 1\nb 10.45 2\nb 12.00 3\nb 12.20 4\nx 12.31\n";
        let text = summed_up(&[("u1.t1", format!("{HEAD}{beats}"))]);
        let files = read(&text).unwrap();
        assert_eq!(files.len(), 1);
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(
            files[0].stretches[0],
            Stretch { from: ms(10_000), to: ms(10_450), beats: 3, gap: ms(250) }
        );
        assert_eq!(
            files[0].stretches[1],
            Stretch { from: ms(12_000), to: ms(12_200), beats: 2, gap: ms(200) }
        );
        assert_eq!((files[0].ended, files[0].boot.as_str()), (Some(ms(12_310)), "ab"));
        assert_eq!(files[0].beats(), 5);
    }

    #[test]
    fn a_line_cut_off_by_a_kill_harms_nothing() {
        let text =
            summed_up(&[("u1.t1", format!("{HEAD}b 10.00 0\nb 10.20 1\nb 1")), ("u2.t2", "h we".to_owned())]);
        let files = read(&text).unwrap();
        assert_eq!((files.len(), files[0].beats()), (1, 2));
        assert_eq!(read(&summed_up(&[])).unwrap(), []);
        assert!(read("file u1.t1\n").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_beat_is_lost_or_invented(gaps in prop::collection::vec(0_u64..300, 1..60)) {
            let mut t = 1000;
            let mut text = HEAD.to_owned();
            for (i, gap) in gaps.iter().enumerate() {
                t += gap;
                text += &format!("b {}.{:02} {i}\n", t / 100, t % 100);
            }
            let files = read(&summed_up(&[("u1.t1", text)])).unwrap();
            prop_assert_eq!(files[0].beats(), gaps.len() as u64);
            let pauses = gaps.iter().skip(1).filter(|g| **g > 100).count();
            prop_assert_eq!(files[0].stretches.len(), pauses + 1);
            let last = files[0].stretches.last().unwrap().to;
            prop_assert_eq!(last, t * 10_000_000);
        }
    }
}
