//! A controller that is killed while a cut is in force: the hosts heal themselves, and nobody else's rules suffer.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{Program, step};

/// The dead-man's time (20 s), one look of its watcher, and what a busy machine takes.
const HEALED: Duration = Duration::from_secs(45);

/// Whether w1 hears w2 on the data network.
fn hears(program: &Program) -> bool {
    let ping = "ping -c 1 -W 1 198.18.2.22";
    program.run(&["lab", "enter", "w1", "--", "sh", "-c", ping], 20).exit == Some(0)
}

/// A cut that outlasts whoever waits for its controller.
pub(crate) const CUT: &str = "scenario: killed\nproves: nothing\ncannot-prove: anything\nworkloads: {}\nbaseline: 1s\n\
    faults: [{cut: {name: rack-split, shape: {rack-split: [\"rack:a\", \"all - rack:a\"]}, hold: 10m}}]\nsettle: 1s\n";

pub(crate) fn until(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if what() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

pub(crate) fn of_a_killed_controller(program: &Program) {
    step("SIGKILL to the controller in mid-partition");
    let scenario = program.folder().join("killed.yaml");
    std::fs::write(&scenario, CUT).unwrap();
    let mut run = program.start(&["run", &scenario.display().to_string()]);
    let cut = until(Duration::from_secs(90), || !hears(program));
    if !cut {
        run.kill().unwrap();
        run.wait().unwrap();
        panic!("the cut never came");
    }
    let foreign = "iptables -w 5 -A INPUT -s 203.0.113.7 -m comment --comment somebody-else -j DROP";
    program.run(&["lab", "enter", "w1", "--", "sh", "-c", foreign], 20).expect_exit(0);
    let status = program.run(&["status"], 60);
    status.expect_exit(5).expect_says(&["in force", "heals by itself in", "a run is going on"]);

    let killed = Command::new("kill").args(["-KILL", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    run.wait().unwrap();
    assert!(!hears(program), "the cut went with its controller: nothing was tested");
    assert!(until(HEALED, || hears(program)), "the racks do not hear each other {HEALED:?} after the kill");

    let heal = program.run(&["heal"], 90);
    heal.expect_exit(0).expect_says(&["clean"]);
    let rules = program.run(&["lab", "enter", "w1", "--", "iptables-save"], 20);
    rules.expect_exit(0).expect_says(&["somebody-else"]);
    assert!(!rules.out.contains("RACKRIFT-"), "{}", rules.out);
    let back = foreign.replace(" -A ", " -D ");
    program.run(&["lab", "enter", "w1", "--", "sh", "-c", &back], 20).expect_exit(0);
    program.run(&["heal"], 90).expect_exit(0).expect_says(&["clean"]);
}
