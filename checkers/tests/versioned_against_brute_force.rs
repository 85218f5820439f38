//! The versioned engine against the plainest possible check, on small random histories, half of them broken.
#![expect(clippy::print_stdout, reason = "how much was compared, for whoever runs this by hand")]

mod amount;

use std::collections::BTreeSet;

use rackrift_checkers::brute;
use rackrift_checkers::engine::NEVER;
use rackrift_checkers::engine::versioned::{
    self, Act, Operation, OutOfClass, Outcome, Rule, Start, Version, World, WriteId, Writers,
};
use rackrift_checkers::generate::Chance;

/// Compared in the tests of every day.
const HISTORIES: u64 = 60_000;

fn v(n: u64) -> Version {
    Version::new(n).expect("because test versions start at 1")
}

fn w(n: u32) -> WriteId {
    WriteId::new(n).expect("because test marks start at 1")
}

/// A simulated object: each tick one client invokes, takes effect or returns.
fn simulate(chance: &mut Chance, refusals: bool) -> Vec<Operation> {
    let clients = 1 + chance.index(4);
    let mut ops: Vec<Operation> = Vec::new();
    let mut open: Vec<Option<(usize, bool)>> = vec![None; clients];
    let mut learned: Vec<Option<Version>> = vec![None; clients];
    let (mut now, mut last, mut state) = (0, 0, None::<(Version, Option<WriteId>)>);
    let total = 3 + chance.index(6);
    let mut next_id = 0;
    let spacing = 1 + chance.below(2);
    for _ in 0..200 {
        now += chance.below(spacing + 1);
        let c = chance.index(clients);
        match open[c] {
            None if ops.len() < total => {
                next_id += 1;
                let id = Some(w(next_id)).filter(|_| !chance.happens(1, 12));
                let expected = learned[c].or(state.map(|s| s.0)).unwrap_or(v(1 + chance.below(3)));
                let act = match chance.below(if refusals { 12 } else { 9 }) {
                    0..4 => Act::Absent,
                    4..7 => Act::MaybeCas { expected },
                    7 => Act::MaybeWrite,
                    8 | 9 => Act::MaybeCreate,
                    10 => Act::MaybeDelete { expected: Some(expected).filter(|_| chance.happens(3, 4)) },
                    _ => Act::Exists,
                };
                ops.push(Operation { inv: now, ret: NEVER, act, id });
                open[c] = Some((ops.len() - 1, false));
            }
            Some((i, false)) => {
                let op = &mut ops[i];
                let before = state;
                let mut make = |id| {
                    last += 1 + chance.below(2);
                    state = Some((v(last), id));
                    v(last)
                };
                op.act = match (op.act, before) {
                    (Act::Absent, Some((version, id))) => {
                        op.id = id.filter(|_| !chance.happens(1, 8));
                        Act::Read { version }
                    }
                    (Act::Absent, None) => {
                        op.id = None;
                        Act::Absent
                    }
                    (Act::MaybeCas { expected }, Some((now, _))) if now == expected => {
                        Act::Cas { expected, version: make(op.id) }
                    }
                    (Act::MaybeCas { expected }, Some(_)) => Act::Conflict { expected },
                    (Act::MaybeCas { .. }, None) => Act::Absent,
                    (Act::MaybeWrite, _) => Act::Write { version: make(op.id) },
                    (Act::MaybeCreate | Act::Exists, None) => Act::Create { version: make(op.id) },
                    (Act::MaybeCreate | Act::Exists, Some(_)) => Act::Exists,
                    (Act::MaybeDelete { expected }, Some((now, _))) if expected.is_none_or(|e| e == now) => {
                        last += 1;
                        state = None;
                        let version = Some(v(last)).filter(|_| expected.is_none() || chance.happens(1, 2));
                        Act::Delete { expected, version }
                    }
                    (Act::MaybeDelete { expected }, Some(_)) => {
                        Act::Conflict { expected: expected.unwrap_or(v(1)) }
                    }
                    (Act::MaybeDelete { .. }, None) => Act::Absent,
                    (act, _) => act,
                };
                open[c] = Some((i, true));
            }
            Some((i, true)) => {
                let op = &mut ops[i];
                if chance.happens(1, 8) {
                    lose_answer(op);
                } else {
                    op.ret = now;
                    learned[c] = match op.act {
                        Act::Read { version } | Act::Cas { version, .. } | Act::Create { version } => {
                            Some(version)
                        }
                        _ => learned[c],
                    };
                }
                open[c] = None;
            }
            None => {}
        }
    }
    for (i, _) in open.into_iter().flatten() {
        lose_answer(&mut ops[i]);
    }
    ops.retain(|o| o.ret != NEVER || !matches!(o.act, Act::Read { .. } | Act::Absent | Act::Exists));
    ops
}

