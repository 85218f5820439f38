//! What a worker's container runtime says: which containers of our pods run, asked once a second on the host.
//!
//! Containerd by `ctr`, whose tasks are processes; an API server may be wrong about a node that it cannot hear.
//!
//! # Invariants
//! * Only a whole round says that a container no longer runs: what was lost on the way is no end.
//! * Between its first and its last round a container ran throughout: its id names one task, which never starts again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{At, Entry, PodSeen, PodSource, PodState};
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::journal::placed_uptime;
use super::{Seen, Sight, plain_boot};
use crate::host::clock::hundredths;
use crate::host::remote::{Remote, Script};
use crate::run::recorder::Recorder;
use crate::workload::namespace::NAMESPACE;
use crate::workload::pods::manifest::Workload;

/// A stream lives as long as the run; the limit only ends what a lost controller left.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// After a broken stream, before the next.
const AGAIN: Duration = Duration::from_secs(1);

/// A stream without a round for so long hangs, on the host or on its way.
const SILENCE: Duration = Duration::from_secs(15);

/// A round: `round UPTIME BOOT`, `info JSON` of each container not told of before, `runs ID` of each that runs,
/// `end UPTIME`; or `failed WORDS`. k3s has a containerd of its own beside which there may be none.
const SCRIPT: &str = r#"for socket in /run/k3s/containerd/containerd.sock /run/containerd/containerd.sock; do
    [ -S "$socket" ] && break
done
ask() { ctr -a "$socket" -n k8s.io "$@"; }
known=' '
while :; do
    read -r up _ </proc/uptime
    read -r boot </proc/sys/kernel/random/boot_id
    tasks=$(ask tasks ls 2>&1) || { printf 'failed %s\n' "$(printf '%s' "$tasks" | tail -n 1)"; sleep 1; continue; }
    echo "round $up $boot"
    for id in $(printf '%s\n' "$tasks" | awk '$3 == "RUNNING" { print $1 }'); do
        case $known in
        *" $id "*) ;;
        *)
            info=$(ask containers info "$id") || continue
            printf 'info %s\n' "$(printf '%s' "$info" | tr -d '\n')"
            known="$known$id "
            ;;
        esac
        echo "runs $id"
    done
    read -r up _ </proc/uptime
    echo "end $up"
    sleep 1
done
"#;

/// Watches one worker.
#[derive(Debug)]
pub struct Watcher {
    host: String,
    task: JoinHandle<(Tale, Seen)>,
}

impl Watcher {
    /// Starts watching.
    #[must_use]
    pub fn start(
        remote: &Arc<dyn Remote>,
        host: &str,
        recorder: &Recorder,
        stop: &CancellationToken,
    ) -> Self {
        let (remote, recorder, stop) = (Arc::clone(remote), recorder.clone(), stop.clone());
        let name = host.to_owned();
        let task = tokio::spawn(async move {
            let (mut tale, mut sight) =
                (Tale::default(), Sight::new(format!("containers of {name}"), &recorder));
            tokio::select! {
                () = stop.cancelled() => {}
                () = watch(remote.as_ref(), &name, &mut tale, &mut sight, SILENCE) => {}
            }
            (tale, sight.end())
        });
        Self { host: host.to_owned(), task }
    }

    /// The worker.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Writes what was seen; the stop that the watcher was started with must be cancelled.
    pub async fn finish(mut self, clocks: &Clocks, recorder: &Recorder, end: Instant) -> Seen {
        let Ok(Ok((tale, mut seen))) = timeout_at(end, &mut self.task).await else {
            self.task.abort();
            return Seen::nothing("it did not end in time");
        };
        for told in tale.told() {
            match told.lines(&self.host, clocks) {
                Ok(lines) => {
                    seen.lines += lines.len() as u64;
                    lines.into_iter().for_each(|line| recorder.record(Entry::Pod(line)));
                }
                Err(reason) => seen.miss(reason),
            }
        }
        seen
    }
}

/// Listens for ever; a stream that broke, or is silent for longer than `silence`, is begun anew.
async fn watch(remote: &dyn Remote, host: &str, tale: &mut Tale, sight: &mut Sight, silence: Duration) {
    let script = Script::new(SCRIPT).limit(LONGEST).cap(1 << 20);
    loop {
        match remote.stream(host, &script).await {
            Err(reason) => sight.miss(reason),
            Ok(mut lines) => loop {
                match timeout(silence, lines.recv()).await {
                    Ok(Some(line)) => match tale.hear(&line) {
                        Heard::Part => {}
                        Heard::Round => sight.sees(),
                        Heard::Failed(reason) => sight.miss(reason),
                    },
                    Ok(None) => {
                        sight.miss("the stream ended");
                        break;
                    }
                    Err(_) => {
                        sight.miss(format!("no word for {} s", silence.as_secs()));
                        break;
                    }
                }
            },
        }
        sleep(AGAIN).await;
    }
}

