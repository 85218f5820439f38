//! Healing without a run: what others left behind goes, and nothing is called clean that nobody saw.

use rackrift::fault::heal::{Healed, heal_hosts};

use crate::bench::{Bench, names};
use crate::support::namespaces::{Mishap, Stage};
use rackrift::fault::shape::Shape;

async fn heal(bench: &Bench, host: &str) -> Healed {
    let folder = bench.lab.run_dir(host).display().to_string();
    let _alone = crate::kinds::machine().await;
    heal_hosts(&bench.remote, &names(&[host]), &folder).await.hosts.remove(host).unwrap()
}

fn two() -> Shape {
    Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) }
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_go_and_foreign_rules_stay() {
    let bench = Bench::new(&["m1", "m2"]);
    let foreign = |verb: &str| format!("iptables-nft -t raw -{verb} PREROUTING -s 198.18.9.9 -j ACCEPT");
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    cut.commit().await.unwrap();
    bench.lab.on("m2", &foreign("A"));
    // The undo script of m2 is lost: only the chains' names tell.
    std::fs::remove_file(bench.lab.run_dir("m2").join("test-1/undo.sh")).unwrap();
    for host in ["m1", "m2"] {
        let healed = heal(&bench, host).await;
        assert!(!healed.found.is_empty() && healed.left.is_empty(), "{host}: {healed:?}");
        assert_eq!(heal(&bench, host).await, Healed::default(), "{host} is clean the second time");
    }
    bench.lab.on("m2", &foreign("C"));
    assert!(bench.all_rules().values().all(|rules| !rules.contains("RACKRIFT")));
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lost_its_iptables_is_not_called_clean_and_keeps_its_dead_man() {
    let bench = Bench::new(&["m1", "m2"]);
    let cut = bench.prepare(bench.plan(&bench.request(1, &two())).await).await;
    cut.commit().await.unwrap();
    bench.lab.mishap("m1", Stage::Any, Mishap::NoIptables);
    let healed = heal(&bench, "m1").await;
    assert!(!healed.left.is_empty(), "{healed:?}");
    assert!(bench.lab.run_dir("m1").join("test-1/undo.sh").exists(), "the dead-man's switch can go on");
    bench.lab.no_more_mishaps();
    let healed = heal(&bench, "m1").await;
    assert!(healed.left.is_empty(), "{healed:?}");
    assert!(cut.heal().await.clean());
}
