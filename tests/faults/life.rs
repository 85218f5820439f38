//! The whole life of partitions, and what is heard meanwhile.

use rackrift::fault::cut::OBSERVE_LIMIT;
use rackrift::fault::plan::Sides;
use rackrift::fault::shape::{Edge, Shape};
use rackrift_checkers::history::FaultPhase;

use crate::bench::{Bench, names, promised, racks};
use crate::support::heard::matrix;

#[tokio::test(flavor = "multi_thread")]
async fn a_rack_split_lives_its_whole_life() {
    let mut bench = Bench::new(&["m1", "w1", "m2", "w2"]);
    let before = bench.all_rules();
    let plan = bench.plan(&bench.request(1, &racks())).await;
    let cut = bench.prepare(plan.clone()).await;
    assert!(matrix(&bench.lab).values().all(|heard| *heard), "staged is not in force");

    let committed = cut.commit().await.unwrap();
    assert!(committed.unknown.is_empty(), "{committed:?}");
    let seen = cut.observe(OBSERVE_LIMIT).await;
    assert!(seen.bites(), "{seen:#?}");
    assert!(seen.collateral.is_empty() && seen.unseen.is_empty(), "{seen:#?}");
    assert_eq!(matrix(&bench.lab), promised(&plan, &bench.lab));
    assert!(bench.lab.hosts().iter().all(|h| bench.lab.controller_reaches(h)));

    let report = cut.heal().await;
    assert!(report.clean() && report.silent.is_empty(), "{report:#?}");
    assert!(matrix(&bench.lab).values().all(|heard| *heard));
    assert_eq!(bench.all_rules(), before);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    assert_eq!(bench.open_in_journal(), 0);
    let edges = plan.edges.len();
    let phases = bench.phases();
    for phase in [
        FaultPhase::Asked,
        FaultPhase::Applied,
        FaultPhase::Observed,
        FaultPhase::Healing,
        FaultPhase::Healed,
    ] {
        assert_eq!(phases.get(&phase), Some(&edges), "{phase:?} of {phases:?}");
    }
    assert_eq!(phases.len(), 5, "{phases:?}");
}

/// Every shape, and both places to drop: what is heard is what the plan promises, and after it all is as before.
async fn heard_as_promised(hosts: &[&str], shape: Shape, sides: Sides) {
    let bench = Bench::new(hosts);
    let before = bench.all_rules();
    let mut request = bench.request(1, &shape);
    request.sides = sides;
    let plan = bench.plan(&request).await;
    let cut = bench.prepare(plan.clone()).await;
    cut.commit().await.unwrap();
    let seen = cut.observe(OBSERVE_LIMIT).await;
    assert!(seen.bites() && seen.collateral.is_empty(), "{seen:#?}");
    assert_eq!(matrix(&bench.lab), promised(&plan, &bench.lab));
    assert!(cut.heal().await.clean());
    assert_eq!(bench.all_rules(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_way_loses_packets_of_one_direction_alone() {
    let shape = || Shape::OneWay { from: names(&["m1"]), to: names(&["m2", "w2"]) };
    heard_as_promised(&["m1", "m2", "w2"], shape(), Sides::Both).await;
    heard_as_promised(&["m1", "m2", "w2"], shape(), Sides::Receiver).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_way_of_a_one_way_cut_is_counted() {
    let bench = Bench::new(&["m1", "m2"]);
    let shape = Shape::OneWay { from: names(&["m1"]), to: names(&["m2"]) };
    let cut = bench.prepare(bench.plan(&bench.request(1, &shape)).await).await;
    cut.commit().await.unwrap();
    let seen = cut.observe(OBSERVE_LIMIT).await;
    assert!(seen.open[&Edge::new("m2", "m1")] > 0, "{seen:#?}");
    assert!(cut.heal().await.clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn bridge_isolate_and_ring_are_heard_as_promised() {
    let five = ["a", "b", "c", "d", "e"];
    let shapes = [
        Shape::Bridge { a: names(&five[..2]), b: names(&five[3..]) },
        Shape::Isolate { hosts: names(&five[..1]), others: names(&five[1..]) },
        Shape::MajoritiesRing { hosts: names(&five) },
    ];
    for shape in shapes {
        heard_as_promised(&five, shape, Sides::Both).await;
    }
}
