//! Every anomaly is found wherever it is planted, by the lines planted; its near miss and the valid history pass.

use rackrift_checkers::generate::history::{ANOMALIES, Anomaly, Kind, Made, Plan};
use rackrift_checkers::history::foreign;
use rackrift_checkers::object::{self, Options};
use rackrift_checkers::verdict::{CheckResult, Verdict};

fn made(anomaly: &Anomaly, plan: Plan) -> (Made, Vec<CheckResult>) {
    let made = anomaly.history(plan).unwrap_or_else(|| panic!("{}: no place: {plan:?}", anomaly.name));
    let operations = foreign::read_operations(&made.bytes()).expect("what is written can be read");
    let results = object::check(&operations, &Options::default()).expect("a kind is told by its functions");
    (made, results)
}

fn verdict(results: &[CheckResult]) -> Verdict {
    results.iter().map(|result| result.verdict).reduce(Verdict::merge).expect("something was checked")
}

#[test]
fn each_anomaly_is_found_by_its_lines_and_neither_near_miss_nor_valid_history_is() {
    for anomaly in &ANOMALIES {
        for seed in 0..6 {
            for at in [0.1, 0.5, 0.99] {
                for (clients, keys) in [(3, 1), (4, 2)] {
                    let plan = Plan { operations: 400, clients, keys, seed, at, kind: Kind::Broken };
                    let case = format!("{} {plan:?}", anomaly.name);
                    let (made, results) = made(anomaly, plan);
                    assert_eq!(verdict(&results), Verdict::Fail, "{case}");
                    let witness = results.iter().find_map(|result| result.witnesses.first()).expect(&case);
                    assert_eq!(witness.rule, anomaly.rule, "{case}");
                    let mut named: Vec<u64> = witness.exhibits.iter().filter_map(|e| e.line).collect();
                    named.sort_unstable();
                    assert_eq!(named, made.lines(), "{case}: {}", witness.sentence);
                    legal(anomaly, Plan { kind: Kind::NearMiss, ..plan });
                    legal(anomaly, Plan { kind: Kind::Valid, ..plan });
                }
            }
        }
    }
}

fn legal(anomaly: &Anomaly, plan: Plan) {
    let (_, results) = made(anomaly, plan);
    assert_eq!(verdict(&results), Verdict::Pass, "{} {plan:?}: {}", anomaly.name, results[1].sentence);
}

#[test]
fn a_plan_is_followed_at_every_length_and_by_its_seed_alone() {
    for anomaly in &ANOMALIES {
        for operations in [0, 1, 2, 3, 10, 60] {
            for kind in [Kind::Broken, Kind::NearMiss] {
                let plan = Plan { operations, clients: 3, keys: 1, seed: u64::MAX, at: 0.5, kind };
                assert_eq!(anomaly.history(plan), anomaly.history(plan));
                let long_enough = operations >= 60;
                assert!(anomaly.history(plan).is_some() || !long_enough, "{} {operations}", anomaly.name);
            }
        }
    }
}
