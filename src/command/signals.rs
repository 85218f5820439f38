//! Signals: the first asks the run to wind down, the second leaves at once and says what stays behind.

use tokio::signal::unix::{SignalKind, signal};

use super::Voice;
use crate::exit::Exit;
use crate::run::faults::TTL;
use crate::run::stop::Stop;
use crate::run::tell::Tell;

/// Listens to SIGINT, SIGTERM and SIGHUP for the rest of the process's life.
///
/// # Errors
/// If the system gives no handler.
pub fn listen(stop: &Stop, voice: std::sync::Arc<Voice>) -> std::io::Result<()> {
    let mut signals =
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            let [a, b, c] = &mut signals;
            tokio::select! {
                _ = a.recv() => {}
                _ = b.recv() => {}
                _ = c.recv() => {}
            }
            if stop.wind_down() {
                voice.say("stopping: healing, then judging what there is; once more leaves at once");
                continue;
            }
            let hosts = stop.faulted();
            if hosts.is_empty() {
                voice.say("left at once; no fault is in force");
                std::process::exit(Exit::Harness.code().into());
            }
            voice.say(&format!(
                "left at once; a fault may be in force on {}: run `rackrift heal`, or wait {} s for the dead-man's switches",
                hosts.join(", "),
                TTL.as_secs()
            ));
            std::process::exit(Exit::Dirty.code().into());
        }
    });
    Ok(())
}
