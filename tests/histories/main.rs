//! The program itself: each anomaly that it generates is found by what it says is wrong, and each near miss passes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use rackrift_checkers::generate::history::{ANOMALIES, Kind, Plan};

fn rackrift(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rackrift"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    // Who reads nothing may be gone already.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

fn generated(args: &[&str]) -> Vec<u8> {
    let output = rackrift(&[&["generate", "history"], args].concat(), b"");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn each_anomaly_is_found_by_its_lines_and_its_near_miss_passes() {
    for anomaly in &ANOMALIES {
        let name = anomaly.name;
        let broken = rackrift(&["check", "-"], &generated(&[name, "--seed", "7"]));
        let said = String::from_utf8(broken.stdout).unwrap();
        assert_eq!(broken.status.code(), Some(1), "{name}: {said}");
        let plan = Plan { operations: 200, clients: 3, keys: 1, seed: 7, at: 0.5, kind: Kind::Broken };
        for line in anomaly.history(plan).unwrap().lines() {
            assert!(said.contains(&format!("-:{line}: ")), "{name} does not name line {line}: {said}");
        }
        for legal in ["--near-miss", "--valid"] {
            let near = rackrift(&["check", "-"], &generated(&[name, "--seed", "7", legal]));
            assert_eq!(
                near.status.code(),
                Some(0),
                "{name} {legal}: {}",
                String::from_utf8_lossy(&near.stdout)
            );
        }
    }
}

#[test]
fn a_file_is_written_where_asked_and_wrong_usage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let path = file.to_str().unwrap();
    assert!(generated(&["stale-read", "--out", path]).is_empty());
    assert_eq!(std::fs::read(&file).unwrap(), generated(&["stale-read"]));
    let wrong: [&[&str]; 6] = [
        &["no-such-thing"],
        &[],
        &["stale-read", "--at", "1.5"],
        &["stale-read", "--operations", "0"],
        &["stale-read", "--near-miss", "--valid"],
        &["stale-read", "--out", "/no/such/folder/file"],
    ];
    for args in wrong {
        let output = rackrift(&[&["generate", "history"], args].concat(), b"");
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}
