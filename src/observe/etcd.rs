//! What one etcd member shows of leases: every version, in order, from a watch on that member.
//!
//! # Invariants
//! * A broken watch is begun anew right behind the last version that came: after the heal, a member that was cut
//!   off shows what it learns then, and nothing is left out. Only if etcd has compacted that away, the next watch
//!   begins with what is there, and the gap is told.
//! * No version of a lease is written twice for one member.
//!
//! A watch, not polling, because starting `etcdctl` costs some tens of milliseconds of a core. A member without a
//! majority ends it (`no leader`): that is a gap in what this member shows, not an error of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rackrift_checkers::history::{Entry, LeaseSeen, Nanos};
use serde::Deserialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Seen, Sight};
use crate::host::remote::{Lines, Remote, Script};
use crate::kube::lease;
use crate::run::recorder::Recorder;

/// Where Kubernetes keeps leases in etcd, unless its API server was started with another prefix.
const PREFIX: &str = "/registry/leases/";

/// After a broken stream, before the next.
const AGAIN: Duration = Duration::from_secs(1);

/// A watch lives as long as the run; the limit only ends what a lost controller left.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// Watches one member.
pub struct Watcher {
    remote: Arc<dyn Remote>,
    host: String,
    etcdctl: String,
    leases: BTreeSet<String>,
    recorder: Recorder,
    stop: CancellationToken,
    /// All up to this revision has been heard; `None`: begin with what is there.
    heard: Option<u64>,
    /// The last version of each lease.
    last: BTreeMap<String, u64>,
}

impl Watcher {
    /// For the member on `host`; of leases only those named `namespace/name`.
    #[must_use]
    pub fn new(
        remote: &Arc<dyn Remote>,
        host: &str,
        etcdctl: &str,
        leases: BTreeSet<String>,
        recorder: &Recorder,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            remote: Arc::clone(remote),
            host: host.to_owned(),
            etcdctl: etcdctl.to_owned(),
            leases,
            recorder: recorder.clone(),
            stop: stop.clone(),
            heard: None,
            last: BTreeMap::new(),
        }
    }

    /// Watches until it is told to stop; a broken stream is begun anew.
    pub async fn watch(mut self) -> Seen {
        let mut sight = Sight::new(format!("etcd:{}", self.host), &self.recorder);
        let stop = self.stop.clone();
        loop {
            let script = self.script();
            let stream = tokio::select! {
                () = stop.cancelled() => return sight.end(),
                stream = self.remote.stream(&self.host, &script) => stream,
            };
            let reason = match stream {
                Err(reason) => reason,
                Ok(lines) => tokio::select! {
                    () = stop.cancelled() => return sight.end(),
                    reason = self.follow(lines, &mut sight) => reason,
                },
            };
            sight.miss(reason);
            tokio::select! {
                () = stop.cancelled() => return sight.end(),
                () = sleep(AGAIN) => {}
            }
        }
    }

    /// `--consistency=s`: what this member has, also without a majority. The watch begins right behind the read.
    fn script(&self) -> Script {
        let (etcdctl, prefix) = (&self.etcdctl, prefix(&self.leases));
        let body = match self.heard {
            None => format!(
                "{{\nnow=$({etcdctl} get --prefix --consistency=s -w json {prefix}) || exit 1\n\
                 printf '%s\\n' \"$now\"\n\
                 rev=$(printf '%s' \"$now\" | sed -n 's/.*\"revision\":\\([0-9]*\\).*/\\1/p')\n\
                 {etcdctl} watch --prefix --rev=$((rev + 1)) -w json {prefix}\n}} 2>&1\n"
            ),
            Some(heard) => {
                format!("{etcdctl} watch --prefix --rev={} -w json {prefix} 2>&1\n", heard.saturating_add(1))
            }
        };
        Script::new(body).limit(LONGEST).cap(16 << 20)
    }

    /// Follows one stream to its end, and says why it ended.
    async fn follow(&mut self, mut lines: Lines, sight: &mut Sight) -> String {
        let via = format!("etcd:{}", self.host);
        let mut reason = "the watch ended".to_owned();
        while let Some(line) = lines.recv().await {
            match heard(&line, &via, self.recorder.now()) {
                Heard::Nothing => {}
                Heard::Said(words) => reason = words,
                Heard::Compacted => self.heard = None,
                Heard::Versions { versions, up_to, unread } => {
                    sight.sees();
                    self.heard = self.heard.max(Some(up_to));
                    for version in versions.into_iter().filter(|v| self.leases.contains(&v.lease)) {
                        if self.last.insert(version.lease.clone(), version.version) != Some(version.version) {
                            self.recorder.record(Entry::Lease(version));
                            sight.wrote(1);
                        }
                    }
                    if let Some(unread) = unread {
                        sight.miss(unread);
                    }
                }
            }
        }
        reason
    }
}

