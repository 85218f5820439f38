//! What systemd and a kubelet start again.

use super::Stage;

const STATE: &str = "systemctl is-active sleeper || true";

pub(crate) async fn units_and_crash_loops(stage: &Stage) {
    let pid = || async { stage.on("a", "systemctl show -p MainPID --value sleeper").await };
    let first = pid().await;
    let deed = stage.deed("service: {restart: sleeper}", "a", &[]).await;
    stage.healed(deed).await;
    let second = pid().await;
    assert_ne!(first, second);

    let deed = stage.deed("service: {stop: sleeper}", "a", &[]).await;
    assert_eq!(stage.on("a", STATE).await, "inactive");
    stage.healed(deed).await;
    assert_eq!(stage.on("a", STATE).await, "active");

    let deed = stage.deed("process: {crash-loop: {program: sleeper, every: 1s}}", "a", &[]).await;
    stage.on("a", "sleep 8").await;
    let restarts = stage.number("a", "systemctl show -p NRestarts --value sleeper").await;
    assert!(restarts >= 2.0, "{restarts}");
    stage.healed(deed).await;
    assert_eq!(stage.on("a", STATE).await, "active");
    let settled = pid().await;
    stage.on("a", "sleep 4").await;
    assert_eq!(pid().await, settled, "nobody kills it any more");

    // In a kubelet's place: what runs while the file is there.
    stage
        .on("a", "mkdir -p /etc/kubernetes/manifests; echo pod >/etc/kubernetes/manifests/sleeper.yaml")
        .await;
    stage
        .on(
            "a",
            "systemctl stop sleeper; systemd-run --quiet --unit=like-a-kubelet sh -c 'while sleep 0.2; do \
             if [ -e /etc/kubernetes/manifests/sleeper.yaml ]; then systemctl start sleeper; else systemctl stop sleeper; fi; done'",
        )
        .await;
    stage
        .on(
            "a",
            "n=0; until systemctl is-active -q sleeper || [ $n -gt 100 ]; do sleep 0.2; n=$((n + 1)); done",
        )
        .await;
    let deed = stage.deed("static-pod: {stop: sleeper}", "a", &[]).await;
    stage.healed(deed).await;
    assert_eq!(stage.on("a", "cat /etc/kubernetes/manifests/sleeper.yaml").await, "pod");
    stage.on("a", "systemctl stop like-a-kubelet; rm -r /etc/kubernetes; systemctl start sleeper").await;
}
