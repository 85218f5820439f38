//! Many controllers killed at random moments, while somebody else changes rules all the time.
//!
//! The loop is long, so it is `scripts/kills` that runs it; the one kill of `dead_man` is in every run of the tests.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::bench::{Bench, racks};
use crate::support::heard::matrix;
use crate::support::namespaces::{Lab, until};

const HOSTS: [&str; 4] = ["m1", "w1", "m2", "w2"];
const LAB: &str = "RACKRIFT_TEST_LAB";
/// Dead-man's time: the least there is.
const TTL: Duration = Duration::from_secs(6);
/// A whole life of the controller below takes less on a calm machine, so that some kills come after its end.
const LATEST: Duration = Duration::from_millis(6_000);

/// A controller with a short life: prepares, cuts, renews for a while, heals.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: the process that another test starts and kills"]
async fn controller() {
    let handle = std::env::var(LAB).expect("the lab is named");
    let (prefix, folder) = handle.split_once(' ').expect("prefix and folder");
    let bench = Bench::over(Arc::new(Lab::attach(prefix, Path::new(folder), &HOSTS)));
    let mut request = bench.request(1, &racks());
    request.ttl = TTL;
    let cut = bench.prepare(bench.plan(&request).await).await;
    let alive = cut.keep_alive();
    cut.commit().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    alive.stop().await;
    cut.heal().await;
}

/// Rules that come and go on a host, as kube-proxy's (a whole table rewritten) and Calico's (put first) do.
struct Neighbour(std::process::Child);

impl Neighbour {
    fn on(lab: &Lab, host: &str) -> Self {
        let line = "while :; do \
            printf '*mangle\\n:KUBE-X - [0:0]\\n-A KUBE-X -s 198.18.9.9 -j RETURN\\nCOMMIT\\n' | iptables-nft-restore -w 10 --noflush; \
            iptables-nft -w 10 -t raw -I PREROUTING 1 -s 198.18.9.8 -m comment --comment cali -j ACCEPT; sleep 0.2; \
            iptables-nft -w 10 -t raw -D PREROUTING -s 198.18.9.8 -m comment --comment cali -j ACCEPT; \
            iptables-nft -w 10 -t mangle -F KUBE-X; iptables-nft -w 10 -t mangle -X KUBE-X; sleep 0.1; done";
        let child = Command::new("ip")
            .args(["netns", "exec", &lab.namespace(host), "sh", "-c", line])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Ends it, and takes away what it was about to take away itself.
    fn stop(mut self, lab: &Lab, host: &str) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        lab.on(
            host,
            "sleep 0.5; iptables-nft -w 10 -t raw -D PREROUTING -s 198.18.9.8 -m comment --comment cali -j ACCEPT 2>/dev/null || :; \
             { iptables-nft -w 10 -t mangle -F KUBE-X && iptables-nft -w 10 -t mangle -X KUBE-X; } 2>/dev/null || :",
        );
    }
}

/// One life and one death. What the hosts looked like when the controller died, and how long until all were clean.
async fn kill_one(seed: u64) -> (&'static str, Duration) {
    let mut chance = StdRng::seed_from_u64(seed);
    let bench = Bench::new(&HOSTS);
    // The tables and base chains that the neighbour uses are there before, so that they are there after.
    bench.lab.on(
        "m1",
        "iptables-nft -t mangle -N KEPT; iptables-nft -t raw -N KEPT; \
         iptables-nft -t raw -I PREROUTING 1 -s 198.18.9.8 -j ACCEPT; iptables-nft -t raw -D PREROUTING 1",
    );
    let before = bench.all_rules();
    let neighbour = Neighbour::on(&bench.lab, "m1");
    let (prefix, folder) = bench.lab.handle();
    let mut controller = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::controller", "--ignored"])
        .env(LAB, format!("{prefix} {}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    tokio::time::sleep(LATEST.mul_f64(chance.random_range(0.0..1.0))).await;
    let ended = controller.try_wait().unwrap().is_some();
    controller.kill().unwrap();
    controller.wait().unwrap();
    let dead = Instant::now();
    let acting = HOSTS.iter().filter(|h| bench.lab.run_dir(h).join("test-1/committed").exists()).count();
    let moment = match (ended, acting, bench.left_behind().len()) {
        (true, ..) => "after its end",
        (_, 0, 0) => "before the first host",
        (_, 0, _) => "prepared",
        (_, 4, _) => "in force",
        _ => "half in force or half healed",
    };
    let gone = until(Duration::from_secs(60), || {
        bench.left_behind().is_empty() && HOSTS.iter().all(|h| !bench.lab.rules(h).contains("RACKRIFT"))
    });
    assert!(gone.await, "seed {seed}, {moment}: left {:?} {:#?}", bench.left_behind(), bench.all_rules());
    let clean_after = dead.elapsed();
    neighbour.stop(&bench.lab, "m1");
    assert_eq!(bench.all_rules(), before, "seed {seed}, {moment}");
    assert!(matrix(&bench.lab).values().all(|heard| *heard), "seed {seed}, {moment}");
    let quiet = until(Duration::from_secs(10), || HOSTS.iter().all(|h| bench.lab.processes(h).is_empty()));
    assert!(quiet.await, "seed {seed}, {moment}: a process is left on a host");
    (moment, clean_after)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: scripts/kills runs it"]
#[expect(clippy::print_stdout, reason = "the figures of a long run")]
async fn whenever_a_controller_is_killed_its_hosts_end_up_clean() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let (kills, first) = (number("RACKRIFT_KILLS", 4_u64), number("RACKRIFT_SEED", 1_u64));
    let mut seen = std::collections::BTreeMap::<&str, (u32, Duration)>::new();
    for seed in first..first + kills {
        let (moment, clean_after) = kill_one(seed).await;
        let entry = seen.entry(moment).or_default();
        *entry = (entry.0 + 1, entry.1.max(clean_after));
    }
    for (moment, (count, longest)) in seen {
        println!("{count:4} killed {moment}: all clean, the last after {:.1} s", longest.as_secs_f64());
    }
}