/// What all these leases' keys begin with: one namespace's folder if they share it, so that no other load is sent.
fn prefix(leases: &BTreeSet<String>) -> String {
    let mut namespaces = leases.iter().filter_map(|l| l.split_once('/')).map(|(namespace, _)| namespace);
    match namespaces.next() {
        Some(first) if namespaces.all(|other| other == first) => format!("{PREFIX}{first}/"),
        _ => PREFIX.to_owned(),
    }
}

/// A line of etcdctl: the answer of `get`, a batch of events of `watch`, or one of its log.
#[derive(Deserialize)]
struct Line {
    header: Option<Header>,
    // Go writes an empty list as null.
    kvs: Option<Vec<KeyValue>>,
    #[serde(rename = "Events")]
    events: Option<Vec<Event>>,
    #[serde(default, rename = "CompactRevision")]
    compacted: u64,
    msg: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    revision: u64,
}

#[derive(Deserialize)]
struct Event {
    /// Absent: put; 1: delete.
    #[serde(default, rename = "type")]
    kind: u8,
    kv: KeyValue,
}

#[derive(Deserialize)]
struct KeyValue {
    key: String,
    #[serde(default)]
    mod_revision: u64,
    #[serde(default)]
    value: String,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    /// Versions, the revision up to which all has now been heard, and why something in it could not be read.
    Versions {
        versions: Vec<LeaseSeen>,
        up_to: u64,
        unread: Option<String>,
    },
    /// What was to come next is no longer there.
    Compacted,
    /// Words for people: why it ended.
    Said(String),
}

fn heard(line: &str, via: &str, time: Nanos) -> Heard {
    if line.trim().is_empty() {
        return Heard::Nothing;
    }
    let Ok(line) = serde_json::from_str::<Line>(line) else {
        // etcdctl ends a watch with two lines; the second only repeats that it ended.
        let words = line.trim();
        let repeats = words == "Error: watch is canceled by the server";
        return if repeats { Heard::Nothing } else { Heard::Said(words.to_owned()) };
    };
    if line.compacted > 0 {
        return Heard::Compacted;
    }
    if let Some(error) = line.error {
        return Heard::Said(line.msg.map_or(error.clone(), |msg| format!("{msg}: {error}")));
    }
    // A watch's header shows the store's revision, which events still on their way have not reached: only a read
    // has heard all up to it.
    let read = line.header.map(|h| h.revision);
    let events = line.events.unwrap_or_default();
    if read.is_none() && events.is_empty() {
        return Heard::Nothing;
    }
    let newest = events.iter().map(|e| e.kv.mod_revision).max();
    let there = line.kvs.unwrap_or_default().into_iter().map(|kv| (true, Event { kind: 0, kv }));
    let (mut versions, mut unread) = (Vec::new(), None);
    for (anew, event) in there.chain(events.into_iter().map(|event| (false, event))) {
        match version(&event, via, time) {
            Ok(some) => versions.extend(some.map(|seen| LeaseSeen { anew, ..seen })),
            Err(reason) => unread = Some(reason),
        }
    }
    Heard::Versions { versions, up_to: read.max(newest).unwrap_or_default(), unread }
}

