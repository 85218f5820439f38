//! Observes a lab for a while and prints what each observer wrote and missed, without any fault or workload.
//!
//! `cargo run --example observe_lab -- INVENTORY SECONDS HISTORY`
//!
//! It reads, and changes nothing: it may run beside a run. The history must not exist.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rackrift::host::remote::Remote;
use rackrift::host::{clock, enter};
use rackrift::kube::{Kubectl, Proxies, flags};
use rackrift::run::recorder::Recorder;
use rackrift::ssh::Fleet;
use rackrift::{inventory, observe};
use rackrift_checkers::clock::Clocks;

type Failure = Box<dyn std::error::Error>;

const LIMIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, seconds, history] = args.as_slice() else {
        return Err("usage: observe_lab INVENTORY SECONDS HISTORY".into());
    };
    let inventory = inventory::load(Path::new(file))?;
    // Before there is a second thread, as always.
    let _outside = inventory.namespace.as_deref().map(enter::enter).transpose()?;
    let time = Duration::from_secs(seconds.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(observe_for(time, &inventory, Path::new(history)))
}

async fn observe_for(
    time: Duration,
    inventory: &inventory::Inventory,
    history: &Path,
) -> Result<(), Failure> {
    let recorder = Recorder::create(history, "observe-lab")?;
    let remote: Arc<dyn Remote> = Arc::new(Fleet::new(inventory)?);
    let kubectl = Kubectl::new(inventory)?;
    let proxies = Proxies::start(&kubectl, &inventory.kubernetes.api_servers, &recorder).await?;
    let in_force = flags::read(remote.as_ref(), inventory, proxies.servers()).await?;
    let clocks = clock::start(&remote, inventory, &recorder);
    let mut observers = observe::start(&remote, inventory, proxies.servers(), &in_force, &recorder);
    tokio::time::sleep(time).await;
    let mut report = observers.stop(LIMIT).await;
    let clocks = Clocks::from_samples(&clocks.stop(LIMIT).await, observe::DRIFT);
    report.seen.extend(observers.collect(&clocks, LIMIT).await.seen);
    for (name, seen) in &report.seen {
        println!("{name}: {seen}");
    }
    proxies.stop().await;
    recorder.close()?;
    Ok(())
}
