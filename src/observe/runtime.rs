//! What a worker's container runtime says: which containers of our pods run, asked once a second on the host.
//!
//! Containerd by `ctr`, whose tasks are processes; an API server may be wrong about a node that it cannot hear.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rackrift_checkers::clock::Clocks;
use rackrift_checkers::history::{Entry, PodSeen, PodSource, PodState};
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::journal::placed_uptime;
use super::{Seen, plain_boot};
use crate::host::clock::hundredths;
use crate::host::remote::{Remote, Script};
use crate::run::recorder::Recorder;
use crate::workload::namespace::NAMESPACE;
use crate::workload::pods::manifest::Workload;

/// A stream lives as long as the run; the limit only ends what a lost controller left.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// After a broken stream, before the next.
const AGAIN: Duration = Duration::from_secs(1);

/// A round: `round UPTIME BOOT`, `info JSON` of each container not told of before, `runs ID` of each that runs, `end UPTIME`.
const SCRIPT: &str = r#"known=' '
while :; do
    read -r up _ </proc/uptime
    read -r boot </proc/sys/kernel/random/boot_id
    tasks=$(ctr -n k8s.io tasks ls) || { echo "failed"; sleep 1; continue; }
    echo "round $up $boot"
    for id in $(printf '%s\n' "$tasks" | awk 'NR > 1 && $3 == "RUNNING" { print $1 }'); do
        case $known in
        *" $id "*) ;;
        *)
            info=$(ctr -n k8s.io containers info "$id" | tr -d '\n') || continue
            printf 'info %s\n' "$info"
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
    pub fn start(remote: &Arc<dyn Remote>, host: &str, stop: &CancellationToken) -> Self {
        let (remote, stop) = (Arc::clone(remote), stop.clone());
        let name = host.to_owned();
        let task = tokio::spawn(async move {
            let script = Script::new(SCRIPT).limit(LONGEST).cap(1 << 20);
            let (mut tale, mut seen) = (Tale::default(), Seen::default());
            while !stop.is_cancelled() {
                match remote.stream(&name, &script).await {
                    Err(reason) => seen.miss(reason),
                    Ok(mut lines) => loop {
                        let line = tokio::select! {
                            () = stop.cancelled() => return (tale, seen),
                            line = lines.recv() => line,
                        };
                        match line {
                            Some(line) => tale.hear(&line),
                            None => {
                                seen.miss("the stream ended".to_owned());
                                break;
                            }
                        }
                    },
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = sleep(AGAIN) => {}
                }
            }
            (tale, seen)
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
            return Seen { missed: 1, reason: Some("it did not end".to_owned()), ..Seen::default() };
        };
        for told in tale.told() {
            match told.line(&self.host, clocks) {
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

/// What a worker told, round by round.
#[derive(Debug, Default)]
struct Tale {
    boot: String,
    /// When the round began and ended, ns since boot.
    round: u64,
    running: BTreeSet<String>,
    containers: BTreeMap<String, Told>,
}

/// One container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    workload: Workload,
    id: String,
    name: String,
    uid: String,
    boot: String,
    /// First and last round in which it ran: that round's beginning and end, ns since boot.
    first: (u64, u64),
    last: (u64, u64),
    /// The first round in which it no longer ran.
    gone: Option<(u64, u64)>,
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
    fn hear(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "round" => {
                let (up, boot) = rest.split_once(' ').unwrap_or((rest, ""));
                self.boot = plain_boot(boot.trim());
                self.round = hundredths(up).unwrap_or(self.round);
                self.running.clear();
            }
            "info" => self.meet(rest),
            "runs" => {
                self.running.insert(rest.trim().to_owned());
            }
            "end" => {
                let round = (self.round, hundredths(rest.trim()).unwrap_or(self.round));
                self.end(round);
            }
            _ => {}
        }
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
            boot: self.boot.clone(),
            first: (0, 0),
            last: (0, 0),
            gone: None,
        };
        self.containers.entry(info.id).or_insert(told);
    }

    fn end(&mut self, round: (u64, u64)) {
        for (id, told) in &mut self.containers {
            if self.running.contains(id) {
                if told.first == (0, 0) {
                    told.first = round;
                }
                told.last = round;
                told.gone = None;
            } else if told.first != (0, 0) && told.gone.is_none() {
                told.gone = Some(round);
            }
        }
    }

    fn told(self) -> impl Iterator<Item = Told> {
        self.containers.into_values().filter(|t| t.first != (0, 0))
    }
}

impl Told {
    /// It ran from within the first round to within the last; it had stopped within the round after.
    fn line(&self, host: &str, clocks: &Clocks) -> Result<Vec<PodSeen>, String> {
        let at = |round: (u64, u64)| -> Result<_, String> {
            let (begin, time) = placed_uptime(clocks, host, &self.boot, round.0)?;
            let (end, _) = placed_uptime(clocks, host, &self.boot, round.1)?;
            Ok((rackrift_checkers::history::At { lo: begin.lo, hi: end.hi }, time))
        };
        let (from, host_from) = at(self.first)?;
        let (to, host_to) = at(self.last)?;
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
        if let Some(gone) = self.gone {
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

    #[test]
    fn a_container_comes_and_goes() {
        let info = r#"info {"ID": "c1", "Labels": {"io.kubernetes.pod.namespace": "rackrift", "io.kubernetes.container.name": "web", "io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.uid": "u1"}}"#;
        let sandbox = r#"info {"ID": "s1", "Labels": {"io.kubernetes.pod.namespace": "rackrift", "io.kubernetes.pod.name": "web-1", "io.kubernetes.pod.uid": "u1"}}"#;
        let lines = [
            "round 10.00 a-b",
            sandbox,
            "runs s1",
            info,
            "runs c1",
            "end 10.05",
            "failed",
            "round 11.10 a-b",
            "runs s1",
            "runs c1",
            "end 11.20",
            "round 12.20 a-b",
            "end 12.30",
            "round 13.30 a-b",
            "end 13.40",
        ];
        let mut tale = Tale::default();
        lines.iter().for_each(|l| tale.hear(l));
        let told: Vec<Told> = tale.told().collect();
        assert_eq!(told.len(), 1);
        let s = |hundredths: u64| hundredths * 10_000_000;
        assert_eq!((told[0].first, told[0].last), ((s(1000), s(1005)), (s(1110), s(1120))));
        assert_eq!((told[0].gone, told[0].boot.as_str()), (Some((s(1220), s(1230))), "ab"));
    }
}
