//! What goes wrong, each told once, clearly, with the documented exit code, and nothing left behind.

use std::path::{Path, PathBuf};

use crate::program::{Program, step};

/// The lab's inventory with one thing changed, beside the lab's own so that its relative paths hold.
struct Changed {
    path: PathBuf,
}

impl Changed {
    fn new(original: &Path, name: &str, change: impl FnOnce(String) -> String) -> Self {
        let text = std::fs::read_to_string(original).unwrap();
        let changed = change(text.clone());
        assert_ne!(text, changed, "{name}: nothing was changed");
        let path = original.with_file_name(format!("test-{name}.yaml"));
        std::fs::write(&path, changed).unwrap();
        Self { path }
    }

    fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn each_is_clear(program: &Program) {
    let inventory = program.inventory();
    let folder = inventory.parent().unwrap();

    step("an unreachable host");
    let gone =
        Changed::new(&inventory, "gone", |t| t.replacen("address: 198.18.0.22", "address: 198.18.0.99", 1));
    program.run(&["preflight", "-i", gone.text()], 120).expect_exit(3).expect_says(&["w2", "198.18.0.99"]);
    program
        .run(&["run", "steady", "-i", gone.text()], 120)
        .expect_exit(3)
        .expect_says(&["w2", "198.18.0.99"]);

    step("a wrong key");
    let key = folder.join("test-wrong-key");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(made.success());
    let wrong = Changed::new(&inventory, "key", |t| t.replacen("key: id_ed25519", "key: test-wrong-key", 1));
    program
        .run(&["preflight", "-i", wrong.text()], 120)
        .expect_exit(3)
        .expect_says(&["m1", "test-wrong-key"]);
    for file in [key.clone(), key.with_extension("pub")] {
        std::fs::remove_file(file).unwrap();
    }

    step("a changed host key");
    let known = std::fs::read_to_string(folder.join("known_hosts")).unwrap();
    let lines: Vec<&str> = known.lines().collect();
    let of = |address: &str| lines.iter().position(|l| l.contains(address)).unwrap();
    let (first, second) = (of("198.18.0.11"), of("198.18.0.12"));
    let key_of = |i: usize| lines[i].split_once(' ').unwrap().1;
    let swapped = known.replacen(key_of(first), key_of(second), 1);
    std::fs::write(folder.join("test-known_hosts"), swapped).unwrap();
    let other = Changed::new(&inventory, "host-key", |t| {
        t.replacen("known_hosts: known_hosts", "known_hosts: test-known_hosts", 1)
    });
    program
        .run(&["preflight", "-i", other.text()], 120)
        .expect_exit(3)
        .expect_says(&["m1", "host key", "SHA256:"]);
    std::fs::remove_file(folder.join("test-known_hosts")).unwrap();

    step("a host without iptables");
    // All iptables commands are links to these.
    let hide = "for f in /usr/sbin/xtables-*-multi; do mv $f $f.hidden; done";
    let show = "for f in /usr/sbin/xtables-*-multi.hidden; do mv $f ${f%.hidden}; done";
    program.run(&["lab", "enter", "e2", "--", "bash", "-c", hide], 30).expect_exit(0);
    let told = program.run(&["preflight"], 120);
    let plan = program.run(&["plan", "rack-split"], 120);
    program.run(&["lab", "enter", "e2", "--", "bash", "-c", show], 30).expect_exit(0);
    told.expect_exit(3).expect_says(&["e2", "iptables"]);
    plan.expect_exit(3).expect_says(&["e2", "iptables"]);

    step("a doubled host");
    let doubled = Changed::new(&inventory, "doubled", |t| t.replacen("name: w2", "name: w1", 1));
    program
        .run(&["plan", "-i", doubled.text()], 30)
        .expect_exit(64)
        .expect_says(&["test-doubled.yaml:", "`w1`"]);

    step("a selector that matches nobody");
    let scenario = program.folder().join("nobody.yaml");
    let text = "scenario: nobody\nproves: nothing\ncannot-prove: anything\nworkloads: {}\nbaseline: 1s\n\
        faults: [{cut: {name: x, shape: {rack-split: [\"rack:a & rack:b\", \"all\"]}, hold: 1s}}]\nsettle: 1s\n";
    std::fs::write(&scenario, text).unwrap();
    let path = scenario.display().to_string();
    program.run(&["plan", &path], 60).expect_exit(64).expect_says(&["rack:a & rack:b", "matches no host"]);
    program.run(&["run", &path], 60).expect_exit(64).expect_says(&["rack:a & rack:b", "matches no host"]);

    step("an API server that does not answer");
    let silent = Changed::new(&inventory, "silent", |t| {
        t.replacen("https://198.18.0.12:6443", "https://198.18.0.12:6444", 1)
    });
    program
        .run(&["preflight", "-i", silent.text()], 120)
        .expect_exit(3)
        .expect_says(&["m2", "198.18.0.12:6444"]);

    step("nothing was left behind");
    program.run(&["heal"], 90).expect_exit(0).expect_says(&["clean"]);
}
