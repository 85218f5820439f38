//! The search event by event against the search of the whole, on every prefix of small random histories; and what it
//! keeps on long ones.
#![expect(clippy::print_stdout, reason = "how much was compared, for whoever runs this by hand")]

use std::fmt::Debug;

use rackrift_checkers::engine::mutex::online::{Asked, Sweep};
use rackrift_checkers::engine::online::{self, Online, What};
use rackrift_checkers::engine::search::online::{Event, Search, Verdict};
use rackrift_checkers::engine::search::{Call, Limits, Model, Outcome, check};
use rackrift_checkers::engine::{NEVER, mutex};
use rackrift_checkers::generate::Chance;
use rackrift_checkers::history::Value;
use rackrift_checkers::model::{
    Lock, LockOp, Micro, Queue, QueueOp, Register, RegisterOp, Registers, Set, SetOp, Text, TextOp, Txn,
};

/// Compared for each model.
const HISTORIES: u64 = 8_000;

/// Configurations allowed.
const LIMIT: usize = 100_000;

/// A simulated object: what is asked, how it looks without an answer, and the answer in a state.
struct Simulated<M: Model, A> {
    model: M,
    ask: fn(&mut Chance, u64) -> A,
    asked: fn(&A) -> Option<M::Op>,
    answer: fn(&M::State, &A) -> M::Op,
}

/// A client's open operation: its number, what it asked, and the answer once it took effect.
type Pending<M, A> = Option<(u64, A, Option<<M as Model>::Op>)>;

impl<M: Model<Op: Debug> + Clone, A: Clone> Simulated<M, A> {
    /// Events of clients that now and then lose an answer, fail, or (if `broken`) get one from an older state.
    fn events(
        &self,
        chance: &mut Chance,
        clients: usize,
        total: u64,
        broken: bool,
        loss: u64,
    ) -> Vec<Event<M::Op>> {
        let mut open: Vec<Pending<M, A>> = vec![None; clients];
        let mut process: Vec<u64> = (0..clients as u64).collect();
        let (mut events, mut asked, mut state) = (Vec::new(), 0, self.model.start());
        let mut old = state.clone();
        while asked < total {
            let c = chance.index(clients);
            let mut push = |call, what| events.push(online::Event { call, time: 0, what });
            open[c] = match open[c].take() {
                None => {
                    asked += 1;
                    let ask = (self.ask)(chance, process[c]);
                    push(asked, What::Invoke((self.asked)(&ask)));
                    Some((asked, ask, None))
                }
                Some((call, ask, None)) => {
                    // A waiting lock answers later.
                    let seen = if broken && chance.happens(1, 2) { &old } else { &state };
                    let op = (self.answer)(seen, &ask);
                    match self.model.step(&state, &op) {
                        Ok(next) => {
                            let before = std::mem::replace(&mut state, next);
                            if chance.happens(1, 3) {
                                old = before;
                            }
                            Some((call, ask, Some(op)))
                        }
                        Err(_) if broken && chance.happens(3, 4) => Some((call, ask, Some(op))),
                        Err(_) if chance.happens(1, 8) => {
                            push(call, What::Return(None));
                            None
                        }
                        Err(_) => Some((call, ask, None)),
                    }
                }
                Some((call, _, Some(op))) => {
                    let lost = chance.happens(loss, 12);
                    push(call, if lost { What::Unknown } else { What::Return(Some(op)) });
                    if lost {
                        process[c] += clients as u64;
                    }
                    None
                }
            };
        }
        events
    }

    /// What the search of the whole says of a prefix, with open operations as ones of unknown outcome.
    fn fails(&self, events: &[Event<M::Op>]) -> bool {
        let mut calls: Vec<(u64, Option<Call<M::Op>>)> = Vec::new();
        for (time, event) in (0u64..).zip(events) {
            match &event.what {
                What::Invoke(op) => {
                    let call = op.clone().map(|op| Call { inv: time, ret: NEVER, op });
                    calls.push((event.call, call));
                }
                What::Return(op) => {
                    let began =
                        events.iter().position(|e| e.call == event.call).expect("it was invoked") as u64;
                    let ended = op.clone().map(|op| Call { inv: began, ret: time, op });
                    calls.iter_mut().find(|(call, _)| *call == event.call).expect("it is open").1 = ended;
                }
                What::Unknown => {}
            }
        }
        let calls: Vec<Call<M::Op>> = calls.into_iter().filter_map(|(_, call)| call).collect();
        matches!(check(&self.model, &calls, Limits::default()), Outcome::Violation(_))
    }

