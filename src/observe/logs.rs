//! What every host logged during a run, kept in the run's folder for whoever has to understand it later.
//!
//! No check reads it: what is judged is in the history. Lines carry the time since boot, as the rest of the evidence
//! does, not a wall clock that may have been wrong.
//!
//! # Invariants
//! * A log that cannot be read costs nothing but itself.

use std::sync::Arc;
use std::time::Duration;

use crate::fault::script::on_each;
use crate::host::remote::{Remote, Script};

/// The newest bytes of a log that are kept: a control plane that is cut off writes megabytes a minute.
const KEPT: usize = 4 << 20;

/// How long a host may take to hand over its log.
const LIMIT: Duration = Duration::from_secs(30);

/// The logs of all these hosts, from the last `length` on, or why there is none; the newest [`KEPT`] bytes of each.
pub async fn read(
    remote: &Arc<dyn Remote>,
    hosts: impl Iterator<Item = String>,
    length: Duration,
) -> Vec<(String, Result<String, String>)> {
    // One minute more: what led to the run may stand just before it.
    let since = length.as_secs() + 60;
    let body = format!(
        "command -v journalctl >/dev/null || {{ echo 'there is no journalctl' >&2; exit 1; }}\n\
         journalctl -q --no-pager -b -o short-monotonic --since='-{since} s' | tail -c {KEPT}\n"
    );
    let script = Script::new(body).limit(LIMIT).cap(KEPT + (1 << 10));
    let scripts = hosts.map(|host| (host, script.clone())).collect();
    on_each(remote, scripts).await.into_iter().map(|(host, outcome)| (host, outcome.ok())).collect()
}
