//! The search itself.
//!
//! # Invariants
//! * [`Cursor`] always tells of the event at which the search stands: it is moved forth and back with it.
//! * A frame is a return whose operation has not taken effect, or is optional: only there a choice is made.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::bits::Bits;
use super::events::{Event, Events, What};
use super::order;
use super::table::{REFUSED, Table};
use super::{Effect, Exhausted, Limit, Limits, Model, Outcome, Stuck};

/// How often, in steps, the caller is asked whether to stop.
const ASK_EVERY: u64 = 4096;

/// What is known at an event: the state, and what became of the open operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Config<const W: usize> {
    state: u32,
    /// Which operations of unknown outcome took effect, as a number of [`Spent`].
    spent: u32,
    /// Open operations that took effect.
    done: Bits<W>,
    /// Open operations that have not, but can have done so unseen: optional.
    hidden: Bits<W>,
}

/// One thing that can be done at a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The operation that returns took effect unseen.
    Hide,
    /// An open operation takes effect.
    Take {
        /// Its place.
        slot: u32,
        /// The operation.
        call: u32,
    },
    /// One of the operations of unknown outcome of this class takes effect.
    Spend {
        /// Their class.
        class: u32,
    },
}

struct Frame<const W: usize> {
    config: Config<W>,
    event: u32,
    /// Its steps in [`Search::steps`]: from here, and the next one to try.
    first: u32,
    next: u32,
}

/// Where the search stands in time.
struct Cursor<const W: usize> {
    event: usize,
    /// By place: the operation's invocation event.
    at: Vec<u32>,
    readers: Bits<W>,
    changers: Bits<W>,
    overwriters: Bits<W>,
    /// By class: operations of unknown outcome invoked so far.
    unknown: Vec<u32>,
    /// Classes of which there are any.
    unknown_classes: Vec<u32>,
}

impl<const W: usize> Cursor<W> {
    fn forth(&mut self, event: &Event, invoked: u32) {
        match event.what {
            What::Invoke => self.open(event, invoked),
            What::Return => self.close(event),
            What::Unknown => {
                let known = &mut self.unknown[event.class as usize];
                *known += 1;
                if *known == 1 {
                    self.unknown_classes.push(event.class);
                }
            }
        }
        self.event += 1;
    }

    fn back(&mut self, event: &Event, invoked: u32) {
        self.event -= 1;
        match event.what {
            What::Invoke => self.close(event),
            What::Return => self.open(event, invoked),
            What::Unknown => {
                let known = &mut self.unknown[event.class as usize];
                *known -= 1;
                if *known == 0 {
                    self.unknown_classes.pop();
                }
            }
        }
    }

    fn open(&mut self, event: &Event, invoked: u32) {
        self.at[event.slot as usize] = invoked;
        match event.effect {
            Effect::ReadOnly => self.readers.add(event.slot),
            Effect::Any => self.changers.add(event.slot),
            Effect::Overwrites => {
                self.changers.add(event.slot);
                self.overwriters.add(event.slot);
            }
        }
    }

    fn close(&mut self, event: &Event) {
        self.readers.remove(event.slot);
        self.changers.remove(event.slot);
        self.overwriters.remove(event.slot);
    }
}

/// How many operations of unknown outcome of each class took effect, numbered: few such counts ever occur, and many
/// configurations share one.
struct Spent {
    lists: Vec<Vec<(u32, u32)>>,
    numbers: HashMap<Vec<(u32, u32)>, u32, RandomState>,
    next: HashMap<(u32, u32), u32, RandomState>,
}

impl Spent {
    fn new() -> Self {
        let numbers = HashMap::from_iter([(Vec::new(), 0)]);
        Self { lists: vec![Vec::new()], numbers, next: HashMap::default() }
    }

    fn of(&self, number: u32, class: u32) -> u32 {
        let list = &self.lists[number as usize];
        list.binary_search_by_key(&class, |(c, _)| *c).map_or(0, |i| list[i].1)
    }