    fn compare(&self, name: &str) {
        let (mut broken, mut prefixes) = (0, 0);
        for seed in 0..HISTORIES {
            let mut chance = Chance::seeded(seed);
            let (clients, total) = (1 + chance.index(5), 3 + chance.below(10));
            let damaged = chance.happens(1, 2);
            let events = self.events(&mut chance, clients, total, damaged, 1);
            let mut online = Search::new(self.model.clone(), [], LIMIT);
            let mut told = None;
            for (at, event) in events.iter().enumerate() {
                prefixes += 1;
                if online.push(event.clone()).is_err() {
                    told = Some(at);
                    break;
                }
                assert!(!self.fails(&events[..=at]), "{name} seed {seed}: not told at {at}: {events:?}");
            }
            let verdict = online.finish();
            if let Some(at) = told {
                assert!(self.fails(&events[..=at]), "{name} seed {seed}: false alarm at {at}: {events:?}");
                assert!(matches!(verdict, Verdict::Violation(_)), "{name} seed {seed}");
                broken += 1;
            } else {
                assert_eq!(verdict, Verdict::Linearizable, "{name} seed {seed}");
            }
            // A violation stays one, whatever comes later.
            assert_eq!(self.fails(&events), told.is_some(), "{name} seed {seed}: {events:?}");
        }
        println!("{name}: {HISTORIES} histories, {broken} not linearizable, {prefixes} prefixes");
        assert!(broken > HISTORIES / 20 && broken < HISTORIES * 3 / 4, "{name}: {broken}");
    }

    /// Ten times the operations, no more kept.
    fn stays_small(&self, name: &str, clients: usize) {
        let most = |total| {
            let mut chance = Chance::seeded(7);
            let events = self.events(&mut chance, clients, total, false, 0);
            let mut online = Search::new(self.model.clone(), [], LIMIT);
            let mut most = 0;
            for event in events {
                assert_eq!(online.push(event), Ok(()), "{name}");
                most = most.max(online.kept());
            }
            assert_eq!(online.finish(), Verdict::Linearizable);
            most
        };
        let (short, long) = (most(300), most(3_000));
        println!("{name}: at most {short} entries kept for 300 operations, {long} for 3,000");
        assert!(long < 4 * short, "{name}: {short} entries for 300 operations, {long} for 3,000");
    }
}

#[derive(Clone)]
enum Ask {
    Read,
    Write(i64),
    Cas(i64, i64),
}

fn register() -> Simulated<Register<Value>, Ask> {
    Simulated {
        model: Register { start: Value::Int(0) },
        ask: |chance, _| match chance.below(3) {
            0 => Ask::Read,
            1 => Ask::Write(chance.below(4) as i64),
            _ => Ask::Cas(chance.below(4) as i64, chance.below(4) as i64),
        },
        asked: |ask| match *ask {
            Ask::Read => None,
            Ask::Write(v) => Some(RegisterOp::Write(Value::Int(v))),
            Ask::Cas(from, to) => Some(RegisterOp::Cas { from: Value::Int(from), to: Value::Int(to) }),
        },
        answer: |state, ask| match *ask {
            Ask::Read => RegisterOp::Read(state.clone()),
            Ask::Write(v) => RegisterOp::Write(Value::Int(v)),
            Ask::Cas(from, to) if *state == Value::Int(from) => {
                RegisterOp::Cas { from: Value::Int(from), to: Value::Int(to) }
            }
            Ask::Cas(from, _) => RegisterOp::CasRefused { from: Value::Int(from) },
        },
    }
}

fn set() -> Simulated<Set, Ask> {
    Simulated {
        model: Set,
        ask: |chance, _| match chance.below(3) {
            0 => Ask::Read,
            1 => Ask::Write(chance.below(4) as i64),
            _ => Ask::Cas(chance.below(4) as i64, 0),
        },
        asked: |ask| match *ask {
            Ask::Read => None,
            Ask::Write(v) => Some(SetOp::Add(Value::Int(v))),
            Ask::Cas(v, _) => Some(SetOp::Remove(Value::Int(v))),
        },
        answer: |state, ask| match *ask {
            Ask::Read => SetOp::Read(state.clone()),
            Ask::Write(v) => SetOp::Add(Value::Int(v)),
            Ask::Cas(v, _) => SetOp::Remove(Value::Int(v)),
        },
    }
}

fn queue() -> Simulated<Queue, Ask> {
    Simulated {
        model: Queue,
        ask: |chance, _| if chance.happens(2, 5) { Ask::Write(chance.below(3) as i64) } else { Ask::Read },
        asked: |ask| match *ask {
            Ask::Write(v) => Some(QueueOp::Enqueue(Value::Int(v))),
            _ => Some(QueueOp::DequeueUnknown),
        },
        answer: |state, ask| match *ask {
            Ask::Write(v) => QueueOp::Enqueue(Value::Int(v)),
            _ => state.front().map_or(QueueOp::Empty, |first| QueueOp::Dequeue(first.clone())),
        },
    }
}

