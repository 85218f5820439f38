//! Histories of an object with versions, and what can go wrong with them.

mod plant;

use super::clients::{Shape, work};
use crate::engine::NEVER;
use crate::engine::versioned::{Act, Operation, Version, WriteId};
pub use plant::{Anomaly, Kind, Planted, plant};

/// Clients that read the object and replace what they read, created by the first write. Versions have gaps, as
/// etcd's revisions have.
#[must_use]
pub fn compare_and_set(shape: Shape) -> Vec<Operation> {
    #[derive(Clone, Copy)]
    enum Ask {
        Read,
        Cas(Version, WriteId),
        Create(WriteId),
    }
    let clients = shape.clients.max(1);
    let known = std::cell::RefCell::new(vec![None::<Version>; clients]);
    let mut state: Option<(Version, WriteId)> = None;
    let (mut last, mut marks) = (0u64, 0u32);
    let done = work(
        shape,
        |chance, client| {
            let version = known.borrow_mut()[client].take();
            let mut mark = || {
                marks += 1;
                WriteId::new(marks).unwrap_or(WriteId::MAX)
            };
            match version {
                Some(version) if chance.happens(2, 3) => Ask::Cas(version, mark()),
                _ if chance.happens(1, 100) => Ask::Create(mark()),
                _ => Ask::Read,
            }
        },
        |client, ask| {
            let before = state;
            let mut make = |id| {
                last += 1 + last % 3;
                let version = Version::new(last).unwrap_or(Version::MIN);
                state = Some((version, id));
                version
            };
            let answer = match (*ask, before) {
                (Ask::Read, Some((version, id))) => (Act::Read { version }, Some(id)),
                (Ask::Read, None) => (Act::Absent, None),
                (Ask::Cas(expected, id), Some((now, _))) if now == expected => {
                    (Act::Cas { expected, version: make(id) }, Some(id))
                }
                (Ask::Cas(expected, id), Some(_)) => (Act::Conflict { expected }, Some(id)),
                (Ask::Cas(_, id), None) => (Act::Absent, Some(id)),
                (Ask::Create(id), None) => (Act::Create { version: make(id) }, Some(id)),
                (Ask::Create(id), Some(_)) => (Act::Exists, Some(id)),
            };
            if let Act::Read { version } | Act::Cas { version, .. } = answer.0 {
                known.borrow_mut()[client] = Some(version);
            }
            answer
        },
    );
    let mut ops = Vec::with_capacity(done.len());
    for done in done {
        let (act, id) = match (done.answer, done.ask, done.ret) {
            (Some(answer), _, ret) if ret != NEVER => answer,
            (_, Ask::Read, _) => continue,
            (_, Ask::Cas(expected, id), _) => (Act::MaybeCas { expected }, Some(id)),
            (_, Ask::Create(id), _) => (Act::MaybeCreate, Some(id)),
        };
        ops.push(Operation { inv: done.inv, ret: done.ret, act, id });
    }
    ops
}
