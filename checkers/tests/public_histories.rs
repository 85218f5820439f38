//! Other people's histories with known verdicts, each of them decided.
//!
//! They lie beside the repository, in `../shared/histories`, and are not part of it; without them the test says so.
#![expect(clippy::print_stdout, reason = "why nothing was tested, or what was")]
#![expect(clippy::unwrap_used, reason = "a file of the corpus that cannot be read fails the test")]

use std::path::{Path, PathBuf};

use rackrift_checkers::engine::search::{Call, Limits, Model, Outcome, check, check_parts, parts, verify};
use rackrift_checkers::history::{Op, Value, calls, foreign};
use rackrift_checkers::model::{Lock, PerKey, Register, Registers, Text, reading};
use reading::Refused;

/// The folder of public histories, if it is there.
fn folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let told = std::env::var_os("RACKRIFT_HISTORIES").map(PathBuf::from);
    let folder = told.into_iter().chain([root.join("../shared/histories")]).find(|p| p.is_dir());
    if folder.is_none() {
        println!("skipped: there are no public histories in ../shared/histories");
    }
    folder
}

struct Case {
    file: PathBuf,
    model: String,
    start: Option<String>,
    linearizable: Option<bool>,
}

fn cases(folder: &Path) -> Vec<Case> {
    let table = std::fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let field = |name: &str| names.iter().position(|n| *n == name).map(|i| fields[i].to_owned());
            Case {
                file: folder.join(field("file").unwrap()),
                model: field("model").unwrap(),
                start: field("initial"),
                linearizable: match field("verdict").unwrap().as_str() {
                    "linearizable" => Some(true),
                    "nonlinearizable" => Some(false),
                    _ => None,
                },
            }
        })
        .collect()
}

fn decide<M: Model>(model: &M, calls: &[Call<M::Op>], file: &Path) -> bool {
    match check(model, calls, Limits::default()) {
        Outcome::Linearizable(order) => {
            verify(model, calls, &order).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            true
        }
        Outcome::Violation(_) => false,
        Outcome::Undecided(e) => panic!("{}: undecided: {e:?}", file.display()),
    }
}

fn linearizable(case: &Case, ops: &[Op]) -> bool {
    let (calls, flaws) = calls::pair(ops);
    assert_eq!(flaws, [], "{}", case.file.display());
    let start = match case.start.as_deref() {
        Some("0") => Value::Int(0),
        _ => Value::Nil,
    };
    match case.model.as_str() {
        "cas-register" => {
            // Knossos drops what failed, and takes a read of nil for one that says nothing.
            let knossos = case.start.is_some();
            let refused = if knossos { Refused::TellsNothing } else { Refused::Tells };
            decide(&Register { start }, &reading::register(&calls, refused, knossos).1, &case.file)
        }
        "kv-append" => {
            let (at, ops) = reading::text(&calls);
            let keyed: Vec<_> = at
                .iter()
                .zip(ops)
                .map(|(&at, call)| Call {
                    inv: call.inv,
                    ret: call.ret,
                    op: (calls[at].first.key.clone().unwrap(), call.op),
                })
                .collect();
            let whole = decide(&PerKey::new(Text), &keyed, &case.file);
            let mut apart = parts(&keyed, |(key, _)| key.clone());
            let apart: std::collections::BTreeMap<_, _> = std::mem::take(&mut apart)
                .into_iter()
                .map(|(key, (at, calls))| {
                    let of = |c: Call<(String, _)>| Call { inv: c.inv, ret: c.ret, op: c.op.1 };
                    (key, (at, calls.into_iter().map(of).collect()))
                })
                .collect();
            let outcomes = check_parts(&Text, &apart, Limits::default());
            assert_eq!(whole, outcomes.values().all(|o| matches!(o, Outcome::Linearizable(_))));
            whole
        }
        "multi-register" => {
            let start = [("x", 0), ("y", 0)].map(|(k, v)| (k.to_owned(), Value::Int(v)));
            decide(
                &Registers { start: start.into(), others: Value::Nil },
                &reading::registers(&calls).1,
                &case.file,
            )
        }
        "mutex" => decide(&Lock, &reading::lock(&calls, Refused::TellsNothing).1, &case.file),
        other => panic!("no model for {other}"),
    }
}

fn all(name: &str, at_least: usize) {
    let Some(folder) = folder() else { return };
    let mut decided = 0;
    for case in cases(&folder.join(name)) {
        let bytes = std::fs::read(&case.file).unwrap();
        let read = foreign::read_operations(&bytes).unwrap_or_else(|e| panic!("{}:{e}", case.file.display()));
        let started = std::time::Instant::now();
        let got = linearizable(&case, &read.ops);
        if started.elapsed().as_millis() >= 20 {
            println!("{}: {:?}", case.file.display(), started.elapsed());
        }
        if let Some(expected) = case.linearizable {
            assert_eq!(got, expected, "{}", case.file.display());
            decided += 1;
        }
    }
    println!("{name}: {decided} histories, each with its known verdict");
    assert!(decided >= at_least, "only {decided} histories");
}

#[test]
fn porcupine() {
    all("porcupine", 73);
}

#[test]
fn knossos() {
    all("knossos", 82);
}

/// Without being told anything, each file's kind and start are found, and its verdict with them.
#[test]
fn all_are_judged_without_being_told_what_they_are() {
    use rackrift_checkers::object;
    use rackrift_checkers::verdict::Verdict;
    let Some(folder) = folder() else { return };
    for name in ["porcupine", "knossos"] {
        for case in cases(&folder.join(name)) {
            let operations = foreign::read_operations(&std::fs::read(&case.file).unwrap()).unwrap();
            let checks = object::check(&operations, &object::Options::default()).unwrap();
            let expected = match case.linearizable {
                _ if operations.ops.is_empty() => Verdict::Invalid,
                Some(false) => Verdict::Fail,
                _ => Verdict::Pass,
            };
            assert_eq!(checks[0].verdict, Verdict::Pass, "{}: {}", case.file.display(), checks[0].sentence);
            assert_eq!(checks[1].verdict, expected, "{}: {}", case.file.display(), checks[1].sentence);
        }
    }
}

#[test]
fn the_lock_that_etcd_gave_to_two() {
    use rackrift_checkers::object;
    let Some(folder) = folder() else { return };
    let bytes = std::fs::read(folder.join("knossos/mutex/bad/etcd.edn")).unwrap();
    let operations = foreign::read_operations(&bytes).unwrap();
    let checks = object::check(&operations, &object::Options::default()).unwrap();
    // The operation of index 1119, which knossos names, stands on line 1120.
    assert_eq!(
        checks[1].sentence,
        "Two holders of the object: process 0 acquired it (line 1120) while process 3 definitely held it (line 1110)."
    );
}