/// One version; none for what is no lease.
fn version(event: &Event, via: &str, time: Nanos) -> Result<Option<LeaseSeen>, String> {
    let decode = |text: &str| STANDARD.decode(text).map_err(|e| e.to_string());
    let key = String::from_utf8_lossy(&decode(&event.kv.key)?).into_owned();
    let Some(name) = key.strip_prefix(PREFIX) else { return Ok(None) };
    let version = event.kv.mod_revision;
    if event.kind == 1 {
        return Ok(Some(LeaseSeen {
            time,
            via: via.to_owned(),
            lease: name.to_owned(),
            version,
            uid: String::new(),
            holder: String::new(),
            duration_s: 0,
            transitions: 0,
            acquire_time: String::new(),
            renew_time: String::new(),
            deleted: true,
            anew: false,
        }));
    }
    let stored = lease::from_stored(&decode(&event.kv.value)?).map_err(|e| format!("{key}: {e}"))?;
    Ok(Some(LeaseSeen { version, ..stored.seen(via, time) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::theatre::{Theatre, entries};
    use proptest::prelude::*;

    /// What etcdctl 3.6.16 wrote on a member of a real lab: a log line, `get`, two batches of `watch`.
    const SAMPLE: &str = include_str!("samples/etcdctl.jsonl");

    fn lines() -> Vec<&'static str> {
        SAMPLE.lines().collect()
    }

    fn leases() -> BTreeSet<String> {
        BTreeSet::from(["kube-system/kube-scheduler".to_owned()])
    }

    #[test]
    fn a_read_and_a_watch_of_a_real_member() {
        let all: Vec<Heard> = lines().iter().map(|l| heard(l, "etcd:e3", 9)).collect();
        assert_eq!(all[0], Heard::Nothing);
        let told: Vec<(u64, u64, String, String)> = all[1..]
            .iter()
            .map(|h| {
                let Heard::Versions { versions, up_to, unread: None } = h else { panic!("{h:?}") };
                let v = &versions[0];
                assert_eq!((versions.len(), v.lease.as_str()), (1, "kube-system/kube-scheduler"));
                assert_eq!((v.duration_s, v.transitions, v.time, v.via.as_str()), (15, 1, 9, "etcd:e3"));
                (v.version, *up_to, v.holder.clone(), v.renew_time.clone())
            })
            .collect();
        let holder = "m2_3884759a-0096-436a-9337-38c8e0b451cf".to_owned();
        assert_eq!(
            told,
            [
                (4348, 4349, holder.clone(), "2026-12-01T04:14:59.174443Z".to_owned()),
                (4350, 4350, holder.clone(), "2026-12-01T04:15:01.182236Z".to_owned()),
                (4354, 4354, holder, "2026-12-01T04:15:03.194352Z".to_owned()),
            ]
        );
    }

    #[test]
    fn how_a_watch_ends() {
        // As etcdctl 3.6.16 wrote them on a member whose majority was killed, and behind a compaction.
        let no_leader = r#"{"Header":{},"Events":null,"CompactRevision":0,"Canceled":true,"Created":false}"#;
        assert_eq!(heard(no_leader, "etcd:e1", 9), Heard::Nothing);
        let words = "watch was canceled (etcdserver: no leader)";
        assert_eq!(heard(words, "etcd:e1", 9), Heard::Said(words.to_owned()));
        assert_eq!(heard("Error: watch is canceled by the server", "etcd:e1", 9), Heard::Nothing);
        let compacted = r#"{"Header":{"cluster_id":1,"member_id":2,"raft_term":2},"Events":[],"CompactRevision":4,"Canceled":true,"Created":false}"#;
        assert_eq!(heard(compacted, "etcd:e1", 9), Heard::Compacted);
        let empty = r#"{"header":{"cluster_id":1,"member_id":2,"revision":6,"raft_term":2}}"#;
        assert_eq!(heard(empty, "etcd:e1", 9), Heard::Versions { versions: vec![], up_to: 6, unread: None });
        let refused =
            r#"{"level":"warn","msg":"retrying of unary invoker failed","error":"connection refused"}"#;
        assert_eq!(
            heard(refused, "etcd:e1", 9),
            Heard::Said("retrying of unary invoker failed: connection refused".to_owned())
        );
    }

    #[test]
    fn deletes_and_foreign_keys() {
        // The delete is a real one; its key is /registry/leases/x/y.
        let line = r#"{"Header":{"revision":6},"Events":[{"type":1,"kv":{"key":"L3JlZ2lzdHJ5L2xlYXNlcy94L3k=","mod_revision":6}}],"CompactRevision":0,"Canceled":false,"Created":false}"#;
        let Heard::Versions { versions, up_to: 6, unread: None } = heard(line, "etcd:e1", 9) else {
            panic!()
        };
        assert_eq!((versions[0].deleted, versions[0].version, versions[0].lease.as_str()), (true, 6, "x/y"));
        let other = STANDARD.encode("/registry/pods/x/y");
        let line = format!(r#"{{"header":{{"revision":42}},"kvs":[{{"key":"{other}","mod_revision":42}}]}}"#);
        assert_eq!(heard(&line, "etcd:e1", 9), Heard::Versions { versions: vec![], up_to: 42, unread: None });
        let no_lease = STANDARD.encode("/registry/leases/x/y");
        let line =
            format!(r#"{{"Events":[{{"kv":{{"key":"{no_lease}","mod_revision":7,"value":"djQ="}}}}]}}"#);
        let Heard::Versions { versions, up_to: 7, unread: Some(why) } = heard(&line, "e", 9) else {
            panic!()
        };
        assert!(versions.is_empty() && why.contains("/registry/leases/x/y"), "{why}");
    }

    #[test]
    fn only_what_is_asked_for_is_watched() {
        let of = |names: &[&str]| prefix(&names.iter().map(|n| (*n).to_owned()).collect());
        assert_eq!(of(&["kube-system/a", "kube-system/b"]), "/registry/leases/kube-system/");
        assert_eq!(of(&["kube-system/a", "other/b"]), "/registry/leases/");
        assert_eq!(of(&[]), "/registry/leases/");
    }

    #[tokio::test]
    async fn a_broken_watch_goes_on_behind_the_last_version() {
        let all = lines();
        // Cut off after the read and one version; in vain twice; then the rest, with one version told again.
        let theatre = Theatre::new(vec![
            vec![all[1], all[2], "watch was canceled (etcdserver: no leader)"],
            vec!["watch was canceled (etcdserver: no leader)"],
            vec![],
            vec![all[2], all[3]],
        ]);
        let (recorder, path, _dir) = crate::observe::theatre::recorder();
        let stop = CancellationToken::new();
        let remote: Arc<dyn Remote> = theatre.clone();
        let watcher = Watcher::new(&remote, "e1", "etcdctl", leases(), &recorder, &stop);
        let task = tokio::spawn(watcher.watch());
        theatre.all_played().await;
        stop.cancel();
        let seen = task.await.unwrap();
        assert_eq!((seen.lines, seen.missed, seen.reason.as_deref()), (3, 4, Some("the watch ended")));
        let versions: Vec<u64> = entries(&path)
            .into_iter()
            .filter_map(|e| if let Entry::Lease(l) = e { Some(l.version) } else { None })
            .collect();
        assert_eq!(versions, [4348, 4350, 4354]);
        let anew = entries(&path).into_iter().filter(|e| matches!(e, Entry::Lease(l) if l.anew)).count();
        assert_eq!(anew, 1, "only what the read showed, not what the watch went on with");
        let asked = theatre.asked();
        assert!(asked[0].contains("get --prefix --consistency=s"), "{}", asked[0]);
        assert!(asked[1..4].iter().all(|s| s.contains("--rev=4351") && !s.contains(" get ")), "{asked:?}");
    }

    #[tokio::test]
    async fn behind_a_compaction_it_begins_with_what_is_there() {
        let all = lines();
        let compacted = r#"{"Header":{},"Events":[],"CompactRevision":4353,"Canceled":true,"Created":false}"#;
        let theatre = Theatre::new(vec![
            vec![all[2]],
            vec![compacted, "watch was canceled (etcdserver: mvcc: required revision has been compacted)"],
            vec![all[3]],
        ]);
        let (recorder, path, _dir) = crate::observe::theatre::recorder();
        let stop = CancellationToken::new();
        let remote: Arc<dyn Remote> = theatre.clone();
        let task = tokio::spawn(Watcher::new(&remote, "e1", "etcdctl", leases(), &recorder, &stop).watch());
        theatre.all_played().await;
        stop.cancel();
        assert_eq!(task.await.unwrap().lines, 2);
        assert!(theatre.asked()[2].contains("get --prefix"));
        assert_eq!(entries(&path).iter().filter(|e| matches!(e, Entry::Lease(_))).count(), 2);
    }

    proptest! {
        #[test]
        fn no_line_panics(line: String) {
            let _ = heard(&line, "etcd:e1", 0);
        }
    }
}
