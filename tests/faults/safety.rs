//! What a fault must not do: harm what is not its own, act by halves, stay.

use std::time::Duration;

use rackrift::fault::cut::{CutError, OBSERVE_LIMIT};
use rackrift::fault::healing::HostEnd;
use rackrift::fault::plan::Plan;
use rackrift::fault::shape::Shape;
use rackrift::fault::survey::survey;
use rackrift_checkers::history::FaultPhase;

use crate::bench::{Bench, names, promised};
use crate::support::heard::matrix;
use crate::support::namespaces::{Mishap, Stage};

fn two() -> Shape {
    Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) }
}

/// The message without the script's line, which is no promise.
fn without_line(error: &CutError) -> String {
    let text = error.to_string();
    let (before, after) = text.split_once("/bin/sh: ").unwrap();
    format!("{before}/bin/sh: N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread")]
async fn t9_rules_of_others_outlive_the_fault_also_those_put_first_meanwhile() {
    let mut bench = Bench::new(&["m1", "m2"]);
    let kubernetes = "iptables-nft -t mangle -N KUBE-KUBELET-CANARY; iptables-nft -t nat -N KUBE-SERVICES; \
                      iptables-nft -t nat -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES";
    bench.lab.on("m1", kubernetes);
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    cut.commit().await.unwrap();
    assert!(cut.observe(OBSERVE_LIMIT).await.bites());
    let alive = cut.keep_alive();
    let foreign = "-s 198.18.9.9 -m comment --comment \"not ours\" -j ACCEPT";
    bench.lab.on("m1", &format!("iptables-nft -t raw -I PREROUTING 1 {foreign}"));
    bench.lab.on("m1", "ip6tables-nft -t mangle -A FORWARD -s fd18::99 -j DROP");
    let moved = bench.next_mark_that(|m| m.phase == FaultPhase::Missing).await;
    assert_eq!(
        moved.detail.as_deref(),
        Some("m1: 1 foreign rule(s) stand above the jump in iptables-nft raw")
    );
    alive.stop().await;
    assert!(cut.heal().await.clean());
    let after = bench.lab.rules("m1");
    for kept in [
        "KUBE-KUBELET-CANARY",
        "KUBE-SERVICES",
        "\"not ours\" -j ACCEPT",
        "-A FORWARD -s fd18::99/128 -j DROP",
    ] {
        assert!(after.contains(kept), "{kept} is missing from\n{after}");
    }
    assert!(!after.contains("RACKRIFT") && !after.contains("rackrift"), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doing_twice_does_not_double_and_undoing_twice_is_clean() {
    let bench = Bench::new(&["m1", "m2"]);
    let before = bench.all_rules();
    let plan = bench.plan(&bench.request(1, &two())).await;
    let cut = bench.prepare(plan.clone()).await;
    cut.commit().await.unwrap();
    let once = bench.all_rules();
    let again = bench.prepare(plan).await;
    again.commit().await.unwrap();
    assert_eq!(bench.all_rules(), once);
    let first = cut.heal().await;
    assert!(first.hosts.values().all(|end| *end == HostEnd::Undone), "{first:?}");
    let second = again.heal().await;
    assert!(second.hosts.values().all(|end| *end == HostEnd::Already), "{second:?}");
    assert_eq!(bench.all_rules(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_faults_heal_one_by_one() {
    let bench = Bench::new(&["m1", "m2", "w2"]);
    let before = bench.all_rules();
    let split =
        bench.plan(&bench.request(1, &Shape::RackSplit { a: names(&["m1"]), b: names(&["m2", "w2"]) })).await;
    let one_way =
        bench.plan(&bench.request(2, &Shape::OneWay { from: names(&["m2"]), to: names(&["m1"]) })).await;
    let first = bench.prepare(split).await;
    first.commit().await.unwrap();
    let second = bench.prepare(one_way.clone()).await;
    second.commit().await.unwrap();
    // Healing the first waits for answers that the second keeps away.
    let alive = second.keep_alive();
    assert!(first.heal().await.clean());
    assert_eq!(matrix(&bench.lab), promised(&one_way, &bench.lab));
    alive.stop().await;
    assert!(second.heal().await.clean());
    assert_eq!(bench.all_rules(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_iptables_is_refused_while_planning() {
    let bench = Bench::new(&["m1", "m2"]);
    bench.lab.mishap("m2", Stage::Any, Mishap::NoIptables);
    let survey = survey(&bench.remote, &bench.lab.hosts()).await;
    let refused = Plan::build(&bench.request(1, &two()), &survey).unwrap_err();
    insta::assert_snapshot!(refused.to_string(), @r"
    m2 has no iptables (with -save and -restore), which it needs for IPv4; install iptables there
    m2 has no ip6tables (with -save and -restore), which it needs for IPv6; install iptables there
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn t3_if_one_host_cannot_be_prepared_nothing_is_left_on_any() {
    let bench = Bench::new(&["m1", "m2", "w2"]);
    let before = bench.all_rules();
    let shape = Shape::RackSplit { a: names(&["m1"]), b: names(&["m2", "w2"]) };
    let plan = bench.plan(&bench.request(1, &shape)).await;
    bench.lab.mishap("m2", Stage::Prepare, Mishap::NoIptables);
    let error = bench.try_prepare(plan).await.unwrap_err();
    insta::assert_snapshot!(without_line(&error), @"fault rack-split-1 could not be prepared: m2: iptables-nft-restore did not take the rules (/bin/sh: N: iptables-nft-restore: Permission denied); nothing is left on m1, m2, w2");
    assert_eq!(bench.all_rules(), before);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    assert_eq!(bench.open_in_journal(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn if_one_host_fails_to_commit_all_are_healed() {
    let bench = Bench::new(&["m1", "m2"]);
    let before = bench.all_rules();
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    bench.lab.mishap("m2", Stage::Commit, Mishap::NoIptables);
    let error = cut.commit().await.unwrap_err();
    insta::assert_snapshot!(without_line(&error), @"fault rack-split-1 could not be committed: m2: it did not take effect: iptables-nft/raw iptables-nft/mangle ip6tables-nft/raw ip6tables-nft/mangle (/bin/sh: N: ip6tables-nft: Permission denied); nothing is left on m1, m2");
    assert_eq!(bench.all_rules(), before);
    assert!(matrix(&bench.lab).values().all(|heard| *heard));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_looked_for_not_asked_again() {
    let mut bench = Bench::new(&["m1", "m2"]);
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    bench.lab.mishap("m2", Stage::Commit, Mishap::AnswerLost);
    let committed = cut.commit().await.unwrap();
    assert!(committed.unknown.is_empty(), "found by looking: {committed:?}");
    assert!(cut.observe(OBSERVE_LIMIT).await.bites());
    assert_eq!(bench.lab.scripts("m2", Stage::Commit), 1);
    assert!(cut.heal().await.clean());
    assert_eq!(bench.phases().get(&FaultPhase::Unknown), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stays_away_is_named_until_it_was_seen_clean() {
    let bench = Bench::new(&["m1", "m2"]);
    let mut request = bench.request(1, &two());
    request.ttl = Duration::from_secs(6);
    let cut = bench.prepare(bench.plan(&request).await).await;
    cut.commit().await.unwrap();
    bench.lab.mishap("m2", Stage::Any, Mishap::Unreachable);
    let report = cut.heal().await;
    insta::assert_snapshot!(report.to_string(), @"NOT verified clean: m2 (no route to host); run `rackrift heal`");
    assert_eq!(report.hosts["m1"], HostEnd::Undone);
    assert_eq!(bench.open_in_journal(), 1);
    bench.lab.no_more_mishaps();
    // Its own dead-man's switch has done it meanwhile.
    assert_eq!(cut.heal().await.hosts["m2"], HostEnd::Already);
    assert_eq!(bench.open_in_journal(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_connection_that_an_accept_protects_is_cut_as_well() {
    let bench = Bench::new(&["m1", "m2"]);
    for host in ["m1", "m2"] {
        bench.lab.on(host, "iptables-nft -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
    }
    let before = bench.all_rules();
    let mut live = bench.lab.connection("m1", "m2");
    assert!(live.carries(), "the connection works");
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    cut.commit().await.unwrap();
    assert!(!live.carries(), "nothing gets through the live connection");
    assert!(cut.observe(OBSERVE_LIMIT).await.bites());
    assert!(cut.heal().await.clean());
    assert_eq!(bench.all_rules(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn t19_the_legacy_back_end_is_used_where_kubernetes_uses_it() {
    let bench = Bench::new(&["m1", "m2"]);
    bench.lab.on(
        "m1",
        "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT; ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT",
    );
    let plan = bench.plan(&bench.request(1, &two())).await;
    let tools =
        |host: &str| plan.hosts[host].hooks.iter().map(|h| h.tool.command.clone()).collect::<Vec<_>>();
    assert_eq!(tools("m1"), ["iptables-legacy", "iptables-legacy", "ip6tables-legacy", "ip6tables-legacy"]);
    assert_eq!(tools("m2"), ["iptables-nft", "iptables-nft", "ip6tables-nft", "ip6tables-nft"]);
    let before = bench.snapshots().await;
    let cut = bench.prepare(plan.clone()).await;
    cut.commit().await.unwrap();
    assert!(cut.observe(OBSERVE_LIMIT).await.bites());
    assert_ne!(bench.snapshots().await, before);
    assert_eq!(matrix(&bench.lab), promised(&plan, &bench.lab));
    assert!(cut.heal().await.clean());
    assert_eq!(bench.snapshots().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn t12_the_controller_gets_through_and_a_plan_that_would_cut_it_is_refused() {
    let bench = Bench::new(&["m1", "m2"]);
    let survey = survey(&bench.remote, &bench.lab.hosts()).await;
    let mut request = bench.request(1, &two());
    request.targets[0].blocks.push("198.18.0.0/24".parse().unwrap());
    let refused = Plan::build(&request, &survey).unwrap_err();
    insta::assert_snapshot!(refused.to_string(), @"this would cut the control path: 198.18.0.0/24 of m1 holds 198.18.0.1, which is protected (m1 sees the controller there)");

    // The whole subnet of the controller is cut, but not the controller: it has to come as a block of a host.
    let mut request = bench.request(1, &two());
    request.targets[1].blocks = vec!["198.18.1.0/24".parse().unwrap(), "fd18::2".parse().unwrap()];
    request.targets[0].blocks = vec![bench.lab.addresses("m1")[1].into()];
    let cut = bench.prepare(Plan::build(&request, &survey).unwrap()).await;
    cut.commit().await.unwrap();
    assert!(bench.lab.controller_reaches("m1") && bench.lab.controller_reaches("m2"));
    assert!(cut.heal().await.clean());
}