/// What a worker told, round by round.
#[derive(Debug, Default)]
struct Tale {
    round: Round,
    running: BTreeSet<String>,
    containers: BTreeMap<String, Told>,
}

/// One look at all containers: somewhere between `begin` and `end`, ns since that boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Round {
    boot: String,
    begin: u64,
    end: u64,
}

/// What a line was.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// A part of a round.
    Part,
    /// The end of a round.
    Round,
    /// The runtime gave no answer.
    Failed(String),
}

/// One container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    workload: Workload,
    id: String,
    name: String,
    uid: String,
    /// First and last round in which it ran.
    ran: Option<(Round, Round)>,
    /// The first round in which it no longer ran.
    gone: Option<Round>,
}

/// `ctr containers info`, of which only labels are read.
#[derive(Deserialize)]
struct Info {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

impl Tale {
    fn hear(&mut self, line: &str) -> Heard {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let time = |text: &str| hundredths(text.trim());
        match word {
            "round" => {
                let (up, boot) = rest.split_once(' ').unwrap_or((rest, ""));
                self.running.clear();
                self.round = Round::default();
                if let Some(begin) = time(up) {
                    self.round = Round { boot: plain_boot(boot.trim()), begin, end: begin };
                }
            }
            "info" => self.meet(rest),
            "runs" => {
                self.running.insert(rest.trim().to_owned());
            }
            "end" => {
                // A round of which an end is missing, or whose beginning nobody heard, says nothing.
                if let (Some(end), false) = (time(rest), self.round.boot.is_empty()) {
                    self.round.end = end;
                    self.end();
                    return Heard::Round;
                }
            }
            "failed" => return Heard::Failed(rest.trim().to_owned()),
            _ => {}
        }
        Heard::Part
    }

