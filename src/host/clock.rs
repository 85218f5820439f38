//! Reading every host's monotonic clock again and again, by round trips.
//!
//! `/proc/uptime` counts time since boot with sleep in hundredths of a second; heartbeats read the same file, so that
//! both speak of one clock. What the samples mean is the checkers' business (`rackrift_checkers::clock`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rackrift_checkers::history::{ClockSample, Entry, HostTime};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::remote::{Remote, Script};
use crate::inventory::Inventory;
use crate::run::recorder::Recorder;

/// Time between two questions to one host.
const PERIOD: Duration = Duration::from_secs(2);

/// A question that takes longer says too little to be worth waiting for.
const LIMIT: Duration = Duration::from_secs(5);

/// Resolution of `/proc/uptime`, ns.
pub const RESOLUTION: u64 = 10_000_000;

/// The clock is read first and by the shell alone: nothing is started between question and reading.
const SCRIPT: &str = "read -r up _ </proc/uptime; read -r boot </proc/sys/kernel/random/boot_id; \
                      echo \"$up $boot $(date +%s%N)\"";

/// The running samplers, one for each host.
#[derive(Debug)]
pub struct Samplers {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<Vec<ClockSample>>>,
}

/// Starts sampling every host of an inventory.
#[must_use]
pub fn start(remote: &Arc<dyn Remote>, inventory: &Inventory, recorder: &Recorder) -> Samplers {
    let stop = CancellationToken::new();
    let tasks = inventory
        .hosts()
        .map(|host| {
            let (remote, recorder, stop) = (Arc::clone(remote), recorder.clone(), stop.clone());
            let host = host.name.clone();
            tokio::spawn(async move {
                let script = Script::new(SCRIPT).limit(LIMIT);
                let mut samples = Vec::new();
                while !stop.is_cancelled() {
                    samples.extend(sample(remote.as_ref(), &host, &script, &recorder).await);
                    tokio::select! {
                        () = sleep(PERIOD) => {}
                        () = stop.cancelled() => {}
                    }
                }
                // One more at the end, so that the last things seen lie between two samples.
                samples.extend(sample(remote.as_ref(), &host, &script, &recorder).await);
                samples
            })
        })
        .collect();
    Samplers { stop, tasks }
}

impl Samplers {
    /// Takes a last sample of each host, ends, and hands out all samples.
    pub async fn stop(self, limit: Duration) -> Vec<ClockSample> {
        self.stop.cancel();
        let end = Instant::now() + limit;
        let mut all = Vec::new();
        for task in self.tasks {
            // What does not end in time ends with the process; its samples are in the history all the same.
            if let Ok(Ok(samples)) = timeout(end.saturating_duration_since(Instant::now()), task).await {
                all.extend(samples);
            }
        }
        all
    }
}

/// One round trip. A host that does not answer leaves a gap, which the evidence check finds.
async fn sample(
    remote: &dyn Remote,
    host: &str,
    script: &Script,
    recorder: &Recorder,
) -> Option<ClockSample> {
    let sent = recorder.now();
    let outcome = remote.run(host, script).await;
    let received = recorder.now();
    let (host_time, wall) = outcome.ok().ok().as_deref().and_then(parse)?;
    let host = host.to_owned();
    let sample = ClockSample { host, sent, received, host_time, resolution: RESOLUTION, wall };
    recorder.record(Entry::Clock(sample.clone()));
    Some(sample)
}

fn parse(line: &str) -> Option<(HostTime, Option<i64>)> {
    let mut words = line.split_whitespace();
    let mono = hundredths(words.next()?)?;
    // Without dashes, as the journal writes it.
    let boot: String = words.next()?.chars().filter(|c| *c != '-').collect();
    let wall = words.next().and_then(|w| w.parse().ok());
    Some((HostTime { boot, mono }, wall))
}

/// Nanoseconds of a time in `/proc/uptime`'s form, `12345.67`.
#[must_use]
pub fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 2 {
        return None;
    }
    let hundredths = whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)?;
    hundredths.checked_mul(RESOLUTION)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reading_with_and_without_wall_clock() {
        let boot = "5b5a2d0e-8f0a-4c39-9f2c-0d4c0a1b2c3d";
        let (time, wall) = parse(&format!("120.07 {boot} 1764547200123456789\n")).unwrap();
        assert_eq!((time.mono, wall), (120_070_000_000, Some(1_764_547_200_123_456_789)));
        assert_eq!(time.boot, "5b5a2d0e8f0a4c399f2c0d4c0a1b2c3d");
        // busybox's date knows no nanoseconds.
        assert_eq!(parse(&format!("120.07 {boot} 1764547200N")).unwrap().1, None);
        for wrong in ["", "120 x", "120.7 x", "a.bb x", "120.07"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn times_are_read_exactly(n in 0..u64::MAX / RESOLUTION) {
            let text = format!("{}.{:02}", n / 100, n % 100);
            prop_assert_eq!(hundredths(&text), Some(n * RESOLUTION));
        }
    }
}
