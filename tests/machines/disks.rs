//! A prepared volume of the device mapper, made slow, failing and hung.

use super::Stage;

/// One write, past the page cache: how long it took in ms, or nothing if it failed.
const WRITE: &str = "s=$(date +%s%N); dd if=/dev/zero of=/dev/mapper/data bs=4k count=4 oflag=direct 2>/dev/null \
                     && echo $((($(date +%s%N) - s) / 1000000)) || echo failed";
const READ: &str =
    "dd if=/dev/mapper/data of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null && echo read || echo failed";

pub(crate) async fn volumes(stage: &Stage) {
    let table = stage.on("a", "dmsetup table data").await;
    let plain = stage.number("a", WRITE).await;
    let deed = stage.deed("volume: {name: data, does: {delay: 300ms}}", "a", &[]).await;
    let slow = stage.number("a", WRITE).await;
    assert!(slow >= 1_200.0, "four writes of 300 ms took {slow} ms");
    stage.healed(deed).await;

    let deed = stage.deed("volume: {name: data, does: fail-writes}", "a", &[]).await;
    assert_eq!(stage.on("a", WRITE).await, "failed");
    assert_eq!(stage.on("a", READ).await, "read");
    stage.healed(deed).await;

    let deed = stage.deed("volume: {name: data, does: fail}", "a", &[]).await;
    assert_eq!(stage.on("a", READ).await, "failed");
    stage.healed(deed).await;

    let deed = stage.deed("volume: {name: data, does: hang}", "a", &[]).await;
    let pid = stage.on("a", &format!("({WRITE}) >/run/hung 2>&1 </dev/null & echo $!")).await;
    stage.on("a", "sleep 2").await;
    assert_eq!(stage.on("a", "cat /run/hung").await, "", "the write has not come back");
    stage.healed(deed).await;
    let wait = format!(
        "n=0; while [ -e /proc/{pid} ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done; cat /run/hung"
    );
    let hung = stage.number("a", &wait).await;
    assert!(hung >= 2_000.0, "{hung} ms");
    assert_eq!(stage.on("a", "dmsetup table data").await, table);
    eprintln!("four writes: {plain} ms; {slow} ms with 300 ms each; one that hung took {hung} ms in all");
}
