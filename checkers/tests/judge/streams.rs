//! The watches on the etcd members: what one leaves out, repeats or turns round, and the near misses.

use rackrift_checkers::history::{Entry, LeaseSeen};
use rackrift_checkers::verdict::Verdict;

use super::support::Run;
use super::{check, expect, names, planted};

const STREAMS: &str = "watch-streams";

/// Positions of what this member showed, in its order.
fn shown(run: &Run, via: &str) -> Vec<usize> {
    let by = |e: &Entry| matches!(e, Entry::Lease(l) if l.via == via);
    (0..run.entries.len()).filter(|&i| by(&run.entries[i])).collect()
}

fn lease(run: &mut Run, at: usize) -> &mut LeaseSeen {
    let Entry::Lease(seen) = &mut run.entries[at] else { panic!("no lease at {at}") };
    seen
}

#[test]
fn a_version_left_out_is_named_with_who_showed_it() {
    let mut run = planted(|_| ());
    let at = shown(&run, "etcd:e2")[20];
    let lost = lease(&mut run, at).version;
    run.entries.remove(at);
    let found = check(&run, STREAMS);
    expect(&found, Verdict::Fail, Some("watch-gap"));
    names(&found, &["on e2", &format!("left out version {lost} of"), "showed, and went on with"]);
    assert_eq!(found.witnesses[0].exhibits.len(), 2);
}

#[test]
fn a_version_that_nobody_else_showed_and_one_at_the_end_are_no_gap() {
    let mut run = planted(|_| ());
    let at = shown(&run, "etcd:e2")[20];
    let version = lease(&mut run, at).version;
    run.entries.retain(|e| !matches!(e, Entry::Lease(l) if l.version == version));
    let last = *shown(&run, "etcd:e2").last().expect("it showed something");
    run.entries.remove(last);
    expect(&check(&run, STREAMS), Verdict::Pass, None);
}

#[test]
fn what_lies_before_a_new_beginning_is_no_gap() {
    let mut run = planted(|_| ());
    let all = shown(&run, "etcd:e2");
    lease(&mut run, all[21]).anew = true;
    run.entries.remove(all[20]);
    expect(&check(&run, STREAMS), Verdict::Pass, None);
}

#[test]
fn a_version_shown_twice_is_named() {
    let mut run = planted(|_| ());
    let at = shown(&run, "etcd:e3")[30];
    let again = run.entries[at].clone();
    run.entries.insert(at + 1, again);
    let found = check(&run, STREAMS);
    expect(&found, Verdict::Fail, Some("watch-duplicate"));
    names(&found, &["on e3", "twice"]);
}

#[test]
fn two_versions_turned_round_are_a_gap_at_the_first_of_them() {
    let mut run = planted(|_| ());
    let all = shown(&run, "etcd:e1");
    run.entries.swap(all[40], all[41]);
    let found = check(&run, STREAMS);
    expect(&found, Verdict::Fail, Some("watch-gap"));
    names(&found, &["on e1", "went on with"]);
}

#[test]
fn a_delete_that_one_member_shows_as_a_write_is_named() {
    let mut run = planted(|_| ());
    let at = shown(&run, "etcd:e3")[30];
    lease(&mut run, at).deleted = true;
    let found = check(&run, STREAMS);
    expect(&found, Verdict::Fail, Some("watch-wrong-kind"));
}
