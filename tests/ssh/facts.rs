//! What is found out about a host over SSH: its facts and its clock.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rackrift::command::preflight;
use rackrift::exit::Exit;
use rackrift::host::clock;
use rackrift::host::remote::Remote;
use rackrift::inventory::Inventory;
use rackrift::run::recorder::Recorder;
use rackrift::ssh::Fleet;

use crate::server::{Server, Setup, free_port};

/// One host with a data address of each family, so that both firewalls are needed.
fn inventory(server: &Server) -> Inventory {
    server.inventory_with(|i| {
        let addresses = ["198.18.1.11", "fd00::11"].map(|a| a.parse().unwrap());
        i.racks[0].hosts[0].addresses = [("data".to_owned(), addresses.to_vec())].into();
    })
}

fn remote(inventory: &Inventory) -> Arc<dyn Remote> {
    Arc::new(Fleet::new(inventory).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_iptables_gets_one_message() {
    let tools = ["/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"];
    if !tools.iter().all(|t| Path::new(t).exists()) {
        eprintln!("skipped: there is no iptables to be hidden");
        return;
    }
    let Some(server) = Server::with(&Setup { hidden: &tools, ..Setup::default() }) else { return };
    let inventory = inventory(&server);
    let found = preflight::look(&remote(&inventory), &inventory).await;
    assert_eq!(found.exit(), Exit::Harness);
    insta::assert_snapshot!(found.wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_has_all_and_one_that_is_off() {
    let Some(server) = Server::start() else { return };
    let mut inventory = inventory(&server);
    let mut off = inventory.racks[0].hosts[0].clone();
    off.name = "h2".to_owned();
    off.ssh.port = free_port();
    inventory.racks[0].hosts.push(off);
    let found = preflight::look(&remote(&inventory), &inventory).await;
    let of_h2: Vec<&String> = found.wrong.iter().filter(|w| w.starts_with("h2: ")).collect();
    assert_eq!(of_h2.len(), 1, "{found}");
    assert!(of_h2[0].contains("cannot be reached"), "{found}");
    if Path::new("/usr/sbin/iptables").exists() {
        assert_eq!(found.wrong.len(), 1, "{found}");
    }
}

/// Host and controller are one machine here, so the truth is known.
#[tokio::test(flavor = "multi_thread")]
async fn clock_samples_hold_the_true_time() {
    let Some(server) = Server::start() else { return };
    let inventory = server.inventory();
    let remote = remote(&inventory);
    let path = server.key("history.jsonl");
    let recorder = Recorder::create(&path, "clocks").unwrap();
    let uptime = || {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        clock::hundredths(text.split_whitespace().next().unwrap()).unwrap()
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().replace('-', "");
    let samplers = clock::start(&remote, &inventory, &recorder);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = (uptime(), recorder.now());
    let samples = samplers.stop(Duration::from_secs(20)).await;
    let after = (uptime(), recorder.now());
    assert!(samples.len() >= 3, "one at once, one by its period, one at the end: {samples:?}");
    let last = samples.last().unwrap();
    assert!(samples.iter().all(|s| s.host == "h1" && s.host_time.boot == boot && s.sent < s.received));
    assert!(before.1 <= last.sent && last.received <= after.1);
    assert!(before.0 <= last.host_time.mono && last.host_time.mono <= after.0);
    let wall = last.wall.unwrap();
    assert!(wall > 1_700_000_000_000_000_000, "ns since 1970: {wall}");
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().filter(|l| l.starts_with("{\"clock\":")).count(), samples.len(), "{written}");
}
