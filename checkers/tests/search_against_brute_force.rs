//! The search engine against the plainest possible check, on small random histories, half of them broken.
#![expect(clippy::print_stdout, reason = "how much was compared, for whoever runs this by hand")]

use std::fmt::Debug;

use rackrift_checkers::brute;
use rackrift_checkers::engine::NEVER;
use rackrift_checkers::engine::search::{Call, Limits, Model, Outcome, check, verify};
use rackrift_checkers::generate::Chance;
use rackrift_checkers::model::{Register, RegisterOp};

/// Compared for each model.
const HISTORIES: u64 = 120_000;

/// A history of a simulated object: `ask` chooses what is asked, `answer` gives the answer in a state, `lost` what is
/// known of an operation whose answer was lost.
struct Simulated<'a, M: Model, A> {
    model: &'a M,
    ask: &'a dyn Fn(&mut Chance) -> A,
    answer: &'a dyn Fn(&M::State, &A) -> M::Op,
    lost: &'a dyn Fn(&A) -> Option<M::Op>,
}

impl<M: Model, A: Clone> Simulated<'_, M, A> {
    fn history(&self, chance: &mut Chance) -> Vec<Call<M::Op>> {
        let clients = 1 + chance.index(6);
        let total = 2 + chance.index(9);
        let mut open: Vec<Option<(u64, A, Option<M::Op>)>> = vec![None; clients];
        let mut calls = Vec::new();
        let (mut now, mut asked, mut state) = (0, 0, self.model.start());
        let spacing = 1 + chance.below(2);
        let loss = chance.below(4);
        for _ in 0..150 {
            now += chance.below(spacing + 1);
            let c = chance.index(clients);
            open[c] = match open[c].take() {
                None if asked < total => {
                    asked += 1;
                    Some((now, (self.ask)(chance), None))
                }
                None => None,
                Some((inv, ask, None)) => {
                    let op = (self.answer)(&state, &ask);
                    state = self.model.step(&state, &op).unwrap_or(state);
                    Some((inv, ask, Some(op)))
                }
                Some((inv, ask, Some(op))) => {
                    if chance.happens(loss, 8) {
                        calls.extend((self.lost)(&ask).map(|op| Call { inv, ret: NEVER, op }));
                    } else {
                        calls.push(Call { inv, ret: now, op });
                    }
                    None
                }
            };
        }
        let unfinished = open.into_iter().flatten();
        calls.extend(
            unfinished.filter_map(|(inv, ask, _)| Some(Call { inv, ret: NEVER, op: (self.lost)(&ask)? })),
        );
        calls
    }
}

/// Moves times and answers about.
fn damage<M: Model, A>(
    chance: &mut Chance,
    calls: &mut [Call<M::Op>],
    with: &Simulated<'_, M, A>,
    states: &[M::State],
) {
    for _ in 0..1 + chance.below(3) {
        if calls.is_empty() {
            return;
        }
        let i = chance.index(calls.len());
        if calls[i].ret == NEVER {
            continue;
        }
        if chance.happens(1, 3) {
            let j = chance.index(calls.len());
            let (a, b) = (calls[i].inv, calls[j].inv);
            calls[i].inv = b.min(calls[i].ret);
            calls[j].inv = a.min(calls[j].ret);
        } else {
            calls[i].op = (with.answer)(chance.pick(states), &(with.ask)(chance));
        }
    }
}

fn compare<M: Model, A: Clone>(name: &str, with: &Simulated<'_, M, A>, states: &[M::State])
where
    M::Op: Debug,
    M::State: Debug,
{
    let (mut valid, mut unknown, mut concurrent) = (0u64, 0u64, 0u64);
    for seed in 0..HISTORIES {
        let mut chance = Chance::seeded(seed);
        let mut calls = with.history(&mut chance);
        if seed % 2 == 1 {
            damage(&mut chance, &mut calls, with, states);
        }
        unknown += u64::from(calls.iter().any(|c| c.ret == NEVER));
        concurrent += u64::from(calls.windows(2).any(|c| c[0].inv <= c[1].ret && c[1].inv <= c[0].ret));
        let intervals: Vec<_> = calls.iter().map(|c| (c.inv, c.ret)).collect();
        let expected = brute::linearizable(&intervals, [with.model.start()], |s, n| {
            with.model.step(s, &calls[n].op).into_iter().collect()
        });
        match check(with.model, &calls, Limits::default()) {
            Outcome::Linearizable(order) => {
                assert!(expected, "{name} seed {seed}: passed, but is not linearizable: {calls:#?}");
                if let Err(e) = verify(with.model, &calls, &order) {
                    panic!("{name} seed {seed}: the order {order:?} proves nothing: {e}: {calls:#?}");
                }
                valid += 1;
            }
            Outcome::Violation(stuck) => {
                assert!(!expected, "{name} seed {seed}: refused, but is linearizable: {calls:#?}");
                // Up to just before the culprit returned it was linearizable, and `before` proves it.
                let ret = calls[stuck.culprit as usize].ret;
                let until: Vec<_> = calls
                    .iter()
                    .map(|c| Call { ret: if c.ret < ret { c.ret } else { NEVER }, ..c.clone() })
                    .collect();
                verify(with.model, &until, &stuck.before).unwrap_or_else(|e| {
                    panic!("{name} seed {seed}: {:?} is no order: {e}: {calls:#?}", stuck.before)
                });
            }
            Outcome::Undecided(e) => panic!("{name} seed {seed}: undecided after {} steps", e.steps),
        }
    }
    println!(
        "{name}: {HISTORIES} histories, {valid} linearizable, {} not, {unknown} with unknown outcomes",
        HISTORIES - valid
    );
    assert!(valid > HISTORIES / 2 && HISTORIES - valid > HISTORIES / 20, "{name}: one-sided: {valid}");
    assert!(unknown > HISTORIES / 4 && concurrent > HISTORIES / 2, "{name}: {unknown} {concurrent}");
}

#[test]
fn registers_with_few_values() {
    type Op = RegisterOp<u8>;
    let model = Register { start: 0u8 };
    let with = Simulated {
        model: &model,
        ask: &|chance| match chance.below(10) {
            0..4 => Op::ReadAny,
            4..8 => Op::Write(chance.below(3) as u8),
            _ => Op::Cas { from: chance.below(3) as u8, to: chance.below(3) as u8 },
        },
        answer: &|state, ask| match ask {
            Op::ReadAny => Op::Read(*state),
            Op::Cas { from, .. } if from != state => Op::CasRefused { from: *from },
            other => other.clone(),
        },
        lost: &|ask| (!matches!(ask, Op::ReadAny)).then(|| ask.clone()),
    };
    compare("register", &with, &[0, 1, 2]);
}
