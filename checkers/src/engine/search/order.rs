//! From the steps of a search to the order of the operations.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::events::{Events, What};
use super::run::Step;
use super::table::Table;
use super::{Effect, Model};

/// Where an operation stands in the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// After so many steps that changed something.
    after: u32,
    /// Hidden ones first, then the one that hides them, then those that read.
    part: u8,
    call: u32,
}

/// Replays a way through the first `end` events.
pub(super) fn of<M: Model>(
    events: &Events,
    end: usize,
    table: &mut Table<'_, M>,
    path: &[(u32, Step)],
) -> Vec<u32> {
    let mut path = path.iter().peekable();
    let mut order: Vec<Place> = Vec::new();
    let (mut state, mut steps) = (0, 0u32);
    // By open operation that has not taken effect: the step under which it can hide.
    let mut open: HashMap<u32, Option<u32>, RandomState> = HashMap::default();
    let mut unknown: HashMap<u32, VecDeque<u32>, RandomState> = HashMap::default();
    for (e, event) in events.list[..end].iter().enumerate() {
        match event.what {
            What::Unknown => unknown.entry(event.class).or_default().push_back(event.call),
            What::Invoke if event.effect == Effect::ReadOnly && table.allows(state, event.class) => {
                order.push(Place { after: steps, part: 2, call: event.call });
            }
            What::Invoke => {
                open.insert(event.call, None);
            }
            What::Return => {
                while let Some((_, step)) = path.next_if(|(at, _)| *at == e as u32) {
                    let call = match *step {
                        Step::Hide => {
                            if let Some(Some(under)) = open.remove(&event.call) {
                                order.push(Place { after: under, part: 0, call: event.call });
                            }
                            continue;
                        }
                        Step::Take { call, .. } => call,
                        Step::Spend { class } => {
                            match unknown.get_mut(&class).and_then(VecDeque::pop_front) {
                                Some(call) => call,
                                None => continue,
                            }
                        }
                    };
                    steps += 1;
                    open.remove(&call);
                    order.push(Place { after: steps, part: 1, call });
                    let class = events.list[events.invoked[call as usize] as usize].class;
                    state = table.step(state, class);
                    let hides = table.effect(class) == Effect::Overwrites;
                    open.retain(|&call, under| {
                        let event = &events.list[events.invoked[call as usize] as usize];
                        let reads = event.effect == Effect::ReadOnly && table.allows(state, event.class);
                        if reads {
                            order.push(Place { after: steps, part: 2, call });
                        } else if hides && event.effect == Effect::Overwrites && under.is_none() {
                            *under = Some(steps);
                        }
                        !reads
                    });
                }
            }
        }
    }
    order.sort_unstable();
    order.into_iter().map(|place| place.call).collect()
}
