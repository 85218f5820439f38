//! What one etcd member shows of leases: every version, in order, from a watch on that member.
//!
//! A watch, not polling, because starting `etcdctl` costs some tens of milliseconds of a core; the member serves it
//! from its own store, so a member that is cut off simply shows nothing new.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rackrift_checkers::history::{Entry, LeaseSeen, Nanos};
use serde::Deserialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Seen;
use crate::host::remote::{Remote, Script};
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
    script: Script,
    leases: BTreeSet<String>,
    recorder: Recorder,
    stop: CancellationToken,
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
        // `--consistency=s`: what this member has, also without a majority. The watch begins right behind the read.
        let body = format!(
            "now=$({etcdctl} get --prefix --consistency=s -w json {PREFIX}) || exit 1\n\
             printf '%s\\n' \"$now\"\n\
             rev=$(printf '%s' \"$now\" | sed -n 's/.*\"revision\":\\([0-9]*\\).*/\\1/p')\n\
             {etcdctl} watch --prefix --rev=$((rev + 1)) -w json {PREFIX}\n"
        );
        Self {
            remote: Arc::clone(remote),
            host: host.to_owned(),
            script: Script::new(body).limit(LONGEST).cap(16 << 20),
            leases,
            recorder: recorder.clone(),
            stop: stop.clone(),
        }
    }

    /// Watches until it is told to stop; a broken stream is begun anew.
    pub async fn watch(self) -> Seen {
        let mut seen = Seen::default();
        let via = format!("etcd:{}", self.host);
        while !self.stop.is_cancelled() {
            match self.remote.stream(&self.host, &self.script).await {
                Err(reason) => seen.miss(reason),
                Ok(mut lines) => loop {
                    let line = tokio::select! {
                        () = self.stop.cancelled() => return seen,
                        line = lines.recv() => line,
                    };
                    let Some(line) = line else {
                        seen.miss("the watch ended".to_owned());
                        break;
                    };
                    match versions(&line, &via, self.recorder.now()) {
                        Ok(all) => {
                            for lease in all.into_iter().filter(|l| self.leases.contains(&l.lease)) {
                                self.recorder.record(Entry::Lease(lease));
                                seen.lines += 1;
                            }
                        }
                        Err(reason) => seen.miss(reason),
                    }
                },
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(AGAIN) => {}
            }
        }
        seen
    }
}

/// A line of etcdctl: the answer of `get`, or a batch of events of `watch`.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default, rename = "Events")]
    events: Vec<Event>,
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

fn versions(line: &str, via: &str, time: Nanos) -> Result<Vec<LeaseSeen>, String> {
    if line.trim().is_empty() {
        return Ok(Vec::new());
    }
    let line: Line = serde_json::from_str(line).map_err(|e| format!("not what etcdctl prints: {e}"))?;
    let puts = line.kvs.into_iter().map(|kv| Event { kind: 0, kv });
    let mut all = Vec::new();
    for event in puts.chain(line.events) {
        all.extend(version(&event, via, time)?);
    }
    Ok(all)
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
        }));
    }
    let stored = lease::from_stored(&decode(&event.kv.value)?).map_err(|e| format!("{key}: {e}"))?;
    Ok(Some(LeaseSeen { version, ..stored.seen(via, time) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletes_and_foreign_keys() {
        let encode = |text: &str| STANDARD.encode(text);
        let key = encode("/registry/leases/kube-system/kube-scheduler");
        let line =
            format!(r#"{{"Header":{{}},"Events":[{{"type":1,"kv":{{"key":"{key}","mod_revision":42}}}}]}}"#);
        let seen = versions(&line, "etcd:e1", 9).unwrap();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].deleted);
        assert_eq!((seen[0].lease.as_str(), seen[0].version), ("kube-system/kube-scheduler", 42));
        let other = encode("/registry/pods/x/y");
        let line = format!(r#"{{"kvs":[{{"key":"{other}","mod_revision":42,"value":""}}]}}"#);
        assert_eq!(versions(&line, "etcd:e1", 9).unwrap(), []);
        assert_eq!(versions("", "etcd:e1", 9).unwrap(), []);
        assert!(versions("Error: context deadline exceeded", "etcd:e1", 9).is_err());
    }
}