    fn plus(&mut self, number: u32, class: u32) -> u32 {
        if let Some(&next) = self.next.get(&(number, class)) {
            return next;
        }
        let mut list = self.lists[number as usize].clone();
        match list.binary_search_by_key(&class, |(c, _)| *c) {
            Ok(i) => list[i].1 += 1,
            Err(i) => list.insert(i, (class, 1)),
        }
        let lists = &mut self.lists;
        let plus = *self.numbers.entry(list).or_insert_with_key(|list| {
            lists.push(list.clone());
            lists.len() as u32 - 1
        });
        self.next.insert((number, class), plus);
        plus
    }
}

struct Search<'s, 'm, M: Model, const W: usize> {
    events: &'s Events,
    table: &'s mut Table<'m, M>,
    cursor: Cursor<W>,
    spent: Spent,
    seen: HashSet<(u32, bool, Config<W>), RandomState>,
    frames: Vec<Frame<W>>,
    steps: Vec<Step>,
    /// Scratch: the best required and the best optional operation of each class.
    best: Vec<[Option<(u32, u32, u32)>; 2]>,
    touched: Vec<u32>,
    ranked: Vec<(u32, Step)>,
}

pub(super) fn search<M: Model, const W: usize>(
    events: &Events,
    table: &mut Table<'_, M>,
    limits: Limits<'_>,
) -> Outcome {
    match Search::<M, W>::new(events, table).run(limits, events.list.len()) {
        Ok(path) => Outcome::Linearizable(order::of(events, events.list.len(), table, &path)),
        Err(Failed::Budget(exhausted)) => Outcome::Undecided(exhausted),
        Err(Failed::Stuck(event)) => {
            let before = Search::<M, W>::new(events, table)
                .run(Limits { stop: None, ..limits }, event)
                .map_or_else(|_| Vec::new(), |path| order::of(events, event, table, &path));
            Outcome::Violation(Stuck { culprit: events.list[event].call, before })
        }
    }
}

enum Failed {
    /// No way leads past this event.
    Stuck(usize),
    Budget(Exhausted),
}

impl<'s, 'm, M: Model, const W: usize> Search<'s, 'm, M, W> {
    fn new(events: &'s Events, table: &'s mut Table<'m, M>) -> Self {
        let classes = table.classes();
        Self {
            events,
            table,
            cursor: Cursor {
                event: 0,
                at: vec![0; events.slots],
                readers: Bits::NONE,
                changers: Bits::NONE,
                overwriters: Bits::NONE,
                unknown: vec![0; classes],
                unknown_classes: Vec::new(),
            },
            spent: Spent::new(),
            seen: HashSet::default(),
            frames: Vec::new(),
            steps: Vec::new(),
            best: vec![[None; 2]; classes],
            touched: Vec::new(),
            ranked: Vec::new(),
        }
    }

    /// Finds a way through the first `end` events: the steps taken, each with its event.
    fn run(mut self, limits: Limits<'_>, end: usize) -> Result<Vec<(u32, Step)>, Failed> {
        let mut config = Config { state: 0, spent: 0, done: Bits::NONE, hidden: Bits::NONE };
        let mut unseen = false;
        let (mut deepest, mut visited) = (0, 0u64);
        loop {
            let stands_at = self.cursor.event;
            if self.walk(&mut config, end) {
                return Ok(self.frames.iter().map(|f| (f.event, self.steps[f.next as usize - 1])).collect());
            }
            unseen &= self.cursor.event == stands_at;
            deepest = deepest.max(self.cursor.event);
            visited += 1;
            if let Some(limit) = self.over(limits, visited) {
                return Err(Failed::Budget(self.exhausted(limit, visited, deepest)));
            }
            self.choose(config, unseen);
            let Some(next) = self.next() else { return Err(Failed::Stuck(deepest)) };
            (config, unseen) = next;
        }
    }

