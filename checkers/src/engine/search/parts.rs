//! Keys checked apart.
//!
//! # Why it is exact
//! If no operation touches two keys, the whole is linearizable if and only if the operations on each key are (Herlihy
//! and Wing: linearizability is local; Horn and Kroening call it P-compositional). The sum of the parts costs far less
//! than their product.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Call, Limits, Model, Outcome, check};

/// Threads that check keys.
const THREADS: usize = 2;

/// Operations by key, each with its position in the whole.
pub type Parts<K, O> = BTreeMap<K, (Vec<u32>, Vec<Call<O>>)>;

/// Takes a history apart.
#[must_use]
pub fn parts<K: Ord, O: Clone>(calls: &[Call<O>], key: impl Fn(&O) -> K) -> Parts<K, O> {
    let mut parts: Parts<K, O> = BTreeMap::new();
    for (i, call) in calls.iter().enumerate() {
        let (at, part) = parts.entry(key(&call.op)).or_default();
        at.push(i as u32);
        part.push(call.clone());
    }
    parts
}

/// Checks each key on its own, the longest first, on two threads. After a violation no further key is begun, so some
/// keys may have no outcome then; otherwise each has one. The limits hold for each key.
#[must_use]
pub fn check_parts<K, M>(model: &M, parts: &Parts<K, M::Op>, limits: Limits<'_>) -> BTreeMap<K, Outcome>
where
    K: Ord + Clone + Send + Sync,
    M: Model + Sync,
    M::Op: Sync,
{
    let mut longest: Vec<(&K, &Vec<Call<M::Op>>)> = parts.iter().map(|(k, (_, calls))| (k, calls)).collect();
    longest.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.len()));
    let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
    let found = Mutex::new(BTreeMap::new());
    let work = || {
        while !broken.load(Ordering::Relaxed) {
            let Some((key, calls)) = longest.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let outcome = check(model, calls, limits);
            if matches!(outcome, Outcome::Violation(_)) {
                broken.store(true, Ordering::Relaxed);
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).insert((*key).clone(), outcome);
        }
    };
    std::thread::scope(|scope| {
        // A history of one key, or a short one, is not worth a thread.
        let many = longest.len() > 1 && longest.iter().map(|(_, c)| c.len()).sum::<usize>() > 1000;
        for _ in 1..if many { THREADS } else { 1 } {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
