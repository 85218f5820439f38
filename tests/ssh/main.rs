//! Scripts over SSH, against real sshd processes that each test starts and ends.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test ends where something is not as it should be, and says why it was skipped"
)]

mod cut;
mod facts;
mod refusals;
mod scripts;
mod server;
mod streams;

use std::time::{Duration, Instant};

use rackrift::host::remote::{Outcome, Script};
use rackrift::ssh::Fleet;
use server::Server;

fn script(body: &str) -> Script {
    Script::new(body).limit(Duration::from_secs(20))
}

fn fleet(server: &Server) -> Fleet {
    Fleet::new(&server.inventory()).unwrap()
}

fn refused(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { reason } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Waits until that process has ended.
async fn gone(pid: &str) {
    until(|| !std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))).await;
}

/// Waits until something is so.
async fn until(so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < end, "it never came to be");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
