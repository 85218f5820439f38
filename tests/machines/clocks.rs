//! A machine's own wall clock, set and made fast.

use super::Stage;

const AHEAD: &str = "awk -v n=\"$(date +%s.%N)\" '{ printf \"%.3f\", n - $1 }' /proc/uptime";

/// How far the machine's clock is ahead of the other machine's, s. A tick that is longer makes every clock of a
/// machine fast, those that count from its boot too; only another machine can tell.
async fn ahead_of_the_other(stage: &Stage) -> f64 {
    let own = stage.number("a", "date +%s.%N").await;
    own - stage.number("b", "date +%s.%N").await
}

pub(crate) async fn jumps_and_rates(stage: &Stage) {
    let daemon = "systemctl is-active systemd-timesyncd || true";
    assert_eq!(stage.on("a", daemon).await, "active");
    let start = stage.number("a", AHEAD).await;
    for (text, by) in [("clock: {ahead: 1h}", 3_600.0), ("clock: {back: 2h}", -7_200.0)] {
        let deed = stage.deed(text, "a", &[]).await;
        let off = stage.number("a", AHEAD).await - start;
        assert!((off - by).abs() < 5.0, "{off} s");
        assert_eq!(stage.on("a", daemon).await, "inactive");
        // The other machine's clock is its own.
        stage.healed(deed).await;
        let back = stage.number("a", AHEAD).await - start;
        assert!(back.abs() < 5.0, "{back} s");
        assert_eq!(stage.on("a", daemon).await, "active");
        eprintln!("{text}: off by {off:.3} s, after the heal by {back:.3} s");
    }
    let deed = stage.deed("clock: {gain: 1000}", "a", &[]).await;
    let first = ahead_of_the_other(stage).await;
    stage.on("b", "sleep 20").await;
    let gained = ahead_of_the_other(stage).await - first;
    assert!(gained > 1.0, "a tenth of twenty seconds and more, not {gained} s");
    stage.healed(deed).await;
    assert!(stage.on("a", "adjtimex --print").await.contains("tick: 10000"));
    let deed = stage.deed("clock: {strobe: {by: 60s, every: 1s}}", "a", &[]).await;
    stage.healed(deed).await;
    let end = stage.number("a", AHEAD).await - start;
    assert!(end.abs() < 5.0, "{end} s");
    eprintln!("gain of a tenth: {gained:.3} s in twenty; at the end off by {end:.3} s");
}
