//! The search, event by event.
//!
//! # The rule
//! Just-in-time linearization, as in [the search of the whole](super), but in breadth: all configurations that explain
//! the events so far are kept, each the state, and which of the open operations have taken effect. When none is left
//! there is a violation, at the very event.
//!
//! # What is not known yet
//! The answer of an open operation comes at its return, but it may take effect, or be read, before. So a layer of
//! configurations is kept for each event since the oldest open operation was invoked. When a return tells more than was
//! known at the invocation (what a read returned, that a write failed), the layers since its invocation are made again with
//! that; what is before the oldest open operation can't change any more and is dropped. At a point where nothing is open,
//! only the states are left that the object can have.
//!
//! # Why it is exact
//! The layers are the sets of configurations of Lowe's algorithm for the history up to here with its open operations as
//! ones of unknown outcome. Of two configurations of which one can do all that the other can, only that one is kept:
//! same state, at least as many lost operations left, and what the other has done done or *hidden* (optional; see
//! [the search](super)) in it.
//!
//! # What is kept
//! The configurations of each event since the oldest open operation was invoked, and one entry for each different
//! operation of unknown outcome. Nothing for operations that are over. A limit on configurations ends in
//! [`Verdict::Undecided`].
//!
//! # Source
//! Lowe: Testing for linearizability, CCPE 29(4), 2017; layers for unknown answers and the order between configurations
//! are our own and are tested against the check of the whole, on every prefix.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::{Effect, Model};
use crate::engine::online::{self, Online, What};

/// An event: invoked as it would be without an answer (nothing: it changes nothing), returned with its answer (nothing:
/// it certainly had no effect, and tells nothing).
pub type Event<O> = online::Event<Option<O>, Option<O>>;

/// Operations open at once at most.
const OPEN: u32 = 128;

/// Of more configurations in one state than this, none is compared with the others: that would cost their square.
const COMPARED: usize = 64;

/// Reasons told at most.
const REASONS: usize = 4;

/// Where no configuration is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The operation at whose return none was left.
    pub call: u64,
    /// Why it does not fit, by the states in which the object could have been; a few of them.
    pub reasons: Vec<String>,
}

/// The verdict of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Linearizable.
    Linearizable,
    /// Not.
    Violation(Stuck),
    /// There were more configurations than allowed, or too many open operations; since this operation nobody knows.
    Undecided {
        /// At the return of this operation.
        call: u64,
    },
}

/// An event that may have to be walked over again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Invoke,
    Return,
    Unknown,
}

/// What explains the events so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Config<S> {
    state: S,
    /// By place: open operations that took effect.
    done: u128,
    /// By place: open operations that have not, but can have done so unseen.
    hidden: u128,
    /// By class of lost operations: how many have not taken effect.
    left: Vec<(u32, u32)>,
}

type Layer<S> = HashSet<Config<S>, RandomState>;

/// An operation of which an event is kept.
#[derive(Debug, Clone)]
struct Call<O> {
    /// How it takes effect as far as is known, if it can.
    op: Option<O>,
    place: u32,
    /// It has not ended.
    open: bool,
}

/// One object, watched.
pub struct Search<M: Model> {
    model: M,
    limit: usize,
    calls: HashMap<u64, Call<M::Op>, RandomState>,
    /// Operations that had been invoked, and had not ended, before the tail.
    base: Vec<u64>,
    /// Events since the oldest open operation was invoked.
    tail: VecDeque<(u64, Step)>,
    /// One more than events: the configurations before each, and those of now.
    layers: VecDeque<Layer<M::State>>,
    places: u128,
    /// Lost operations, by class.
    lost: Vec<M::Op>,
    classes: HashMap<M::Op, u32, RandomState>,
    ended: Option<Verdict>,
}

impl<M: Model> Search<M> {
    /// An object that begins in one of `starts` (empty: the model's own start); at most `limit` configurations are kept.
    pub fn new(model: M, starts: impl IntoIterator<Item = M::State>, limit: usize) -> Self {
        let of = |state| Config { state, done: 0, hidden: 0, left: Vec::new() };
        let mut first: Layer<M::State> = starts.into_iter().map(of).collect();
        if first.is_empty() {
            first.insert(of(model.start()));
        }
        Self {
            model,
            limit,
            calls: HashMap::default(),
            base: Vec::new(),
            tail: VecDeque::new(),
            layers: VecDeque::from([first]),
            places: 0,
            lost: Vec::new(),
            classes: HashMap::default(),
            ended: None,
        }
    }

    fn invoke(&mut self, call: u64, asked: Option<M::Op>) {
        let place = (!self.places).trailing_zeros();
        if place >= OPEN {
            self.ended = Some(Verdict::Undecided { call });
            return;
        }
        self.places |= 1 << place;
        self.calls.insert(call, Call { op: asked, place, open: true });
        self.tail.push_back((call, Step::Invoke));
        self.again(self.tail.len() - 1, call);
    }

