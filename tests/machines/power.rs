//! Machines that go away and come back.

use rackrift::fault::healing::HostEnd;

use super::Stage;

const BOOT: &str = "cat /proc/sys/kernel/random/boot_id";

pub(crate) async fn reboot_and_crash(stage: &Stage) {
    for text in ["machine: reboot", "machine: crash"] {
        let before = stage.on("a", BOOT).await;
        let kept = "echo kept >/var/lib/kept; sync; echo lost >/var/lib/lost";
        stage.on("a", kept).await;
        let deed = stage.deed(text, "a", &[]).await;
        let report = stage.healed(deed).await;
        assert_eq!(report.hosts["a"], HostEnd::Rebooted);
        assert_ne!(stage.on("a", BOOT).await, before);
        assert_eq!(stage.on("a", "cat /var/lib/kept").await, "kept");
    }
}

/// The undo, the rules and the dead man are gone with the boot; the file that fills the disk is not.
pub(crate) async fn a_crash_in_mid_fault(stage: &Stage) {
    let file = "/var/lib/.rackrift-machine-1.fill";
    let deed = stage.deed("fill: {path: /var/lib, leave: 100MiB}", "b", &[]).await;
    stage.on("b", "sync").await;
    let before = stage.on("b", BOOT).await;
    stage.machines.monitor("b", "system_reset");
    let mut tries = 0;
    while stage.on_if_up("b", BOOT).await.is_none_or(|now| now == before) {
        tries += 1;
        assert!(tries < 120, "it does not come back");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    assert_eq!(stage.on("b", &format!("ls {file}")).await, file);
    let report = stage.healed(deed).await;
    assert_eq!(report.hosts["b"], HostEnd::Rebooted);
    assert_eq!(stage.on("b", &format!("ls {file} 2>/dev/null || echo gone")).await, "gone");
}
