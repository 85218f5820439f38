//! How scripts end, and what comes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rackrift::host::remote::{Outcome, Remote};
use rackrift::ssh::Fleet;

use crate::server::{Server, Setup};
use crate::{fleet, gone, script, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_script_s_output_and_status_come_back_and_nothing_else() {
    let Some(server) = Server::with(&Setup { lines: &["Banner FOLDER/config"], ..Setup::default() }) else {
        return;
    };
    let fleet = fleet(&server);
    let outcome = fleet.run("h1", &script("echo out; echo err >&2; read x || echo 'no input'; exit 3")).await;
    let Outcome::Done(done) = outcome else { panic!("{outcome:?}") };
    assert_eq!((done.status, done.stdout.as_str(), done.stderr.as_str()), (3, "out\nno input\n", "err\n"));
    let big = format!("wc -c <<'X'\n{}\nX\n", "x".repeat(5 << 20));
    let outcome = fleet.run("h1", &script(&big)).await;
    assert_eq!(outcome.ok().unwrap().trim(), ((5 << 20) + 1).to_string());
    let capped = script("yes | head -c 3000000; yes | head -c 3000000 >&2").cap(1000);
    let Outcome::Done(done) = fleet.run("h1", &capped).await else { panic!("not done") };
    assert_eq!((done.stdout.len(), done.stderr.len(), done.truncated), (1000, 1000, true));
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
async fn a_host_that_reads_nothing_costs_no_more_than_the_limit() {
    let lines = &["ForceCommand exec sleep 12"];
    let Some(server) = Server::with(&Setup { lines, ..Setup::default() }) else { return };
    // More than the channel's window: the sending cannot end.
    let big = format!(": '{}'", "x".repeat(8 << 20));
    let outcome = fleet(&server).run("h1", &script(&big).limit(Duration::from_secs(1))).await;
    assert!(matches!(outcome, Outcome::TimedOut { .. }), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_script_and_a_killed_server_are_told_apart() {
    let Some(server) = Server::start() else { return };
    let fleet = fleet(&server);
    let outcome = fleet.run("h1", &script("echo so far; kill -KILL $$")).await;
    let Outcome::Signalled { signal, output } = outcome else { panic!("{outcome:?}") };
    assert_eq!((signal.as_str(), output.stdout.as_str()), ("KILL", "so far\n"));
    // The parent of `timeout` is the shell that sshd started.
    let outcome = fleet.run("h1", &script("echo so far; kill -KILL $(ps -o ppid= -p $PPID); sleep 1")).await;
    let Outcome::Signalled { signal, output } = outcome else { panic!("{outcome:?}") };
    assert_eq!((signal.as_str(), output.stdout.as_str()), ("KILL", "so far\n"));
    // And its parent is the sshd process that serves this connection.
    let outcome = fleet
        .run("h1", &script("p=$(ps -o ppid= -p $PPID); p=$(ps -o ppid= -p $p); kill -KILL $p; sleep 3"))
        .await;
    assert!(matches!(outcome, Outcome::Lost { .. }), "{outcome:?}");
    assert_eq!(fleet.run("h1", &script("echo again")).await.ok().unwrap(), "again\n", "it connects anew");
}

/// Runs so many scripts at once; gives the connections that they came over.
async fn at_once(fleet: &Arc<Fleet>, number: usize) -> BTreeSet<String> {
    let mut all = Vec::new();
    for i in 0..number {
        let fleet = Arc::clone(fleet);
        all.push(tokio::spawn(async move {
            let said = fleet.run("h1", &script(&format!("sleep 0.05; echo {i} $SSH_CONNECTION"))).await;
            (i, said.ok().unwrap())
        }));
    }
    let mut connections = BTreeSet::new();
    for one in all {
        let (i, said) = one.await.unwrap();
        let (number, connection) = said.trim().split_once(' ').unwrap();
        assert_eq!(number, i.to_string());
        connections.insert(connection.to_owned());
    }
    connections
}

#[tokio::test(flavor = "multi_thread")]
async fn many_scripts_at_once_share_one_connection() {
    let Some(server) = Server::start() else { return };
    let fleet = Arc::new(fleet(&server));
    let connections = at_once(&fleet, 40).await;
    assert_eq!(connections.len(), 1, "{connections:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_allows_fewer_sessions_makes_scripts_wait_for_each_other() {
    let lines = &["MaxSessions 2"];
    let Some(server) = Server::with(&Setup { lines, ..Setup::default() }) else { return };
    let fleet = Arc::new(fleet(&server));
    let connections = at_once(&fleet, 20).await;
    assert_eq!(connections.len(), 1, "{connections:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_script_hinders_no_other() {
    let Some(server) = Server::start() else { return };
    let fleet = Arc::new(fleet(&server));
    let mark = server.folder().join("begun");
    for _ in 0..10 {
        let begun = mark.clone();
        let endless = script(&format!("touch {}; yes", begun.display())).limit(Duration::from_secs(3));
        let task = tokio::spawn({
            let fleet = Arc::clone(&fleet);
            async move { fleet.run("h1", &endless).await }
        });
        until(|| begun.exists()).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        std::fs::remove_file(&begun).unwrap();
        assert_eq!(fleet.run("h1", &script("echo here")).await.ok().unwrap(), "here\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rsa_keys_serve_users_and_hosts() {
    let Some(server) = Server::with(&Setup { rsa: true, ..Setup::default() }) else { return };
    let inventory = server.inventory_with(|i| {
        i.racks[0].hosts[0].ssh.key = Some(server.key("user-rsa"));
        // The server prefers its ed25519 key, which is not known.
        i.known_hosts = Some(server.known_by("host-rsa", ""));
    });
    let fleet = Fleet::new(&inventory).unwrap();
    assert_eq!(fleet.run("h1", &script("echo rsa")).await.ok().unwrap(), "rsa\n");
}

/// There may be no sudo here; what matters is how it is called, and that it clears the environment.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_sudo_is_root_and_still_knows_where_we_came_from() {
    let Some(server) =
        Server::with(&Setup { lines: &["SetEnv PATH=FOLDER:/usr/bin:/bin"], ..Setup::default() })
    else {
        return;
    };
    let sudo =
        server.known_hosts("sudo", "#!/bin/sh\n[ \"$1\" = -n ] && shift && exec env -i VIA=sudo \"$@\"\n");
    std::fs::set_permissions(sudo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let inventory = server.inventory_with(|i| i.racks[0].hosts[0].ssh.sudo = true);
    let fleet = Fleet::new(&inventory).unwrap();
    let said =
        fleet.run("h1", &script("echo $VIA ${SSH_CONNECTION%% *}; command -v iptables")).await.ok().unwrap();
    assert!(said.starts_with("sudo 127.0.0.1\n"), "{said}");
}