/// The effect is there, or will be, or not; the client never learns.
fn lose_answer(op: &mut Operation) {
    op.ret = NEVER;
    op.act = match op.act {
        Act::Cas { expected, .. } | Act::Conflict { expected } => Act::MaybeCas { expected },
        Act::Write { .. } => Act::MaybeWrite,
        Act::Create { .. } | Act::Exists => Act::MaybeCreate,
        Act::Delete { expected, .. } => Act::MaybeDelete { expected },
        act => act,
    };
}

fn corrupt(chance: &mut Chance, ops: &mut [Operation]) {
    if ops.is_empty() {
        return;
    }
    for _ in 0..=chance.index(2) {
        let shift = |chance: &mut Chance, x: Version| v((x.get() + chance.below(4)).saturating_sub(1).max(1));
        let other = ops[chance.index(ops.len())];
        let i = chance.index(ops.len());
        let op = &mut ops[i];
        match chance.below(7) {
            0 | 1 => match &mut op.act {
                Act::Read { version } | Act::Write { version } | Act::Create { version } => {
                    *version = shift(chance, *version);
                }
                Act::Cas { expected, version } if chance.happens(1, 2) => {
                    *expected = shift(chance, *expected);
                    let _ = version;
                }
                Act::Cas { version, .. } => *version = shift(chance, *version),
                Act::Conflict { expected } | Act::MaybeCas { expected } => {
                    *expected = shift(chance, *expected)
                }
                _ => {}
            },
            2 => {
                if let (Act::Read { .. }, Act::Read { .. } | Act::Cas { .. }) = (op.act, other.act) {
                    op.id = other.id;
                }
            }
            3 | 4 if op.ret != NEVER => {
                let length = op.ret - op.inv;
                op.inv = (op.inv + chance.below(9)).saturating_sub(4);
                op.ret = op.inv + length;
            }
            5 => {
                if let Act::Cas { .. } | Act::Write { .. } | Act::Create { .. } = op.act {
                    op.act = Act::Failed;
                }
            }
            _ => {
                if let Act::Read { .. } = op.act {
                    op.act = Act::Absent;
                    op.id = None;
                }
            }
        }
    }
}

/// The state of the object for the brute force: present with a version (0: one that no operation names) and mark.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    now: Option<(u64, Option<WriteId>)>,
    highest: u64,
}

struct Model<'a> {
    ops: &'a [Operation],
    world: World,
    named: BTreeSet<u64>,
    foreign: Vec<Option<WriteId>>,
}

impl<'a> Model<'a> {
    fn of(ops: &'a [Operation], world: World) -> Self {
        let mut named = BTreeSet::new();
        let mut own = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for op in ops {
            match op.act {
                Act::Read { version } => {
                    named.insert(version.get());
                    seen.extend(op.id);
                    continue;
                }
                Act::Write { version } | Act::Create { version } => drop(named.insert(version.get())),
                Act::Cas { expected, version } => named.extend([expected.get(), version.get()]),
                Act::Delete { expected, version } => {
                    named.extend(expected.into_iter().chain(version).map(Version::get))
                }
                Act::Conflict { expected } | Act::MaybeCas { expected } => drop(named.insert(expected.get())),
                Act::MaybeDelete { expected: Some(e) } => drop(named.insert(e.get())),
                _ => {}
            }
            own.extend(op.id);
        }
        let foreign = seen.difference(&own).copied().map(Some).chain([None]).collect();
        Self { ops, world, named, foreign }
    }

    fn start(&self) -> Vec<State> {
        let mut states = vec![State { now: None, highest: 0 }];
        if self.world.start == Start::Unknown {
            for &id in &self.foreign {
                states.extend(self.written(0, id));
            }
        }
        states
    }

    /// All states after a write of a version that nobody states.
    fn written(&self, highest: u64, id: Option<WriteId>) -> Vec<State> {
        let named = self.named.iter().filter(|&&n| n > highest);
        let known = named.map(|&n| State { now: Some((n, id)), highest: n });
        known.chain([State { now: Some((0, id)), highest }]).collect()
    }

