//! Numbers for states and operations, and the model's answers by these numbers.
//!
//! # Invariants
//! * The model is asked at most once for each pair of state and operation.
//! * State 0 is the first one.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::{Effect, Model};

/// The step is not allowed.
pub(super) const REFUSED: u32 = u32::MAX;
/// The model was not asked yet.
const UNASKED: u32 = u32::MAX - 1;
/// Answers kept in an array; beyond that, in a hash table.
const DENSE: usize = 4 << 20;

pub(super) struct Table<'m, M: Model> {
    pub(super) model: &'m M,
    states: Vec<M::State>,
    numbers: HashMap<M::State, u32, RandomState>,
    ops: Vec<M::Op>,
    classes: HashMap<M::Op, u32, RandomState>,
    effects: Vec<Effect>,
    dense: Vec<u32>,
    sparse: HashMap<(u32, u32), u32, RandomState>,
}

impl<'m, M: Model> Table<'m, M> {
    pub(super) fn new(model: &'m M) -> Self {
        let mut table = Self {
            model,
            states: Vec::new(),
            numbers: HashMap::default(),
            ops: Vec::new(),
            classes: HashMap::default(),
            effects: Vec::new(),
            dense: Vec::new(),
            sparse: HashMap::default(),
        };
        table.number(model.start());
        table
    }

    /// The number of an operation. All must be numbered before the first step.
    pub(super) fn class(&mut self, op: &M::Op) -> u32 {
        if let Some(&class) = self.classes.get(op) {
            return class;
        }
        let class = self.ops.len() as u32;
        self.ops.push(op.clone());
        self.effects.push(self.model.effect(op));
        self.classes.insert(op.clone(), class);
        class
    }

    pub(super) fn classes(&self) -> usize {
        self.ops.len()
    }

    pub(super) fn effect(&self, class: u32) -> Effect {
        self.effects[class as usize]
    }

    /// Bytes held, without what states point at.
    pub(super) fn bytes(&self) -> usize {
        self.dense.len() * 4 + self.sparse.len() * 16 + self.states.len() * 2 * size_of::<M::State>()
    }

    fn number(&mut self, state: M::State) -> u32 {
        if let Some(&number) = self.numbers.get(&state) {
            return number;
        }
        let number = self.states.len() as u32;
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        if self.dense.len() + self.ops.len() <= DENSE {
            self.dense.resize(self.dense.len() + self.ops.len(), UNASKED);
        }
        number
    }

    /// The state after an operation, or [`REFUSED`].
    #[inline]
    pub(super) fn step(&mut self, state: u32, class: u32) -> u32 {
        let at = state as usize * self.ops.len() + class as usize;
        match self.dense.get(at) {
            Some(&next) if next != UNASKED => next,
            _ => self.ask(state, class, at),
        }
    }

    /// Whether an operation is allowed in a state.
    #[inline]
    pub(super) fn allows(&mut self, state: u32, class: u32) -> bool {
        self.step(state, class) != REFUSED
    }

    #[cold]
    fn ask(&mut self, state: u32, class: u32, at: usize) -> u32 {
        // The first state was numbered before the operations were, so it may lack its row.
        let rows = (DENSE / self.ops.len().max(1)).min(self.states.len());
        if self.dense.len() < rows * self.ops.len() {
            self.dense.resize(rows * self.ops.len(), UNASKED);
        }
        if at >= self.dense.len()
            && let Some(&next) = self.sparse.get(&(state, class))
        {
            return next;
        }
        let next = match self.model.step(&self.states[state as usize], &self.ops[class as usize]) {
            Ok(next) => self.number(next),
            Err(_) => REFUSED,
        };
        match self.dense.get_mut(at) {
            Some(place) => *place = next,
            None => {
                self.sparse.insert((state, class), next);
            }
        }
        next
    }
}
