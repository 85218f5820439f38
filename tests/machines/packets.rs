//! netem, which few containers have.

use super::Stage;

/// The mean round trip to `b` and the share of packets lost, in percent, of so many echoes.
async fn echoes(stage: &Stage, count: u32) -> (f64, f64) {
    let b = stage.machines.address("b");
    let line = format!("ping -q -c {count} -i 0.05 -W 3 {b} || true");
    let told = stage.on("a", &line).await;
    let lost = told.split(", ").find_map(|p| p.strip_suffix("% packet loss").map(str::to_owned));
    let lost = lost
        .or_else(|| told.split(", ").find_map(|p| p.split_once("% packet loss").map(|(n, _)| n.to_owned())));
    let mean = told.split_once("mdev = ").and_then(|(_, v)| v.split('/').nth(1).map(str::to_owned));
    (mean.map_or(f64::NAN, |m| m.parse().unwrap()), lost.unwrap().parse().unwrap())
}

/// Packets that `b` got twice, of so many echoes.
async fn doubled(stage: &Stage, count: u32) -> usize {
    let b = stage.machines.address("b");
    stage.on("a", &format!("ping -c {count} -i 0.05 -W 3 {b}")).await.matches("DUP!").count()
}

pub(crate) async fn netem(stage: &Stage) {
    let before = stage.on("a", "tc qdisc show").await;
    let (plain, lost) = echoes(stage, 20).await;
    assert!(lost < 1.0, "{lost} %");

    let deed = stage.deed("traffic: {to: 'host:b', delay: 300ms}", "a", &["b"]).await;
    let (late, _) = echoes(stage, 20).await;
    assert!((300.0..900.0).contains(&late), "{late} ms");
    // What goes elsewhere is not late.
    let gateway = stage.on("a", "ping -q -c 5 -i 0.1 -W 3 198.18.200.1").await;
    let other: f64 = gateway.split("mdev = ").nth(1).unwrap().split('/').nth(1).unwrap().parse().unwrap();
    assert!(other < 200.0, "{other} ms");
    stage.healed(deed).await;
    let (again, _) = echoes(stage, 20).await;
    assert!(again < 200.0, "{again} ms");
    eprintln!(
        "round trip: {plain} ms, delayed by 300 ms {late} ms, elsewhere {other} ms, after the heal {again} ms"
    );

    // Chance: 100 echoes at 40 % lose 40 ± 5 (one standard deviation); 15 to 65 is five of them.
    let deed = stage.deed("traffic: {to: 'host:b', loss: 40%}", "a", &["b"]).await;
    let (_, lost) = echoes(stage, 100).await;
    assert!((15.0..65.0).contains(&lost), "{lost} %");
    stage.healed(deed).await;
    let deed = stage.deed("traffic: {to: 'host:b', loss: 30%, burst: 5}", "a", &["b"]).await;
    let (_, bursts) = echoes(stage, 100).await;
    assert!(bursts > 0.0, "{bursts} %");
    stage.healed(deed).await;
    let deed = stage.deed("traffic: {to: 'host:b', duplicate: 50%}", "a", &["b"]).await;
    let twice = doubled(stage, 60).await;
    assert!((8..53).contains(&twice), "{twice}");
    stage.healed(deed).await;
    let deed = stage.deed("traffic: {to: 'host:b', corrupt: 50%}", "a", &["b"]).await;
    let (_, damaged) = echoes(stage, 60).await;
    assert!((15.0..85.0).contains(&damaged), "{damaged} %");
    stage.healed(deed).await;
    eprintln!(
        "lost {lost} % of 40, {bursts} % of 30 in bursts, {damaged} % damaged of 50, {twice} of 60 doubled at 50 %"
    );

    for text in [
        "traffic: {to: 'host:b', delay: 50ms, jitter: 20ms, distribution: normal}",
        "traffic: {to: 'host:b', delay: 50ms, reorder: 25%}",
        "traffic: {to: 'host:b', delay: 20ms, rate: 1mbit}",
    ] {
        let deed = stage.deed(text, "a", &["b"]).await;
        let told = stage.on("a", "tc -s qdisc show dev eth0").await;
        assert!(told.contains("netem") && told.contains("dropped 0"), "{told}");
        stage.healed(deed).await;
    }
    assert_eq!(stage.on("a", "tc qdisc show").await, before);
}

/// A root qdisc that an administrator set is not ours to replace.
pub(crate) async fn refused_by_an_own_root(stage: &Stage) {
    stage.on("a", "tc qdisc replace dev eth0 root handle 7: fq").await;
    let before = stage.on("a", "tc qdisc show dev eth0").await;
    let refused = stage.try_plan("traffic: {to: 'host:b', delay: 50ms}", "a", &["b"]).await.unwrap_err();
    assert!(refused.to_string().contains("a qdisc of its own"), "{refused}");
    assert_eq!(stage.on("a", "tc qdisc show dev eth0").await, before);
    stage.on("a", "tc qdisc del dev eth0 root").await;
}