    fn moved(&self, s: &State) -> Vec<State> {
        let mut states = vec![s.clone()];
        if self.world.writers == Writers::Others {
            states.push(State { now: None, highest: s.highest });
            for &id in &self.foreign {
                states.extend(self.written(s.highest, id));
            }
        }
        states
    }

    fn step(&self, s: &State, op: &Operation) -> Vec<State> {
        let has = |e: Version| s.now.is_some_and(|(n, _)| n == e.get());
        let make = |ok: bool, version: Version| {
            let state = State { now: Some((version.get(), op.id)), highest: version.get() };
            (ok && version.get() > s.highest).then_some(state).into_iter().collect()
        };
        let stay = |ok: bool| ok.then(|| s.clone()).into_iter().collect();
        let gone =
            |version: Option<Version>| State { now: None, highest: version.map_or(s.highest, Version::get) };
        match op.act {
            Act::Read { version } => {
                // A write without a mark may have left one that is nobody else's.
                let unowned = |id: Option<WriteId>| id.is_none() && self.foreign.contains(&op.id);
                let same = |id: Option<WriteId>| op.id.is_none() || id == op.id || unowned(id);
                stay(s.now.is_some_and(|(n, id)| n == version.get() && same(id)))
            }
            Act::Absent => stay(s.now.is_none()),
            Act::Write { version } => make(true, version),
            Act::Cas { expected, version } => make(has(expected), version),
            Act::Create { version } => make(s.now.is_none(), version),
            Act::Delete { expected, version } => {
                let ok = s.now.is_some()
                    && expected.is_none_or(has)
                    && version.is_none_or(|n| n.get() > s.highest);
                ok.then(|| gone(version)).into_iter().collect()
            }
            Act::Conflict { expected } => stay(!has(expected)),
            Act::Exists => stay(s.now.is_some()),
            Act::Failed => stay(true),
            Act::MaybeWrite => self.written(s.highest, op.id),
            Act::MaybeCas { expected } if has(expected) => self.written(s.highest, op.id),
            Act::MaybeCreate if s.now.is_none() => self.written(s.highest, op.id),
            Act::MaybeDelete { expected } if s.now.is_some() && expected.is_none_or(has) => vec![gone(None)],
            _ => Vec::new(),
        }
    }

    fn linearizable(&self) -> bool {
        let intervals: Vec<_> = self.ops.iter().map(|o| (o.inv, o.ret)).collect();
        brute::linearizable(&intervals, self.start(), |s, n| {
            self.moved(s).iter().flat_map(|s| self.step(s, &self.ops[n])).collect()
        })
    }
}

/// The order that the engine names must itself be one that the object allows, in real time.
fn replay(model: &Model<'_>, order: &[u32]) -> bool {
    let mut states: BTreeSet<String> = BTreeSet::new();
    let mut now = model.start();
    let mut invoked = 0;
    for &i in order {
        let op = &model.ops[i as usize];
        invoked = invoked.max(op.inv);
        if op.ret < invoked {
            return false;
        }
        states.clear();
        let moved: Vec<State> = now.iter().flat_map(|s| model.moved(s)).collect();
        now = moved.iter().flat_map(|s| model.step(s, op)).collect();
        now.retain(|s| states.insert(format!("{s:?}")));
    }
    let placed: BTreeSet<u32> = order.iter().copied().collect();
    let missing =
        |(i, o): (usize, &Operation)| o.ret != NEVER && o.act != Act::Failed && !placed.contains(&(i as u32));
    !now.is_empty() && placed.len() == order.len() && !model.ops.iter().enumerate().any(missing)
}

fn told(ops: &[Operation]) -> String {
    let line = |(i, o): (usize, &Operation)| {
        let id = o.id.map_or(0, WriteId::get);
        format!("{i}: [{}, {}] {:?} id {id}\n", o.inv, if o.ret == NEVER { 0 } else { o.ret }, o.act)
    };
    ops.iter().enumerate().map(line).collect()
}