    fn meet(&mut self, json: &str) {
        let Ok(info) = serde_json::from_str::<Info>(json) else { return };
        let labels = info.labels.unwrap_or_default();
        let label = |name: &str| labels.get(&format!("io.kubernetes.{name}")).map(String::as_str);
        if label("pod.namespace") != Some(NAMESPACE) {
            return;
        }
        // The sandbox has no container name, and is none of ours.
        let workload = label("container.name").and_then(|n| n.parse().ok());
        let (Some(workload), Some(name), Some(uid)) = (workload, label("pod.name"), label("pod.uid")) else {
            return;
        };
        let told = Told {
            workload,
            id: info.id.clone(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ran: None,
            gone: None,
        };
        self.containers.entry(info.id).or_insert(told);
    }

    fn end(&mut self) {
        for (id, told) in &mut self.containers {
            let runs = self.running.contains(id);
            match &mut told.ran {
                None if runs => told.ran = Some((self.round.clone(), self.round.clone())),
                None => {}
                // A task does not outlive a boot of its host, whatever has its name afterwards.
                Some((_, last)) if runs && last.boot == self.round.boot => {
                    *last = self.round.clone();
                    told.gone = None;
                }
                Some(_) => {
                    told.gone.get_or_insert_with(|| self.round.clone());
                }
            }
        }
        self.round = Round::default();
    }

    fn told(self) -> impl Iterator<Item = Told> {
        self.containers.into_values().filter(|t| t.ran.is_some())
    }
}

impl Told {
    /// It ran from within the first round to within the last; it had stopped within the round after.
    fn lines(&self, host: &str, clocks: &Clocks) -> Result<Vec<PodSeen>, String> {
        let at = |round: &Round| -> Result<_, String> {
            let (begin, time) = placed_uptime(clocks, host, &round.boot, round.begin)?;
            let (end, _) = placed_uptime(clocks, host, &round.boot, round.end)?;
            Ok((At { lo: begin.lo, hi: end.hi }, time))
        };
        let Some((first, last)) = &self.ran else { return Ok(Vec::new()) };
        let (from, host_from) = at(first)?;
        let (to, host_to) = at(last)?;
        let ran = PodSeen {
            from,
            to,
            source: PodSource::Runtime,
            node: host.to_owned(),
            via: None,
            owner_kind: self.workload.owner_kind().to_owned(),
            identity: self.workload.identity(&self.name, host),
            name: self.name.clone(),
            uid: self.uid.clone(),
            container: Some(self.id.clone()),
            state: PodState::Running,
            beats: 0,
            gap: 0,
            host_from: Some(host_from),
            host_to: Some(host_to),
        };
        let mut lines = vec![ran.clone()];
        if let Some(gone) = &self.gone {
            let (at, time) = at(gone)?;
            let (host_from, host_to) = (Some(time.clone()), Some(time));
            lines.push(PodSeen { from: at, to: at, state: PodState::Stopped, host_from, host_to, ..ran });
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::theatre::{Theatre, entries, recorder};
    use proptest::prelude::*;
    use rackrift_checkers::clock::Drift;
    use rackrift_checkers::history::{ClockSample, HostTime};

    const INFO: &str = r#"info {"ID": "c1", "Labels": {"io.kubernetes.pod.namespace": "rackrift", "io.kubernetes.container.name": "web", "io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.uid": "u1"}}"#;

    fn round(boot: &str, begin: u64, end: u64) -> Round {
        Round { boot: boot.to_owned(), begin: begin * 10_000_000, end: end * 10_000_000 }
    }

    fn hear(lines: &[&str]) -> Vec<Told> {
        let mut tale = Tale::default();
        for line in lines {
            tale.hear(line);
        }
        tale.told().collect()
    }

    #[test]
    fn a_container_comes_and_goes() {
        let sandbox = r#"info {"ID": "s1", "Labels": {"io.kubernetes.pod.namespace": "rackrift", "io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.uid": "u1"}}"#;
        let foreign = r#"info {"ID": "k1", "Labels": {"io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.container.name": "web", "io.kubernetes.pod.name": "x", "io.kubernetes.pod.uid": "u2"}}"#;
        let told = hear(&[
            "round 10.00 a-b",
            sandbox,
            "runs s1",
            foreign,
            "runs k1",
            INFO,
            "runs c1",
            "end 10.05",
            "failed ctr: cannot connect",
            "round 11.10 a-b",
            "runs s1",
            "runs c1",
            "end 11.20",
            "round 12.20 a-b",
            "end 12.30",
            "round 13.30 a-b",
            "end 13.40",
        ]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].ran, Some((round("ab", 1000, 1005), round("ab", 1110, 1120))));
        assert_eq!(told[0].gone, Some(round("ab", 1220, 1230)));
    }

    #[test]
    fn half_a_round_says_nothing() {
        // The stream breaks in the middle of the second round: that `c1` was not told does not say that it is gone.
        let told = hear(&["round 10.00 a", INFO, "runs c1", "end 10.05", "round 11.00 a", "round 14.00 a"]);
        assert_eq!((&told[0].ran.as_ref().unwrap().1, &told[0].gone), (&round("a", 1000, 1005), &None));
        // It begins with the end of a round.
        assert_eq!(hear(&[INFO, "runs c1", "end 10.05"]), []);
    }

    #[test]
    fn no_container_outlives_a_boot() {
        let told =
            hear(&["round 500.00 a", INFO, "runs c1", "end 500.10", "round 20.00 b", "runs c1", "end 20.10"]);
        assert_eq!(told[0].ran, Some((round("a", 50000, 50010), round("a", 50000, 50010))));
        assert_eq!(told[0].gone, Some(round("b", 2000, 2010)));
    }

    #[tokio::test]
    async fn a_stream_that_breaks_hangs_or_fails_is_a_gap_and_no_end() {
        let theatre = Theatre::new(vec![
            vec!["round 10.00 a", INFO, "runs c1", "end 10.10"],
            vec!["failed ctr: command not found"],
            vec!["round 40.00 a", INFO, "runs c1", "end 40.10", "round 41.00 a", "end 41.20"],
        ]);
        let (recorder, path, _dir) = recorder();
        let (mut tale, mut sight) = (Tale::default(), Sight::new("containers of w1", &recorder));
        let five_asked = async {
            // The fourth stream stays silent: after a while there is a fifth.
            while theatre.asked().len() < 5 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = watch(theatre.as_ref(), "w1", &mut tale, &mut sight, Duration::from_secs(2)) => {}
            () = five_asked => {}
        }
        let sample = |s: u64| ClockSample {
            host: "w1".to_owned(),
            sent: s * 1_000_000_000,
            received: s * 1_000_000_000,
            host_time: HostTime { boot: "a".to_owned(), mono: s * 1_000_000_000 },
            resolution: 0,
            wall: None,
        };
        let clocks = Clocks::from_samples([&sample(1), &sample(60)], Drift::ppm(0));
        let (host, seen) = ("w1".to_owned(), sight.end());
        let watcher = Watcher { host, task: tokio::spawn(async move { (tale, seen) }) };
        let seen = watcher.finish(&clocks, &recorder, Instant::now() + LONGEST).await;
        assert_eq!((seen.lines, seen.missed, seen.reason.as_deref()), (2, 5, Some("no word for 2 s")));
        let told: Vec<(PodState, u64, u64, u64, u64)> = entries(&path)
            .into_iter()
            .filter_map(|e| if let Entry::Pod(p) = e { Some(p) } else { None })
            .map(|p| (p.state, p.from.lo, p.from.hi, p.to.lo, p.to.hi))
            .collect();
        let ms = |t: u64| t * 1_000_000;
        assert_eq!(
            told,
            [
                (PodState::Running, ms(10_000), ms(10_110), ms(40_000), ms(40_110)),
                (PodState::Stopped, ms(41_000), ms(41_210), ms(41_000), ms(41_210)),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_lines_panic(lines: Vec<String>, n in 0_u64..999) {
            let mut tale = Tale::default();
            for line in &lines {
                tale.hear(line);
                tale.hear(&format!("round {n}.00 {line}"));
                tale.hear(&format!("end {line}"));
            }
        }
    }
}
