//! Histories of a register whose values repeat.

use super::clients::{Done, Shape, work};
use crate::engine::NEVER;
use crate::engine::search::Call;
use crate::model::RegisterOp;

/// A linearizable history of a register that starts at 0: reads, writes and compare-and-sets, a third each, over
/// values below `values`. A compare-and-set that was refused says so.
#[must_use]
pub fn small_values(shape: Shape, values: u32) -> Vec<Call<RegisterOp<u32>>> {
    let mut state = 0;
    let done = work(
        shape,
        |chance, _| {
            let mut value = || chance.below(u64::from(values)) as u32;
            let (from, to) = (value(), value());
            match chance.below(3) {
                0 => RegisterOp::ReadAny,
                1 => RegisterOp::Write(to),
                _ => RegisterOp::Cas { from, to },
            }
        },
        |_, ask| match *ask {
            RegisterOp::Write(to) => {
                state = to;
                RegisterOp::Write(to)
            }
            RegisterOp::Cas { from, to } if from == state => {
                state = to;
                RegisterOp::Cas { from, to }
            }
            RegisterOp::Cas { from, .. } => RegisterOp::CasRefused { from },
            _ => RegisterOp::Read(state),
        },
    );
    let of = |done: Done<RegisterOp<u32>, RegisterOp<u32>>| {
        let op = match done.answer {
            Some(answer) if done.ret != NEVER => answer,
            _ if done.ask == RegisterOp::ReadAny => return None,
            _ => done.ask,
        };
        Some(Call { inv: done.inv, ret: done.ret, op })
    };
    done.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::search::{Limits, Outcome, check, verify};
    use crate::model::Register;

    #[test]
    fn what_is_generated_is_linearizable_and_follows_from_its_seed() {
        for seed in 0..20 {
            let shape = Shape { operations: 400, clients: 8, lost: 50, seed };
            let calls = small_values(shape, 5);
            assert_eq!(calls, small_values(shape, 5));
            let model = Register { start: 0 };
            let Outcome::Linearizable(order) = check(&model, &calls, Limits::default()) else {
                panic!("{seed}")
            };
            verify(&model, &calls, &order).unwrap();
        }
    }
}