fn text() -> Simulated<Text, Ask> {
    Simulated {
        model: Text,
        ask: |chance, _| match chance.below(4) {
            0 | 1 => Ask::Read,
            2 => Ask::Write(chance.below(3) as i64),
            _ => Ask::Cas(chance.below(3) as i64, 0),
        },
        asked: |ask| match *ask {
            Ask::Read => None,
            Ask::Write(v) => Some(TextOp::Put(v.to_string())),
            Ask::Cas(v, _) => Some(TextOp::Append(v.to_string())),
        },
        answer: |state, ask| match *ask {
            Ask::Read => TextOp::Get(state.clone()),
            Ask::Write(v) => TextOp::Put(v.to_string()),
            Ask::Cas(v, _) => TextOp::Append(v.to_string()),
        },
    }
}

fn registers() -> Simulated<Registers, (bool, bool, i64)> {
    Simulated {
        model: Registers { start: std::collections::BTreeMap::new(), others: Value::Int(0) },
        ask: |chance, _| (chance.happens(1, 2), chance.happens(1, 2), chance.below(3) as i64),
        asked: |&(first, second, v)| {
            let write = |key: &str, writes| {
                let (key, value) = (key.to_owned(), Value::Int(v));
                if writes { Micro::Write { key, value } } else { Micro::Read { key, value: None } }
            };
            (first || second).then(|| Txn(vec![write("x", first), write("y", second)]))
        },
        answer: |state, &(first, second, v)| {
            let write = |key: &str, writes| {
                let seen = state.get(key).cloned().unwrap_or(Value::Int(0));
                let key = key.to_owned();
                if writes {
                    Micro::Write { key, value: Value::Int(v) }
                } else {
                    Micro::Read { key, value: Some(seen) }
                }
            };
            Txn(vec![write("x", first), write("y", second)])
        },
    }
}

fn lock() -> Simulated<Lock, (u64, bool, bool)> {
    Simulated {
        model: Lock,
        ask: |chance, process| (process, chance.happens(1, 2), chance.happens(1, 3)),
        asked: |&(process, acquires, _)| {
            Some(if acquires { LockOp::Acquire(process) } else { LockOp::Release(process) })
        },
        answer: |state, &(process, acquires, tries)| match (acquires, state) {
            (true, Some(_)) if tries => LockOp::Held(process),
            (true, _) => LockOp::Acquire(process),
            (false, _) => LockOp::Release(process),
        },
    }
}

#[test]
fn registers_are_judged_on_every_prefix() {
    register().compare("register");
    registers().compare("registers");
}

#[test]
fn collections_are_judged_on_every_prefix() {
    set().compare("set");
    queue().compare("queue");
    text().compare("text");
}

#[test]
fn locks_are_judged_on_every_prefix() {
    lock().compare("lock");
}

#[test]
fn what_is_kept_does_not_grow_with_what_is_over() {
    register().stays_small("register", 5);
    registers().stays_small("registers", 4);
    set().stays_small("set", 5);
    lock().stays_small("lock", 5);
}

/// A lock's event for the sweep, which knows no failed tries.
fn swept(event: &Event<LockOp>) -> mutex::online::Event {
    let what = match &event.what {
        What::Invoke(Some(LockOp::Release(p))) => What::Invoke(Asked::Release(*p)),
        What::Invoke(Some(LockOp::Acquire(p) | LockOp::Held(p))) => What::Invoke(Asked::Acquire(*p)),
        What::Return(answer) => What::Return(answer.is_some()),
        What::Invoke(None) | What::Unknown => What::Unknown,
    };
    online::Event { call: event.call, time: event.time, what }
}

#[test]
fn the_sweep_of_a_mutex_tells_at_the_same_event_as_the_search() {
    let never_refused = Simulated { ask: |chance, process| (process, chance.happens(3, 5), false), ..lock() };
    let (mut broken, mut handed_over) = (0, 0);
    for seed in 0..4 * HISTORIES {
        let mut chance = Chance::seeded(seed);
        let (clients, total) = (1 + chance.index(5), 3 + chance.below(20));
        let damaged = chance.happens(1, 2);
        let events = never_refused.events(&mut chance, clients, total, damaged, 1);
        let (mut sweep, mut search) = (Sweep::default(), Search::new(Lock, [], LIMIT));
        for (at, event) in events.iter().enumerate() {
            let told = sweep.push(swept(event)).is_err();
            let expected = search.push(event.clone()).is_err();
            if sweep.finish() == mutex::online::Verdict::OutOfClass {
                handed_over += 1;
                break;
            }
            assert_eq!(told, expected, "seed {seed} at {at}: {events:?}");
            assert!(sweep.kept() <= clients + 1);
            if told {
                broken += 1;
                break;
            }
        }
    }
    println!("mutex: {} histories, {broken} not linearizable, {handed_over} handed over", 4 * HISTORIES);
    assert!(broken > HISTORIES / 4 && handed_over < 2 * HISTORIES);
}
