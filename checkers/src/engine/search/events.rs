//! The history as events in time, with a place for each open operation.
//!
//! # Invariants
//! * At equal times invocations come before returns: closed intervals that touch are concurrent.
//! * An operation holds one place from its invocation to its return; places are given back and used again, so that
//!   there are as many as operations were open at once.
//! * Operations of unknown outcome hold no place: they never return, and are counted by their class.

use super::table::Table;
use super::{Call, Effect, Model};
use crate::engine::NEVER;

/// What happens at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Invoke,
    Return,
    /// An operation of unknown outcome was invoked.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) what: What,
    pub(super) effect: Effect,
    pub(super) call: u32,
    pub(super) class: u32,
    pub(super) slot: u32,
    /// The event at which the operation returns.
    pub(super) deadline: u32,
}

pub(super) struct Events {
    pub(super) list: Vec<Event>,
    /// How many operations were open at once.
    pub(super) slots: usize,
    /// For an operation: the event at which it was invoked.
    pub(super) invoked: Vec<u32>,
}

impl Events {
    pub(super) fn of<M: Model>(calls: &[Call<M::Op>], table: &mut Table<'_, M>) -> Self {
        let mut times: Vec<(u64, bool, u32)> = Vec::with_capacity(2 * calls.len());
        let mut classes: Vec<u32> = Vec::with_capacity(calls.len());
        for (i, call) in calls.iter().enumerate() {
            let class = table.class(&call.op);
            classes.push(class);
            let returns = call.ret != NEVER;
            // A read whose answer nobody got says nothing.
            if returns || table.effect(class) != Effect::ReadOnly {
                times.push((call.inv, false, i as u32));
            }
            if returns {
                times.push((call.ret, true, i as u32));
            }
        }
        times.sort_unstable();
        let mut deadline = vec![u32::MAX; calls.len()];
        let mut invoked = vec![u32::MAX; calls.len()];
        for (e, (_, returns, call)) in times.iter().enumerate() {
            if *returns {
                deadline[*call as usize] = e as u32;
            } else {
                invoked[*call as usize] = e as u32;
            }
        }
        let mut places = Places::default();
        let mut held: Vec<u32> = vec![0; calls.len()];
        let list = times
            .into_iter()
            .map(|(_, returns, call)| {
                let c = call as usize;
                let what = match (returns, calls[c].ret) {
                    (true, _) => What::Return,
                    (false, NEVER) => What::Unknown,
                    (false, _) => What::Invoke,
                };
                match what {
                    What::Invoke => held[c] = places.take(),
                    What::Return => places.give_back(held[c]),
                    What::Unknown => {}
                }
                Event {
                    what,
                    effect: table.effect(classes[c]),
                    call,
                    class: classes[c],
                    slot: held[c],
                    deadline: deadline[c],
                }
            })
            .collect();
        Self { list, slots: places.most, invoked }
    }
}

/// Places, the one given back last first: neighbouring operations then share few words.
#[derive(Default)]
struct Places {
    free: Vec<u32>,
    most: usize,
}

impl Places {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.most += 1;
            self.most as u32 - 1
        })
    }

    fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }
}
