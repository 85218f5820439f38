//! Sets and lists that only grow, against the plainest possible check.
#![expect(clippy::print_stdout, reason = "how much was compared, for whoever runs this by hand")]

mod amount;

use std::collections::BTreeMap;

use rackrift_checkers::brute;
use rackrift_checkers::engine::NEVER;
use rackrift_checkers::engine::growing::{Act, Operation, Shape, check};
use rackrift_checkers::generate::{Chance, clients};

/// Compared in the tests of every day.
const HISTORIES: u64 = 100_000;

fn history(seed: u64, shape: Shape) -> Vec<Operation> {
    let mut chance = Chance::seeded(seed);
    let work = clients::Shape {
        operations: 2 + chance.index(8),
        clients: 1 + chance.index(4),
        lost: 200 * chance.below(3),
        seed,
    };
    let (mut next, mut held) = (0, Vec::<u64>::new());
    let done = clients::work(
        work,
        |chance, _| {
            next += 1;
            chance.happens(1, 2).then_some(next)
        },
        |_, ask| {
            if let Some(element) = ask {
                held.push(*element);
            }
            held.clone()
        },
    );
    let mut ops: Vec<Operation> = done
        .into_iter()
        .filter_map(|done| {
            let act = match (done.ask, done.answer) {
                (Some(element), _) => Act::Add(element),
                (None, Some(all)) if done.ret != NEVER => Act::Read(all),
                _ => return None,
            };
            Some(Operation { inv: done.inv, ret: done.ret, act })
        })
        .collect();
    if chance.happens(2, 3) && !ops.is_empty() {
        let (i, j) = (chance.index(ops.len()), chance.index(ops.len()));
        let inv = ops[j].inv;
        match (chance.below(4), &mut ops[i]) {
            (0, Operation { act: Act::Read(all), .. }) if !all.is_empty() => {
                let at = chance.index(all.len());
                all.remove(at);
            }
            (1, Operation { act: Act::Read(all), .. }) => all.push(1 + chance.below(next)),
            (2, op) => op.inv = inv.min(op.ret),
            (3, Operation { act: Act::Read(all), .. }) if shape == Shape::List && all.len() > 1 => {
                let at = chance.index(all.len() - 1);
                all.swap(at, at + 1);
            }
            (_, op) => {
                if let Act::Add(element) = op.act {
                    op.act = Act::Failed(element);
                }
            }
        }
    }
    ops
}

fn compare(shape: Shape) {
    let histories = amount::histories(HISTORIES);
    let (mut yes, mut rules) = (0u64, BTreeMap::new());
    for seed in 0..histories {
        let ops = history(seed, shape);
        let intervals: Vec<_> = ops
            .iter()
            .map(|op| (op.inv, if matches!(op.act, Act::Failed(_)) { NEVER } else { op.ret }))
            .collect();
        let expected = brute::linearizable(&intervals, [Vec::<u64>::new()], |held, n| match &ops[n].act {
            Act::Add(element) => {
                let mut next = held.clone();
                next.push(*element);
                if shape == Shape::Set {
                    next.sort_unstable();
                }
                vec![next]
            }
            Act::Failed(_) => vec![],
            Act::Read(all) => {
                let mut all = all.clone();
                if shape == Shape::Set {
                    all.sort_unstable();
                }
                if all == *held { vec![held.clone()] } else { vec![] }
            }
        });
        match check(&ops, shape) {
            Ok(()) => {
                assert!(expected, "{shape:?} seed {seed}: passed: {ops:#?}");
                yes += 1;
            }
            Err(v) => {
                assert!(!expected, "{shape:?} seed {seed}: {v:?}: {ops:#?}");
                // The pair contradicts by itself, where the rule is one of time.
                if let (Some(against), Some(margin)) = (v.against, v.margin) {
                    let (a, b) = (&ops[v.culprit], &ops[against]);
                    assert!(margin > 0 && (a.ret < b.inv || b.ret < a.inv), "{shape:?} seed {seed}: {v:?}");
                }
                *rules.entry(v.rule).or_insert(0u64) += 1;
            }
        }
    }
    println!("{shape:?}: {histories} histories, {yes} linearizable; {rules:?}");
    assert!(yes > histories / 3 && histories - yes > histories / 10 && rules.len() >= 6, "{rules:?}");
}

#[test]
fn sets() {
    compare(Shape::Set);
}

#[test]
fn lists() {
    compare(Shape::List);
}
