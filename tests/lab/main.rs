//! Tests on the real lab: real machines, real etcd and Kubernetes, real cuts. One bring-up serves all of them.
//!
//! They need root on Debian 12 and some minutes, so they run only when `RACKRIFT_TEST_LAB` is set; `scripts/test`
//! sets it. They run in one test, in order, because they share the lab and each leaves it as it found it.
#![expect(clippy::unwrap_used, reason = "in a test's helpers too, what must not fail ends the test")]
#![expect(clippy::print_stderr, reason = "a test of minutes says where it is")]

mod kills;
mod machine;
mod messages;
mod program;
mod split;
mod survival;

use machine::Machine;
use program::{Program, step};

#[test]
fn the_whole_way_on_a_real_lab() {
    if std::env::var_os("RACKRIFT_TEST_LAB").is_none() {
        eprintln!("skipped: set RACKRIFT_TEST_LAB=1 (root, Debian 12) to build a real lab and cut it");
        return;
    }
    let program = Program::new();
    step("clearing what a dead lab may have left");
    program.run(&["lab", "down"], 120).expect_exit(0);
    let before = Machine::now();

    step("lab up");
    program.run(&["lab", "up", "--yes"], 1800).expect_exit(0);
    step("lab up again changes nothing");
    program.run(&["lab", "up", "--yes"], 120).expect_exit(0);
    program.run(&["lab", "status"], 60).expect_exit(0);
    program.run(&["preflight"], 120).expect_exit(0);

    messages::each_is_clear(&program);
    split::is_seen_and_judged(&program);
    split::without_its_fault_is_invalid(&program);
    survival::of_a_killed_controller(&program);

    step("lab down");
    program.run(&["lab", "down"], 120).expect_exit(0);
    let after = Machine::now();
    assert_eq!(before.differences(&after), Vec::<String>::new(), "the lab left something behind");
}