    fn over(&self, limits: Limits<'_>, visited: u64) -> Option<Limit> {
        if visited > limits.steps {
            return Some(Limit::Steps);
        }
        if !visited.is_multiple_of(ASK_EVERY) {
            return None;
        }
        let entry = size_of::<(u32, bool, Config<W>)>() + 1;
        let bytes = self.seen.capacity() * entry
            + self.frames.capacity() * size_of::<Frame<W>>()
            + self.table.bytes();
        if bytes > limits.bytes {
            return Some(Limit::Bytes);
        }
        limits.stop.is_some_and(|stop| stop()).then_some(Limit::Stopped)
    }

    fn exhausted(&self, limit: Limit, steps: u64, deepest: usize) -> Exhausted {
        let returns = |events: &[Event]| events.iter().filter(|e| e.what == What::Return).count();
        Exhausted {
            limit,
            steps,
            reached: returns(&self.events.list[..deepest]),
            of: returns(&self.events.list),
        }
    }

    /// Walks on to the first event that asks for a choice; true if there is none before `end`.
    fn walk(&mut self, config: &mut Config<W>, end: usize) -> bool {
        while self.cursor.event < end {
            let event = &self.events.list[self.cursor.event];
            match event.what {
                What::Invoke => {
                    // A read-only operation that is allowed now can take effect now: the state stays as it is, so
                    // every order that has it later allows it here as well.
                    if event.effect == Effect::ReadOnly && self.table.allows(config.state, event.class) {
                        config.done.add(event.slot);
                    }
                }
                What::Return => {
                    if !config.done.has(event.slot) {
                        return false;
                    }
                    config.done.remove(event.slot);
                }
                What::Unknown => {}
            }
            let invoked = self.events.invoked[event.call as usize];
            self.cursor.forth(event, invoked);
        }
        true
    }

    /// Makes a frame of the steps possible here, unless this configuration was met before.
    fn choose(&mut self, config: Config<W>, unseen: bool) {
        let at = self.cursor.event as u32;
        // What was tried with more freedom needs no trying with less.
        if unseen && self.seen.contains(&(at, false, config)) {
            return;
        }
        if !self.seen.insert((at, unseen, config)) {
            return;
        }
        let x = self.events.list[self.cursor.event];
        self.rank_steps(&config, unseen, &x);
        let first = self.steps.len() as u32;
        self.ranked.sort_unstable_by_key(|(rank, _)| *rank);
        self.steps.extend(self.ranked.drain(..).map(|(_, step)| step));
        self.frames.push(Frame { config, event: at, first, next: first });
    }

    /// Lists the steps possible at the return `x`, the most promising with the lowest rank.
    fn rank_steps(&mut self, config: &Config<W>, unseen: bool, x: &Event) {
        let list = &self.events.list;
        // The next one to return that would have to be allowed: a look ahead that only sorts.
        let after = list[self.cursor.event + 1..].iter().find(|e| e.what == What::Return);
        let next = after.map(|e| e.class);
        if config.hidden.has(x.slot) {
            let bad = next.is_some_and(|class| !self.table.allows(config.state, class));
            self.ranked.push((u32::from(bad) * 2, Step::Hide));
        }
        for slot in self.cursor.changers.without(&config.done).iter() {
            let event = &list[self.cursor.at[slot as usize] as usize];
            let optional = usize::from(config.hidden.has(slot));
            let best = &mut self.best[event.class as usize];
            if *best == [None; 2] {
                self.touched.push(event.class);
            }
            if best[optional].is_none_or(|(deadline, ..)| event.deadline < deadline) {
                best[optional] = Some((event.deadline, slot, event.call));
            }
        }
        while let Some(class) = self.touched.pop() {
            let [required, optional] = std::mem::take(&mut self.best[class as usize]);
            // Of twins the one that returns first goes first: where another one takes effect now and it later, the two
            // can change places, since both are open now and the other stays open for longer. That also holds for an
            // optional one that returns later than a required one, but not the other way round.
            let optional = optional.filter(|o| required.is_none_or(|r| o.0 < r.0));
            for (_, slot, call) in required.into_iter().chain(optional) {
                self.rank(config, unseen, x, next, class, Step::Take { slot, call });
            }
        }
        for i in 0..self.cursor.unknown_classes.len() {
            let class = self.cursor.unknown_classes[i];
            // Twins that return go before those that never do, for the same reason.
            let twin = self.ranked.iter().any(|(_, step)| match *step {
                Step::Take { call, .. } => list[self.events.invoked[call as usize] as usize].class == class,
                _ => false,
            });
            if !twin && self.spent.of(config.spent, class) < self.cursor.unknown[class as usize] {
                self.rank(config, unseen, x, next, class, Step::Spend { class });
            }
        }
    }