/// The operations of a violation alone (with the writers that give their marks a meaning) must contradict each other.
fn witness_suffices(ops: &[Operation], world: World, witness: &versioned::Violation) -> bool {
    if matches!(
        witness.rule,
        Rule::ThinAir | Rule::LostUpdate | Rule::CreatedTwice | Rule::DeletedNothing | Rule::WrongContent
    ) {
        return true;
    }
    let mut kept: Vec<usize> = witness.against.iter().copied().chain([witness.culprit]).collect();
    kept.sort_unstable();
    kept.dedup();
    // Everything that says what the versions are stays, but without any time.
    let loose: Vec<Operation> = ops
        .iter()
        .enumerate()
        .map(|(i, o)| {
            let timed = kept.contains(&i) || o.ret == NEVER;
            let ret = if o.ret == NEVER { NEVER } else { 1 << 40 };
            if timed { *o } else { Operation { inv: 0, ret, ..*o } }
        })
        .filter(|o| {
            !matches!(o.act, Act::Absent | Act::Exists | Act::Conflict { .. })
                || kept.iter().any(|&k| ops[k] == *o)
        })
        .collect();
    !Model::of(&loose, world).linearizable()
}

fn compare(worlds: &[World], refusals: bool, seed: u64) {
    let histories = amount::histories(HISTORIES);
    let mut chance = Chance::seeded(seed);
    let (mut yes, mut no, mut outside) = (0u64, 0u64, 0u64);
    let mut rules = std::collections::BTreeMap::new();
    for n in 0..histories {
        let mut ops = simulate(&mut chance, refusals);
        let broken = chance.happens(1, 2);
        if broken {
            corrupt(&mut chance, &mut ops);
        }
        let world = *chance.pick(worlds);
        let model = Model::of(&ops, world);
        match versioned::check(&ops, world) {
            Outcome::Linearizable(line) => {
                assert!(
                    model.linearizable(),
                    "history {n}: engine yes, brute force no\n{world:?}\n{}",
                    told(&ops)
                );
                let order = line.order(&ops);
                let proof = versioned::verify(&ops, world, &order);
                assert!(proof.is_ok(), "history {n}: {proof:?} of {order:?}\n{world:?}\n{}", told(&ops));
                assert!(
                    replay(&model, &order),
                    "history {n}: bad order {order:?}\n{world:?}\n{}",
                    told(&ops)
                );
                yes += 1;
            }
            Outcome::Violation(found) => {
                assert!(
                    !model.linearizable(),
                    "history {n}: brute force yes, engine {found:?}\n{world:?}\n{}",
                    told(&ops)
                );
                assert_ne!(
                    versioned::confirm(&ops, &found),
                    Some(false),
                    "history {n}: {found:?} {}",
                    told(&ops)
                );
                assert!(
                    witness_suffices(&ops, world, &found),
                    "history {n}: witness {found:?}\n{world:?}\n{}",
                    told(&ops)
                );
                *rules.entry(found.rule).or_insert(0) += 1;
                no += 1;
            }
            Outcome::OutOfClass(reason) => {
                assert!(broken || !matches!(reason, OutOfClass::IdUsedTwice(..)));
                outside += 1;
            }
        }
    }
    println!("{yes} linearizable, {no} not, {outside} outside the class; {rules:?}");
    assert!(yes > histories / 4 && no > histories / 20, "the histories must exercise both answers");
    assert!(outside < histories / 8, "most histories must be decided");
}

#[test]
fn updates_only_in_a_closed_world() {
    compare(&[World::CLOSED], false, 1);
}

#[test]
fn creates_deletes_and_refusals_in_a_closed_world() {
    compare(&[World::CLOSED], true, 2);
}

#[test]
fn worlds_with_other_writers_or_an_unknown_start() {
    let started = World { start: Start::Unknown, writers: Writers::Recorded };
    let shared = World { start: Start::Absent, writers: Writers::Others };
    compare(&[started, World::OPEN, shared], true, 3);
}

/// Found as history 701,186 of the long job: the pair was right, and its confirmation said that it was not.
#[test]
fn a_conditional_write_of_a_deleted_version_is_confirmed_by_the_delete() {
    let op = |inv, ret, act, id| Operation { inv, ret, act, id: Some(w(id)) };
    let ops = [
        op(1, 4, Act::Create { version: v(2) }, 1),
        op(2, 7, Act::Cas { expected: v(4), version: v(5) }, 3),
        op(3, 7, Act::Delete { expected: None, version: Some(v(4)) }, 4),
    ];
    let Outcome::Violation(found) = versioned::check(&ops, World::OPEN) else { panic!("not found") };
    assert_eq!((found.rule, found.culprit, found.against.as_slice()), (Rule::LostUpdate, 1, &[2][..]));
    assert_eq!(versioned::confirm(&ops, &found), Some(true));
    assert!(witness_suffices(&ops, World::OPEN, &found));
}
