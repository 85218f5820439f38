//! What keeps us out, each told once and clearly. The texts are in the snapshots.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rackrift::host::remote::Remote;
use rackrift::inventory::Inventory;
use rackrift::ssh::{Fleet, Patience};

use crate::server::{Server, Setup, free_port};
use crate::{refused, script};

async fn asked(inventory: &Inventory) -> String {
    let patience = Patience { greet: Duration::from_secs(2), ..Patience::default() };
    refused(Fleet::with(inventory, patience).unwrap().run("h1", &script("echo no")).await)
}

/// What differs from run to run is taken out.
fn snapshot(server: &Server, name: &str, said: &[String]) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&server.folder().to_str().unwrap().replace('.', r"\."), "FOLDER");
    settings.add_filter(r":\d{4,5}\b", ":PORT");
    settings.add_filter(r"-p \d{4,5}\b", "-p PORT");
    settings.add_filter(r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:PRINT");
    // Which of its errors the system gives for a closed connection is a matter of moments.
    settings.add_filter("SSH server: [^;]*;", "SSH server: WHY;");
    settings.bind(|| insta::assert_snapshot!(name, said.join("\n\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_us_out_is_told_clearly() {
    let Some(server) = Server::start() else { return };
    let mut said = Vec::new();
    let with = |change: &dyn Fn(&mut Inventory)| server.inventory_with(change);
    said.push(asked(&with(&|i| i.racks[0].hosts[0].ssh.port = free_port())).await);
    said.push(asked(&with(&|i| i.racks[0].hosts[0].ssh.key = Some(server.key("other")))).await);
    said.push(asked(&with(&|i| i.racks[0].hosts[0].ssh.user = "nobody-here".to_owned())).await);
    said.push(asked(&with(&|i| i.known_hosts = Some(server.known_hosts("empty", "")))).await);
    said.push(asked(&with(&|i| i.known_hosts = Some(server.known_by("other-host", "")))).await);
    said.push(asked(&with(&|i| i.known_hosts = Some(server.known_by("host", "@revoked ")))).await);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    said.push(asked(&with(&|i| i.racks[0].hosts[0].ssh.port = silent.local_addr().unwrap().port())).await);
    let fleet = Fleet::new(&server.inventory()).unwrap();
    said.push(refused(fleet.run("h9", &script("echo no")).await));
    snapshot(&server, "refusals", &said);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_answers_in_the_shell_s_place_is_told() {
    let mut said = Vec::new();
    let mut last = None;
    for (line, sudo) in [
        ("ForceCommand echo This account is for backups only.", false),
        ("ForceCommand echo sudo: a password is required >&2; exit 1", true),
        ("ForceCommand echo sudo: sorry, you must have a tty to run sudo >&2; exit 1", true),
        ("ForceCommand exec no-such-command-as-sudo", true),
    ] {
        let Some(server) = Server::with(&Setup { lines: &[line], ..Setup::default() }) else { return };
        said.push(asked(&server.inventory_with(|i| i.racks[0].hosts[0].ssh.sudo = sudo)).await);
        last = Some(server);
    }
    snapshot(&last.unwrap(), "other-shells", &said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sessions_says_so() {
    let lines = &["MaxSessions 0"];
    let Some(server) = Server::with(&Setup { lines, ..Setup::default() }) else { return };
    let patience = Patience { open: Duration::from_secs(1), ..Patience::default() };
    let fleet = Fleet::with(&server.inventory(), patience).unwrap();
    snapshot(&server, "no-sessions", &[refused(fleet.run("h1", &script("echo no")).await)]);
}

/// One runtime thread and one task: every script asks before the first answer can come.
#[tokio::test]
async fn a_host_that_lets_nobody_in_is_tried_once_for_all_who_wait() {
    let Some(server) = Server::start() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let knocked = Arc::new(AtomicUsize::new(0));
    std::thread::spawn({
        let knocked = Arc::clone(&knocked);
        move || {
            for caller in listener.incoming() {
                knocked.fetch_add(1, Ordering::SeqCst);
                drop(caller);
            }
        }
    });
    let fleet =
        Arc::new(Fleet::new(&server.inventory_with(|i| i.racks[0].hosts[0].ssh.port = port)).unwrap());
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let fleet = Arc::clone(&fleet);
            tokio::spawn(async move { refused(fleet.run("h1", &script("echo no")).await) })
        })
        .collect();
    let mut said = Vec::new();
    for task in tasks {
        said.push(task.await.unwrap());
    }
    assert_eq!(knocked.load(Ordering::SeqCst), 1);
    said.dedup();
    snapshot(&server, "no-greeting", &said);
}

#[test]
fn unusable_files_are_wrong_input() {
    let Some(server) = Server::start() else { return };
    let wrong =
        |change: &dyn Fn(&mut Inventory)| Fleet::new(&server.inventory_with(change)).unwrap_err().to_string();
    let key = |name: &'static str| {
        let path = server.key(name);
        wrong(&|i| i.racks[0].hosts[0].ssh.key = Some(path.clone()))
    };
    server.known_hosts("no-key", "not a key");
    let said = [
        wrong(&|i| i.known_hosts = Some(server.key("none"))),
        wrong(&|i| i.known_hosts = Some(server.known_hosts("torn", "# torn\n127.0.0.1 ssh-ed25519\n"))),
        key("none"),
        key("no-key"),
        key("user.pub"),
        key("locked"),
    ];
    snapshot(&server, "files", &said);
}