    /// An operation that is open returns; what it answered may make the layers since its invocation others.
    fn answer(&mut self, call: u64, answer: Option<M::Op>) {
        let Some(open) = self.calls.get_mut(&call).filter(|c| c.open) else { return };
        let news = open.op != answer;
        (open.op, open.open) = (answer, false);
        self.places &= !(1 << open.place);
        self.tail.push_back((call, Step::Return));
        let from = if news {
            self.tail.iter().position(|(c, _)| *c == call).unwrap_or(0)
        } else {
            self.tail.len() - 1
        };
        let before = self.layers.back().cloned().unwrap_or_default();
        self.again(from, call);
        if self.ended.is_none() && self.layers.back().is_some_and(HashSet::is_empty) {
            let reasons = self.reasons(call, &before);
            self.ended = Some(Verdict::Violation(Stuck { call, reasons }));
        }
        self.settle();
    }

    fn lose(&mut self, call: u64) {
        let Some(open) = self.calls.get_mut(&call).filter(|c| c.open) else { return };
        open.open = false;
        let (place, op) = (open.place, open.op.clone());
        self.places &= !(1 << place);
        self.tail.push_back((call, Step::Unknown));
        if let Some(op) = op
            && self.model.effect(&op) != Effect::ReadOnly
            && !self.classes.contains_key(&op)
        {
            self.classes.insert(op.clone(), self.lost.len() as u32);
            self.lost.push(op);
        }
        self.again(self.tail.len() - 1, call);
        self.settle();
    }

    /// Makes the layers after the event at `from` anew.
    fn again(&mut self, from: usize, call: u64) {
        self.layers.truncate(from + 1);
        let mut kept: usize = self.layers.iter().map(HashSet::len).sum();
        let mut open = self.base.clone();
        for (at, (of, step)) in self.tail.iter().copied().enumerate() {
            if step == Step::Invoke {
                open.push(of);
            }
            if at >= from {
                let next = self.layers.back().and_then(|before| {
                    let open = self.acting(&open);
                    match step {
                        Step::Invoke => Some(self.read_early(before, &open)),
                        Step::Return => self.returned(before, of, &open),
                        Step::Unknown => Some(self.gone(before, of)),
                    }
                });
                kept += next.as_ref().map_or(0, HashSet::len);
                match next {
                    Some(next) if kept <= self.limit => self.layers.push_back(next),
                    _ => {
                        self.ended = Some(Verdict::Undecided { call });
                        return;
                    }
                }
            }
            if step != Step::Invoke {
                open.retain(|c| *c != of);
            }
        }
    }

    /// Of these operations, how they act, by place.
    fn acting(&self, calls: &[u64]) -> Vec<(u32, M::Op)> {
        let known = calls.iter().filter_map(|call| self.calls.get(call));
        known.filter_map(|call| Some((call.place, call.op.clone()?))).collect()
    }

    /// An operation that only reads takes effect as soon as it can: that changes nothing for the others.
    fn read_early(&self, before: &Layer<M::State>, open: &[(u32, M::Op)]) -> Layer<M::State> {
        let read = |config: &Config<M::State>| {
            let mut config = config.clone();
            self.read(&mut config, open);
            config
        };
        before.iter().map(read).collect()
    }

    fn read(&self, config: &mut Config<M::State>, open: &[(u32, M::Op)]) {
        for (place, op) in open {
            if config.done >> place & 1 == 0
                && self.model.effect(op) == Effect::ReadOnly
                && self.model.step(&config.state, op).is_ok()
            {
                config.done |= 1 << place;
            }
        }
    }

    /// The configurations after the return of `call`: in each of them it has taken effect. None if there are too many.
    fn returned(
        &self,
        before: &Layer<M::State>,
        call: u64,
        open: &[(u32, M::Op)],
    ) -> Option<Layer<M::State>> {
        let Some(x) = self.calls.get(&call).filter(|x| x.op.is_some()) else {
            return Some(before.clone());
        };
        let bit = 1u128 << x.place;
        let mut after = Layer::<M::State>::default();
        let mut met = Layer::<M::State>::default();
        let mut todo: Vec<Config<M::State>> = before.iter().cloned().collect();
        while let Some(config) = todo.pop() {
            if config.done & bit != 0 {
                after.insert(Config { done: config.done & !bit, ..config });
                continue;
            }
            if !met.insert(config.clone()) {
                continue;
            }
            if met.len() > self.limit {
                return None;
            }
            if config.hidden & bit != 0 {
                after.insert(Config { hidden: config.hidden & !bit, ..config.clone() });
            }
            for (place, op) in open {
                if config.done >> place & 1 == 0 && self.model.effect(op) != Effect::ReadOnly {
                    let mut left = config.clone();
                    left.done |= 1 << place;
                    left.hidden &= !(1 << place);
                    todo.extend(self.take(left, op, open));
                }
            }
            for (i, (class, _)) in config.left.iter().enumerate() {
                let mut left = config.clone();
                left.left[i].1 -= 1;
                left.left.retain(|(_, n)| *n > 0);
                // One that changes nothing now is better kept for later.
                let taken = self.take(left, &self.lost[*class as usize], open);
                todo.extend(taken.filter(|taken| taken.state != config.state));
            }
        }
        Some(self.freest(after))
    }

