//! Is an order a proof? Checked without anything of the search: the definition, applied to one order, in O(n).

use super::{Call, Model};
use crate::engine::NEVER;

/// Why an order proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It names an operation that is not there.
    #[error("operation {0} does not exist")]
    NoSuchOperation(u32),
    /// It names an operation twice.
    #[error("operation {0} stands in the order twice")]
    Twice(u32),
    /// An operation that returned is not in it.
    #[error("operation {0} returned, but is not in the order")]
    Missing(u32),
    /// It turns real time round.
    #[error("operation {later} stands before operation {earlier}, which returned before it was invoked")]
    TimeReversed {
        /// The one that stands first.
        later: u32,
        /// The one that returned first.
        earlier: u32,
    },
    /// The model does not allow it.
    #[error("operation {op} is not allowed where it stands: {why}")]
    Refused {
        /// The operation.
        op: u32,
        /// The model's word.
        why: String,
    },
}

/// Whether `order` explains all operations.
///
/// # Errors
/// The first thing wrong with it.
pub fn verify<M: Model>(model: &M, calls: &[Call<M::Op>], order: &[u32]) -> Result<(), Wrong> {
    let mut placed = vec![false; calls.len()];
    let mut state = model.start();
    // The operation, of those before, that was invoked last.
    let mut latest: Option<u32> = None;
    for &op in order {
        let call = calls.get(op as usize).ok_or(Wrong::NoSuchOperation(op))?;
        if std::mem::replace(&mut placed[op as usize], true) {
            return Err(Wrong::Twice(op));
        }
        if let Some(later) = latest.filter(|&l| calls[l as usize].inv > call.ret) {
            return Err(Wrong::TimeReversed { later, earlier: op });
        }
        if latest.is_none_or(|l| calls[l as usize].inv < call.inv) {
            latest = Some(op);
        }
        state = model.step(&state, &call.op).map_err(|why| Wrong::Refused { op, why })?;
    }
    match calls.iter().zip(placed).position(|(call, placed)| call.ret != NEVER && !placed) {
        Some(op) => Err(Wrong::Missing(op as u32)),
        None => Ok(()),
    }
}
