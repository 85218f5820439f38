//! A network that dies, between two namespaces of this test's own.

use std::process::Command;
use std::time::Duration;

use rackrift::host::enter;
use rackrift::host::remote::{Outcome, Remote};
use rackrift::ssh::{Fleet, Patience};
use tokio::runtime::Builder;

use crate::server::{Server, Setup};
use crate::{refused, script, until};

/// Two namespaces with a cable between them; gone with the test.
struct Cable {
    here: String,
    there: String,
}

/// Addresses of the two ends, of the range for benchmarks.
const HERE: &str = "198.18.90.1";
const THERE: &str = "198.18.90.2";
/// In the same subnet, and nobody's.
const NOBODY: &str = "198.18.90.9";

impl Cable {
    fn lay(name: &str) -> Self {
        let end = |side: &str| format!("rr-{name}-{}-{side}", std::process::id());
        let cable = Self { here: end("a"), there: end("b") };
        for namespace in [&cable.here, &cable.there] {
            ip(&format!("netns add {namespace}"));
            ip(&format!("-n {namespace} route add unreachable default"));
            ip(&format!("-n {namespace} link set lo up"));
        }
        ip(&format!("-n {} link add cable type veth peer name cable netns {}", cable.here, cable.there));
        for (namespace, address) in [(&cable.here, HERE), (&cable.there, THERE)] {
            ip(&format!("-n {namespace} address add {address}/24 dev cable"));
            ip(&format!("-n {namespace} link set cable up"));
        }
        cable
    }

    /// Pulls the far end out, or puts it in again.
    fn set(&self, state: &str) {
        ip(&format!("-n {} link set cable {state}", self.there));
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for namespace in [&self.here, &self.there] {
            // Everything in there was started by this test.
            let pids = Command::new("ip").args(["netns", "pids", namespace]).output();
            for pid in String::from_utf8_lossy(&pids.map(|o| o.stdout).unwrap_or_default()).split_whitespace()
            {
                let _ = Command::new("kill").args(["-KILL", pid]).output();
            }
            let _ = Command::new("ip").args(["netns", "delete", namespace]).status();
        }
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

const PATIENCE: Patience = Patience {
    dial: Duration::from_secs(1),
    greet: Duration::from_secs(20),
    open: Duration::from_secs(2),
    keepalive: Duration::from_millis(400),
    unanswered: 2,
};

/// Runs a test on a thread inside the near namespace, with a runtime that has no other.
fn inside(name: &str, test: impl AsyncFnOnce(&Cable, &Server) + Send + 'static) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let cable = Cable::lay(name);
    let Some(server) = Server::with(&Setup { namespace: Some((&cable.there, THERE)), ..Setup::default() })
    else {
        return;
    };
    let done = std::thread::spawn(move || {
        let outside = enter::enter(&cable.here).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(&cable, &server));
        drop(runtime);
        outside.back().unwrap();
        assert!(!own_namespace_is(&cable.here), "back outside");
    })
    .join();
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

fn own_namespace_is(name: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |path: &str| std::fs::metadata(path).unwrap().ino();
    of("/proc/thread-self/ns/net") == of(&format!("/run/netns/{name}"))
}

#[test]
fn a_dead_peer_is_noticed_and_what_was_asked_is_unknown() {
    inside("dead", async |cable, server| {
        let fleet = Fleet::with(&server.inventory(), PATIENCE).unwrap();
        assert_eq!(fleet.run("h1", &script("echo one")).await.ok().unwrap(), "one\n");
        let mark = server.key("begun");
        let long = script(&format!("touch {}; sleep 3; touch {}.ended", mark.display(), mark.display()));
        let long = long.limit(Duration::from_secs(120));
        let cut = async {
            until(|| mark.exists()).await;
            cable.set("down");
        };
        let (outcome, ()) = tokio::join!(fleet.run("h1", &long), cut);
        let Outcome::Lost { reason } = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "the connection to 198.18.90.2:2222 broke");
        // Its answer was lost, not the script.
        until(|| server.key("begun.ended").exists()).await;
        let reason = refused(fleet.run("h1", &script("echo two")).await);
        assert!(reason.starts_with("198.18.90.2:2222 cannot be reached: "), "{reason}");
        cable.set("up");
        // A link needs a moment to come up.
        let again =
            async { while fleet.run("h1", &script("echo three")).await.ok().as_deref() != Ok("three\n") {} };
        tokio::time::timeout(Duration::from_secs(60), again).await.expect("it connects anew");
        let mut said = Vec::new();
        let nobody = server.inventory_with(|i| i.racks[0].hosts[0].ssh.address = NOBODY.to_owned());
        said.push(refused(Fleet::with(&nobody, PATIENCE).unwrap().run("h1", &script("echo no")).await));
        let outside = server.inventory_with(|i| i.racks[0].hosts[0].ssh.address = "203.0.113.1".to_owned());
        said.push(refused(Fleet::with(&outside, PATIENCE).unwrap().run("h1", &script("echo no")).await));
        insta::assert_snapshot!("dead-peers", said.join("\n\n"));
    });
}

#[test]
fn a_stream_over_a_dead_network_ends() {
    inside("stream", async |cable, server| {
        let fleet = Fleet::with(&server.inventory(), PATIENCE).unwrap();
        let mut lines = fleet
            .stream("h1", &script("while :; do echo tick; sleep 0.1; done").limit(Duration::from_secs(120)))
            .await
            .unwrap();
        assert_eq!(lines.recv().await.as_deref(), Some("tick"));
        cable.set("down");
        let end =
            tokio::time::timeout(Duration::from_secs(60), async { while lines.recv().await.is_some() {} });
        end.await.expect("the stream ends long before its script's limit");
    });
}

#[test]
fn an_idle_connection_is_kept() {
    inside("idle", async |_, server| {
        let fleet = Fleet::with(&server.inventory(), PATIENCE).unwrap();
        let connection = script("echo $SSH_CONNECTION");
        let before = fleet.run("h1", &connection).await.ok().unwrap();
        assert!(before.starts_with("198.18.90.1 "), "{before}");
        // Longer than both sides' limits for a silent peer.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(fleet.run("h1", &connection).await.ok().unwrap(), before);
    });
}
