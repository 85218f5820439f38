//! Scripts over SSH, against real sshd processes on loopback that each test starts and ends.

mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rackrift::host::remote::{Outcome, Remote, Script};
use rackrift::ssh::Fleet;
use server::Server;

fn script(body: &str) -> Script {
    Script::new(body).limit(Duration::from_secs(5))
}

fn refused(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { reason } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn fleet(server: &Server) -> Fleet {
    Fleet::new(&server.inventory()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_s_output_and_status_come_back_and_nothing_else() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let outcome = fleet.run("h1", &script("echo out; echo err >&2; read x || echo 'no input'; exit 3")).await;
    let Outcome::Done(done) = outcome else { panic!("{outcome:?}") };
    assert_eq!((done.status, done.stdout.as_str(), done.stderr.as_str()), (3, "out\nno input\n", "err\n"));
    let big = format!("wc -c <<'X'\n{}\nX\n", "x".repeat(1 << 20));
    let outcome = fleet.run("h1", &script(&big)).await;
    assert_eq!(outcome.ok().unwrap().trim(), ((1 << 20) + 1).to_string());
    let capped = script("yes | head -c 200000").cap(1000);
    let Outcome::Done(done) = fleet.run("h1", &capped).await else { panic!("not done") };
    assert_eq!((done.stdout.len(), done.truncated), (1000, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_over_its_limit_is_ended_on_the_host_too() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let mark = server.folder().join("pid");
    let body = format!("echo $$ > {}; echo before; exec sleep 1000", mark.display());
    let outcome = fleet.run("h1", &script(&body).limit(Duration::from_secs(1))).await;
    let Outcome::TimedOut { output, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(output.stdout, "before\n");
    let pid = std::fs::read_to_string(&mark).unwrap();
    gone(pid.trim()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_script_and_a_killed_server_are_told_apart() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let outcome = fleet.run("h1", &script("echo so far; kill -KILL $$")).await;
    let Outcome::Signalled { signal, output } = outcome else { panic!("{outcome:?}") };
    assert_eq!((signal.as_str(), output.stdout.as_str()), ("KILL", "so far\n"));
    // The shell's parent is the sshd process that serves this connection.
    let outcome = fleet
        .run("h1", &script("p=$(ps -o ppid= -p $PPID); p=$(ps -o ppid= -p $p); kill -KILL $p; sleep 3"))
        .await;
    assert!(matches!(outcome, Outcome::Lost { .. }), "{outcome:?}");
    assert_eq!(fleet.run("h1", &script("echo again")).await.ok().unwrap(), "again\n", "it connects anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_scripts_at_once_share_one_connection() {
    let Some(server) = Server::start() else { return };
    let fleet = Arc::new(fleet(&server));
    let mut all = Vec::new();
    for i in 0..40 {
        let fleet = Arc::clone(&fleet);
        all.push(tokio::spawn(async move {
            let said = fleet.run("h1", &script(&format!("sleep 0.05; echo {i} $SSH_CONNECTION"))).await;
            (i, said.ok().unwrap())
        }));
    }
    let mut connections = std::collections::BTreeSet::new();
    for one in all {
        let (i, said) = one.await.unwrap();
        let (number, connection) = said.trim().split_once(' ').unwrap();
        assert_eq!(number, i.to_string());
        connections.insert(connection.to_owned());
    }
    assert_eq!(connections.len(), 1, "{connections:?}");
}

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

/// Waits until that process has ended.
async fn gone(pid: &str) {
    let end = Instant::now() + Duration::from_secs(15);
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z ")) {
        assert!(Instant::now() < end, "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_us_out_is_told_clearly() {
    let Some(server) = Server::start() else { return };
    let mut said = Vec::new();
    let mut ask = async |inventory| {
        let fleet = Fleet::new(&inventory).unwrap();
        said.push(refused(fleet.run("h1", &script("echo no")).await));
    };
    let mut nobody = server.inventory();
    nobody.racks[0].hosts[0].ssh.port = server.closed_port();
    server.know(nobody.racks[0].hosts[0].ssh.port);
    ask(nobody).await;
    let mut key = server.inventory();
    key.racks[0].hosts[0].ssh.key = Some(server.other_key());
    ask(key).await;
    let mut unknown = server.inventory();
    unknown.known_hosts = Some(server.known_hosts("empty", ""));
    ask(unknown).await;
    let mut changed = server.inventory();
    changed.known_hosts = Some(server.known_hosts_of_another());
    ask(changed).await;
    let fleet = Fleet::new(&server.inventory()).unwrap();
    said.push(refused(fleet.run("h9", &script("echo no")).await));
    let text = said.join("\n\n");
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&regex_of(server.folder().to_str().unwrap()), "FOLDER");
    settings.add_filter(r":\d{4,5}\b", ":PORT");
    settings.add_filter(r"-p \d{4,5}\b", "-p PORT");
    settings.add_filter(r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:PRINT");
    settings.bind(|| insta::assert_snapshot!(text));
}

fn regex_of(text: &str) -> String {
    text.replace('.', r"\.")
}

#[test]
fn unusable_files_are_wrong_input() {
    let Some(server) = Server::start() else { return };
    let mut inventory = server.inventory();
    inventory.known_hosts = Some(server.folder().join("none"));
    assert!(Fleet::new(&inventory).unwrap_err().to_string().contains("ssh-keyscan"));
    let mut inventory = server.inventory();
    inventory.racks[0].hosts[0].ssh.key = Some(server.known_hosts("no-key", "not a key"));
    assert!(Fleet::new(&inventory).unwrap_err().to_string().contains("failed to read the key"));
}
