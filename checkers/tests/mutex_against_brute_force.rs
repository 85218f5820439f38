//! The mutex rule against the plainest possible check, and against the search where it hands over.
#![expect(clippy::print_stdout, reason = "how much was compared, for whoever runs this by hand")]

mod amount;

use rackrift_checkers::brute;
use rackrift_checkers::engine::NEVER;
use rackrift_checkers::engine::mutex::{Outcome, check};
use rackrift_checkers::engine::search::{self, Call, Limits, Model};
use rackrift_checkers::generate::Chance;
use rackrift_checkers::model::{Lock, LockOp};

/// Compared in the tests of every day.
const HISTORIES: u64 = 200_000;

/// Processes that acquire, are refused, release, lose answers, and now and then break the rules.
fn history(chance: &mut Chance) -> Vec<Call<LockOp>> {
    let clients = 1 + chance.index(4);
    let total = 2 + chance.index(8);
    let (tries, broken, lost) = (chance.happens(1, 2), chance.happens(2, 3), chance.below(3));
    let mut process: Vec<u64> = (0..clients as u64).collect();
    let mut open: Vec<Option<(u64, LockOp, bool)>> = vec![None; clients];
    let mut holds = vec![false; clients];
    let mut calls: Vec<Call<LockOp>> = Vec::new();
    let (mut now, mut asked, mut state, mut next) = (0, 0, None::<u64>, clients as u64);
    let spacing = 1 + chance.below(2);
    for _ in 0..120 {
        now += chance.below(spacing + 1);
        let c = chance.index(clients);
        let me = process[c];
        open[c] = match open[c].take() {
            None if asked < total => {
                asked += 1;
                // A process is sequential: what it does next begins after what it did last.
                now += 1;
                let release = holds[c] != (broken && chance.happens(1, 16));
                Some((now, if release { LockOp::Release(me) } else { LockOp::Acquire(me) }, false))
            }
            None => None,
            Some((inv, op, false)) => {
                let op = match (Lock.step(&state, &op), op) {
                    (Ok(after), op) => {
                        state = after;
                        op
                    }
                    (Err(_), LockOp::Acquire(p)) if tries && !(broken && chance.happens(1, 8)) => {
                        LockOp::Held(p)
                    }
                    // Without refused tries it waits, which here means that it takes effect later, or breaks the rule.
                    (Err(_), op) if broken && chance.happens(1, 2) => op,
                    (Err(_), op) => {
                        open[c] = Some((inv, op, false));
                        continue;
                    }
                };
                Some((inv, op, true))
            }
            Some((inv, op, true)) => {
                let ret = if chance.happens(lost, 12) { NEVER } else { now };
                holds[c] = matches!(op, LockOp::Acquire(_)) && ret != NEVER;
                if ret == NEVER {
                    process[c] = next;
                    next += 1;
                }
                if ret != NEVER || !matches!(op, LockOp::Held(_)) {
                    calls.push(Call { inv, ret, op });
                }
                None
            }
        };
    }
    calls.extend(
        open.into_iter()
            .flatten()
            .filter(|(_, op, _)| !matches!(op, LockOp::Held(_)))
            .map(|(inv, op, _)| Call { inv, ret: NEVER, op }),
    );
    calls
}

#[test]
fn the_rule_is_exact() {
    let histories = amount::histories(HISTORIES);
    let (mut passed, mut refused, mut handed_over, mut with_tries) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..histories {
        let calls = history(&mut Chance::seeded(seed));
        let intervals: Vec<_> = calls.iter().map(|c| (c.inv, c.ret)).collect();
        let expected = brute::linearizable(&intervals, [None], |state, n| {
            Lock.step(state, &calls[n].op).into_iter().collect()
        });
        with_tries += u64::from(calls.iter().any(|c| matches!(c.op, LockOp::Held(_))));
        let got = match check(&calls) {
            Outcome::Linearizable => true,
            Outcome::Violation(v) => {
                assert!(v.culprit < calls.len() as u32);
                false
            }
            Outcome::OutOfClass => {
                handed_over += 1;
                matches!(search::check(&Lock, &calls, Limits::default()), search::Outcome::Linearizable(_))
            }
        };
        assert_eq!(got, expected, "seed {seed}: {calls:#?}");
        passed += u64::from(expected);
        refused += u64::from(!expected);
    }
    println!(
        "mutex: {histories} histories, {passed} linearizable, {refused} not, {with_tries} with refused tries, \
         {handed_over} handed over to the search"
    );
    assert!(passed > histories / 4 && refused > histories / 10 && with_tries > histories / 4);
}
