//! Long-running scripts, heard line by line.

use std::sync::Arc;
use std::time::Duration;

use rackrift::host::remote::Remote;

use crate::server::{Server, Setup};
use crate::{fleet, gone, script};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_its_script_when_it_is_dropped() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let endless = "echo $$; i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done";
    let mut lines = fleet.stream("h1", &script(endless).limit(Duration::from_secs(60))).await.unwrap();
    let pid = lines.recv().await.unwrap();
    for i in 1..=5 {
        assert_eq!(lines.recv().await.unwrap(), format!("line {i}"));
    }
    drop(lines);
    gone(&pid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_script_is_ended_too() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let mut lines =
        fleet.stream("h1", &script("echo $$; exec sleep 1000").limit(Duration::from_secs(60))).await.unwrap();
    let pid = lines.recv().await.unwrap();
    drop(lines);
    gone(&pid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_script_and_loses_no_line() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let mut lines =
        fleet.stream("h1", &script("seq 1 20000; echo noise >&2; printf unfinished")).await.unwrap();
    for i in 1..=20000 {
        assert_eq!(lines.recv().await.unwrap(), i.to_string());
    }
    assert_eq!(lines.recv().await.as_deref(), Some("unfinished"));
    assert_eq!(lines.recv().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_hinders_no_script() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let mut lines = fleet.stream("h1", &script("yes | head -n 3000000")).await.unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("y"));
    for _ in 0..20 {
        assert_eq!(fleet.run("h1", &script("echo here")).await.ok().unwrap(), "here\n");
    }
    assert_eq!(lines.recv().await.as_deref(), Some("y"));
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_streams_at_once_are_all_let_in() {
    let Some(server) = Server::start() else { return };
    let fleet = Arc::new(fleet(&server));
    let all: Vec<_> = (0..20)
        .map(|i| {
            let fleet = Arc::clone(&fleet);
            tokio::spawn(async move {
                let mut lines = fleet.stream("h1", &script(&format!("echo {i}"))).await.unwrap();
                lines.recv().await
            })
        })
        .collect();
    for (i, one) in (0..20).zip(all) {
        assert_eq!(one.await.unwrap(), Some(i.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_not_started_is_told() {
    let lines = &["ForceCommand echo This account is for backups only."];
    let Some(server) = Server::with(&Setup { lines, ..Setup::default() }) else { return };
    let reason = fleet(&server).stream("h1", &script("echo no")).await.unwrap_err();
    insta::assert_snapshot!(reason);
}
