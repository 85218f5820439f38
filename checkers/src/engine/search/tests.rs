use super::*;
use crate::engine::NEVER;
use crate::model::{Register, RegisterOp};

const ZERO: Register<u8> = Register { start: 0 };

fn call(inv: u64, ret: u64, op: RegisterOp<u8>) -> Call<RegisterOp<u8>> {
    Call { inv, ret, op }
}

fn answer(calls: &[Call<RegisterOp<u8>>]) -> Outcome {
    let outcome = check(&ZERO, calls, Limits::default());
    if let Outcome::Linearizable(order) = &outcome {
        verify(&ZERO, calls, order).unwrap();
    }
    outcome
}

#[test]
fn a_read_of_what_was_never_written_is_named() {
    use RegisterOp::{Read, Write};
    let calls = [call(0, 1, Write(4)), call(2, 3, Read(4)), call(4, 5, Read(3)), call(6, 7, Read(4))];
    assert_eq!(answer(&calls), Outcome::Violation(Stuck { culprit: 2, before: vec![0, 1] }));
}

#[test]
fn hidden_writes_stand_before_the_one_that_hides_them() {
    use RegisterOp::{Read, Write};
    let calls = [call(0, 10, Write(1)), call(0, 11, Write(2)), call(0, 5, Write(3)), call(12, 13, Read(3))];
    let Outcome::Linearizable(order) = answer(&calls) else {
        panic!("three writes at once, any can be last")
    };
    assert_eq!(order.iter().rev().take(2).collect::<Vec<_>>(), [&3, &2]);
}

#[test]
fn an_operation_of_unknown_outcome_may_be_left_out_or_used() {
    use RegisterOp::{Cas, Read, Write};
    let lost = call(0, NEVER, Cas { from: 0, to: 7 });
    assert_eq!(answer(std::slice::from_ref(&lost)), Outcome::Linearizable(vec![]));
    let used = [lost.clone(), call(3, 4, Read(7)), call(5, 6, Write(0)), call(7, 8, Read(0))];
    assert_eq!(answer(&used), Outcome::Linearizable(vec![0, 1, 2, 3]));
    let twice = [lost, call(3, 4, Read(7)), call(5, 6, Write(0)), call(7, 8, Read(7))];
    assert!(matches!(answer(&twice), Outcome::Violation(Stuck { culprit: 3, .. })));
}

#[test]
fn a_budget_that_runs_out_is_no_pass() {
    use RegisterOp::{Read, Write};
    let calls: Vec<_> = (0..20)
        .flat_map(|i| [call(4 * i, 4 * i + 1, Write(1)), call(4 * i + 2, 4 * i + 3, Read(1))])
        .collect();
    let few = Limits { steps: 5, ..Limits::default() };
    let Outcome::Undecided(e) = check(&ZERO, &calls, few) else { panic!("five steps do not suffice") };
    assert_eq!((e.limit, e.of), (Limit::Steps, 40));
    assert!(e.reached > 0 && e.reached < 40, "{e:?}");
}