    /// An operation takes effect.
    fn take(
        &self,
        mut config: Config<M::State>,
        op: &M::Op,
        open: &[(u32, M::Op)],
    ) -> Option<Config<M::State>> {
        config.state = self.model.step(&config.state, op).ok()?;
        if self.model.effect(op) == Effect::Overwrites {
            // Each open overwriting operation can have taken effect just before this one: nobody saw it.
            for (place, other) in open {
                if config.done >> place & 1 == 0 && self.model.effect(other) == Effect::Overwrites {
                    config.hidden |= 1 << place;
                }
            }
        }
        self.read(&mut config, open);
        Some(config)
    }

    /// The configurations after the outcome of `call` was lost for ever.
    fn gone(&self, before: &Layer<M::State>, call: u64) -> Layer<M::State> {
        let Some(x) = self.calls.get(&call) else { return before.clone() };
        let bit = 1u128 << x.place;
        let class = x.op.as_ref().and_then(|op| self.classes.get(op)).copied();
        let after = before
            .iter()
            .map(|config| {
                let mut config = config.clone();
                if config.done & bit == 0
                    && let Some(class) = class
                {
                    match config.left.binary_search_by_key(&class, |(c, _)| *c) {
                        Ok(i) => config.left[i].1 += 1,
                        Err(i) => config.left.insert(i, (class, 1)),
                    }
                }
                config.done &= !bit;
                config.hidden &= !bit;
                config
            })
            .collect();
        self.freest(after)
    }

    /// Without those that can do nothing that another one cannot.
    fn freest(&self, configs: Layer<M::State>) -> Layer<M::State> {
        if configs.len() < 2 {
            return configs;
        }
        let mut by_state: HashMap<M::State, Vec<Config<M::State>>, RandomState> = HashMap::default();
        for config in configs {
            by_state.entry(config.state.clone()).or_default().push(config);
        }
        let mut freest = Layer::<M::State>::default();
        for (_, group) in by_state {
            if group.len() > COMPARED {
                freest.extend(group);
                continue;
            }
            for (i, config) in group.iter().enumerate() {
                let bound = |(j, other): (usize, &Config<M::State>)| i != j && other.can_all(config);
                // Two that can do the same are equal, and a set has each once.
                if !group.iter().enumerate().any(bound) {
                    freest.insert(config.clone());
                }
            }
        }
        freest
    }

    /// Drops the events before the oldest open operation's invocation, and operations without an event.
    fn settle(&mut self) {
        while let Some(&(call, step)) = self.tail.front() {
            if step == Step::Invoke && self.calls.get(&call).is_some_and(|c| c.open) {
                return;
            }
            if step == Step::Invoke {
                self.base.push(call);
            } else {
                self.base.retain(|c| *c != call);
                self.calls.remove(&call);
            }
            self.tail.pop_front();
            self.layers.pop_front();
        }
    }

    /// Why an operation fits nowhere.
    fn reasons(&self, call: u64, before: &Layer<M::State>) -> Vec<String> {
        let Some(op) = self.calls.get(&call).and_then(|c| c.op.as_ref()) else { return Vec::new() };
        let mut reasons: Vec<String> =
            before.iter().filter_map(|config| self.model.step(&config.state, op).err()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons.truncate(REASONS);
        reasons
    }
}

impl<S> Config<S> {
    /// Whether this one, in the same state, can do all that `other` can.
    fn can_all(&self, other: &Self) -> bool {
        let only_other = other.done & !self.done;
        let left =
            |class: u32| self.left.binary_search_by_key(&class, |(c, _)| *c).map_or(0, |i| self.left[i].1);
        self.done & !other.done == 0
            && only_other & !self.hidden == 0
            && other.hidden & !self.hidden == 0
            && other.left.iter().all(|&(class, n)| left(class) >= n)
    }
}

impl<M: Model> Online for Search<M> {
    type Event = Event<M::Op>;
    type Violation = Stuck;
    type Verdict = Verdict;

    fn push(&mut self, event: Event<M::Op>) -> Result<(), Stuck> {
        if self.ended.is_none() {
            match event.what {
                What::Invoke(asked) => self.invoke(event.call, asked),
                What::Return(answer) => self.answer(event.call, answer),
                What::Unknown => self.lose(event.call),
            }
        }
        match &self.ended {
            Some(Verdict::Violation(stuck)) => Err(stuck.clone()),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Verdict {
        self.ended.clone().unwrap_or(Verdict::Linearizable)
    }

    fn kept(&self) -> usize {
        self.layers.iter().map(HashSet::len).sum::<usize>() + self.calls.len() + self.lost.len()
    }
}
