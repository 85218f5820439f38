//! Many objects of one kind in one state. For comparison: [`parts`](crate::engine::search::parts()) is the fast way.

use std::collections::BTreeMap;
use std::hash::Hash;

use crate::engine::search::{Effect, Model};

/// Objects by key, all of the same model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerKey<K, M> {
    model: M,
    keys: std::marker::PhantomData<K>,
}

impl<K, M> PerKey<K, M> {
    /// Objects of this model.
    #[must_use]
    pub const fn new(model: M) -> Self {
        Self { model, keys: std::marker::PhantomData }
    }
}

impl<K: Ord + Clone + Hash, M: Model> Model for PerKey<K, M> {
    type State = BTreeMap<K, M::State>;
    type Op = (K, M::Op);

    fn start(&self) -> Self::State {
        BTreeMap::new()
    }

    fn step(&self, state: &Self::State, (key, op): &(K, M::Op)) -> Result<Self::State, String> {
        let next = match state.get(key) {
            Some(held) => self.model.step(held, op)?,
            None => self.model.step(&self.model.start(), op)?,
        };
        let mut all = state.clone();
        all.insert(key.clone(), next);
        // A key never touched and one back at its start are the same.
        all.retain(|_, held| *held != self.model.start());
        Ok(all)
    }

    fn effect(&self, (_, op): &(K, M::Op)) -> Effect {
        match self.model.effect(op) {
            Effect::ReadOnly => Effect::ReadOnly,
            // It overwrites its key, not the whole.
            Effect::Overwrites | Effect::Any => Effect::Any,
        }
    }
}
