//! The controller dies in mid-fault.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::bench::{Bench, racks};
use crate::support::heard::matrix;
use crate::support::namespaces::{Lab, until};

const HOSTS: [&str; 4] = ["m1", "w1", "m2", "w2"];
const LAB: &str = "RACKRIFT_TEST_LAB";

/// A controller in a process of its own: cuts, says so, and keeps the cut alive for ever.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: the process that another test starts and kills"]
async fn controller() {
    let handle = std::env::var(LAB).expect("the lab is named");
    let (prefix, folder) = handle.split_once(' ').expect("prefix and folder");
    let bench = Bench::over(Arc::new(Lab::attach(prefix, Path::new(folder), &HOSTS)));
    let mut request = bench.request(1, &racks());
    request.ttl = Duration::from_secs(6);
    let cut = bench.prepare(bench.plan(&request).await).await;
    let _alive = cut.keep_alive();
    cut.commit().await.unwrap();
    writeln!(std::io::stdout(), "\nin force").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_controller_leaves_nothing_once_the_time_has_passed() {
    let bench = Bench::new(&HOSTS);
    let before = bench.all_rules();
    let (prefix, folder) = bench.lab.handle();
    let mut controller = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "dead_man::controller", "--ignored", "--nocapture"])
        .env(LAB, format!("{prefix} {}", folder.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(controller.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|l| l == "in force"), "the controller did not get so far");
    // Longer than the dead-man's time: the controller renews.
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(matrix(&bench.lab).values().any(|heard| !heard), "the cut stands while its controller lives");

    controller.kill().unwrap();
    controller.wait().unwrap();
    let clean =
        until(Duration::from_secs(40), || bench.all_rules() == before && bench.left_behind().is_empty());
    assert!(clean.await, "left: {:?} {:#?}", bench.left_behind(), bench.all_rules());
    assert!(matrix(&bench.lab).values().all(|heard| *heard));
    let quiet = until(Duration::from_secs(10), || HOSTS.iter().all(|h| bench.lab.processes(h).is_empty()));
    assert!(quiet.await, "a dead-man's switch still runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_man_that_is_killed_is_told() {
    let mut bench = Bench::new(&HOSTS);
    let cut = bench.prepare(bench.plan(&bench.request(1, &racks())).await).await;
    cut.commit().await.unwrap();
    let watcher = bench.lab.run_dir("w1").join("test-1/watch.pid");
    let pid: i32 = std::fs::read_to_string(watcher).unwrap().trim().parse().unwrap();
    bench.lab.on("w1", &format!("kill -9 {pid}"));
    let alive = cut.keep_alive();
    let told = bench.next_mark_that(|m| m.detail.as_deref().is_some_and(|d| d.contains("dead-man"))).await;
    assert_eq!(told.detail.as_deref(), Some("w1: the dead-man's switch does not run"));
    alive.stop().await;
    assert!(cut.heal().await.clean());
}
