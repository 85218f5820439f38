//! Many controllers killed at random moments of a run on the real lab. Long, so it is `scripts/lab-kills` that runs it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::program::{Program, step};
use crate::survival::{CUT, until};

const HOSTS: [&str; 8] = ["m1", "w1", "e1", "m2", "w2", "e2", "e3", "lb"];
/// From its start to here, a run looks at the hosts, prepares and cuts; later it only holds the cut.
const LATEST_S: f64 = 20.0;
/// The dead-man's time (20 s), one look of its watcher, and what a busy machine takes.
const CLEAN: Duration = Duration::from_secs(60);

/// The rules of all hosts, counters aside.
fn rules(program: &Program) -> BTreeMap<&'static str, String> {
    let each = "for t in iptables ip6tables; do for k in nft legacy; do $t-$k-save 2>/dev/null; done; done | \
        sed -e '/^#/d' -e 's/\\[[0-9]*:[0-9]*\\]//'; nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'";
    HOSTS.map(|host| (host, program.run(&["lab", "enter", host, "--", "sh", "-c", each], 30).out)).into()
}

/// The rules once they no longer change by themselves: a kubelet puts its own in while it starts.
fn settled_rules(program: &Program) -> BTreeMap<&'static str, String> {
    let mut last = rules(program);
    let quiet = until(Duration::from_secs(120), || {
        std::thread::sleep(Duration::from_secs(10));
        let now = rules(program);
        let same = now == last;
        last = now;
        same
    });
    assert!(quiet, "the rules of the lab go on changing by themselves");
    last
}

#[test]
#[ignore = "long: scripts/lab-kills runs it"]
fn whenever_a_controller_is_killed_the_lab_ends_up_clean() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let (kills, first) = (number("RACKRIFT_KILLS", 10_u64), number("RACKRIFT_SEED", 1_u64));
    let program = Program::new();
    program.run(&["lab", "up", "--yes"], 1800).expect_exit(0);
    let scenario = program.folder().join("killed.yaml");
    std::fs::write(&scenario, CUT).unwrap();
    let before = settled_rules(&program);
    for seed in first..first + kills {
        let after = Duration::from_secs_f64(StdRng::seed_from_u64(seed).random_range(0.0..LATEST_S));
        let mut run = program.start(&["run", &scenario.display().to_string()]);
        std::thread::sleep(after);
        run.kill().unwrap();
        run.wait().unwrap();
        let dead = Instant::now();
        let left = program.run(&["status"], 60);
        let state = if left.exit == Some(0) { "nothing on the hosts" } else { "a fault on the hosts" };
        let clean = until(CLEAN, || program.run(&["status"], 60).exit == Some(0));
        assert!(
            clean,
            "seed {seed}: not clean {CLEAN:?} after the kill\n{}",
            program.run(&["status"], 60).out
        );
        let took = dead.elapsed();
        for (host, now) in rules(&program) {
            assert_eq!(now, before[host], "seed {seed}: the rules of {host} are not those of before");
        }
        step(&format!(
            "seed {seed}: killed after {:.1} s, {state}; clean after {:.1} s",
            after.as_secs_f64(),
            took.as_secs_f64()
        ));
    }
    program.run(&["heal"], 90).expect_exit(0).expect_says(&["clean"]);
    program.run(&["lab", "down"], 120).expect_exit(0);
}