    fn rank(
        &mut self,
        config: &Config<W>,
        unseen: bool,
        x: &Event,
        next: Option<u32>,
        class: u32,
        step: Step,
    ) {
        let state = self.table.step(config.state, class);
        if state == REFUSED {
            return;
        }
        // The last step could have been hidden under this one, or left out: that is tried elsewhere.
        if unseen && self.table.effect(class) == Effect::Overwrites {
            return;
        }
        let spends = matches!(step, Step::Spend { .. });
        // One of unknown outcome that changes nothing need not have happened, unless another one can hide under it.
        let hides = self.table.effect(class) == Effect::Overwrites
            && self.cursor.overwriters.without(&config.done).without(&config.hidden).iter().next().is_some();
        if spends && state == config.state && !hides {
            return;
        }
        let is_x = matches!(step, Step::Take { slot, .. } if slot == x.slot);
        let ends = is_x || (x.effect == Effect::ReadOnly && self.table.allows(state, x.class));
        let suits_next = ends && next.is_none_or(|class| self.table.allows(state, class));
        let rank = match (ends, suits_next) {
            (true, true) => 1,
            (true, false) => 3,
            (false, _) => 4,
        };
        self.ranked.push((rank + 4 * u32::from(spends), step));
    }

    /// Takes the next step that is left to try, of the last frame that has one: the configuration after it.
    fn next(&mut self) -> Option<(Config<W>, bool)> {
        loop {
            let frame = self.frames.last_mut()?;
            let (event, first, config) = (frame.event as usize, frame.first as usize, frame.config);
            let Some(&step) = self.steps.get(frame.next as usize) else {
                self.steps.truncate(first);
                self.frames.pop();
                continue;
            };
            frame.next += 1;
            while self.cursor.event > event {
                let last = &self.events.list[self.cursor.event - 1];
                self.cursor.back(last, self.events.invoked[last.call as usize]);
            }
            return Some(self.take(config, step));
        }
    }

    fn take(&mut self, mut config: Config<W>, step: Step) -> (Config<W>, bool) {
        let (class, optional) = match step {
            Step::Hide => {
                // The operation is over; that it was hidden is in the path.
                let x = self.events.list[self.cursor.event];
                config.done.add(x.slot);
                config.hidden.remove(x.slot);
                return (config, false);
            }
            Step::Take { slot, call } => {
                let hidden = config.hidden.has(slot);
                config.done.add(slot);
                config.hidden.remove(slot);
                (self.events.list[self.events.invoked[call as usize] as usize].class, hidden)
            }
            Step::Spend { class } => {
                config.spent = self.spent.plus(config.spent, class);
                (class, true)
            }
        };
        let overwrites = self.table.effect(class) == Effect::Overwrites;
        if overwrites {
            // Each open overwriting operation can have taken effect just before this one: nobody saw it.
            config.hidden.add_all_but(&self.cursor.overwriters, &config.done);
        }
        let before = config.state;
        config.state = self.table.step(before, class);
        let mut seen = false;
        if config.state != before {
            for slot in self.cursor.readers.without(&config.done).iter() {
                let class = self.events.list[self.cursor.at[slot as usize] as usize].class;
                if self.table.allows(config.state, class) {
                    config.done.add(slot);
                    seen = true;
                }
            }
        }
        (config, !seen && (overwrites || optional))
    }
}
