//! A set and a queue.

use std::collections::{BTreeSet, VecDeque};

use crate::engine::search::{Effect, Model};
use crate::history::Value;

/// A set, empty at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set;

/// An operation on a set, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetOp {
    /// Adds an element, which may be there already.
    Add(Value),
    /// Removes an element, which may not be there.
    Remove(Value),
    /// Was told whether an element is there.
    Contains(Value, bool),
    /// Read all elements.
    Read(BTreeSet<Value>),
}

impl Model for Set {
    type State = BTreeSet<Value>;
    type Op = SetOp;

    fn start(&self) -> Self::State {
        BTreeSet::new()
    }

    fn step(&self, state: &Self::State, op: &SetOp) -> Result<Self::State, String> {
        let mut next = state.clone();
        match op {
            SetOp::Add(value) => {
                next.insert(value.clone());
            }
            SetOp::Remove(value) => {
                next.remove(value);
            }
            SetOp::Contains(value, there) => {
                if state.contains(value) != *there {
                    let is = if *there { "is not" } else { "is" };
                    return Err(format!("{value} {is} in the set"));
                }
            }
            SetOp::Read(all) => {
                if let Some(lost) = state.difference(all).next() {
                    return Err(format!("cannot read the set without {lost}, which is in it"));
                }
                if let Some(phantom) = all.difference(state).next() {
                    return Err(format!("cannot read {phantom}, which is not in the set"));
                }
            }
        }
        Ok(next)
    }

    fn effect(&self, op: &SetOp) -> Effect {
        match op {
            SetOp::Contains(..) | SetOp::Read(_) => Effect::ReadOnly,
            SetOp::Add(_) | SetOp::Remove(_) => Effect::Any,
        }
    }
}

/// A queue, first in, first out, empty at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue;

/// An operation on a queue, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QueueOp {
    /// Adds at the end.
    Enqueue(Value),
    /// Took this from the front.
    Dequeue(Value),
    /// Was told that the queue is empty.
    Empty,
    /// Took something from the front, or found nothing: the answer was lost.
    DequeueUnknown,
}

impl Model for Queue {
    type State = VecDeque<Value>;
    type Op = QueueOp;

    fn start(&self) -> Self::State {
        VecDeque::new()
    }

    fn step(&self, state: &Self::State, op: &QueueOp) -> Result<Self::State, String> {
        let mut next = state.clone();
        match op {
            QueueOp::Enqueue(value) => next.push_back(value.clone()),
            QueueOp::Dequeue(value) => match next.pop_front() {
                Some(front) if front == *value => {}
                Some(front) => return Err(format!("cannot take {value}, {front} is at the front")),
                None => return Err(format!("cannot take {value}, the queue is empty")),
            },
            QueueOp::Empty => {
                if let Some(front) = state.front() {
                    return Err(format!("the queue is not empty: {front} is at the front"));
                }
            }
            QueueOp::DequeueUnknown => {
                next.pop_front();
            }
        }
        Ok(next)
    }

    fn effect(&self, op: &QueueOp) -> Effect {
        if matches!(op, QueueOp::Empty) { Effect::ReadOnly } else { Effect::Any }
    }
}

impl std::fmt::Display for SetOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Add(value) => write!(f, "add {value}"),
            Self::Remove(value) => write!(f, "remove {value}"),
            Self::Contains(value, true) => write!(f, "contains {value}"),
            Self::Contains(value, false) => write!(f, "does not contain {value}"),
            Self::Read(all) => write!(f, "read {}", Value::List(all.iter().cloned().collect())),
        }
    }
}

impl std::fmt::Display for QueueOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Enqueue(value) => write!(f, "enqueue {value}"),
            Self::Dequeue(value) => write!(f, "dequeue {value}"),
            Self::Empty => f.write_str("dequeue, found it empty"),
            Self::DequeueUnknown => f.write_str("dequeue, answer unknown"),
        }
    }
}
