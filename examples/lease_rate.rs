//! How many lease operations a second one API server takes, through a kept-open `kubectl proxy` and through one
//! `kubectl` process an operation, in one run.
//!
//! `cargo run --release --example lease_rate -- KUBECTL KUBECONFIG URL [SECONDS [CLIENTS]]`
//!
//! Uses the namespace `rackrift`, which it removes before and after. Reads are GETs without a resourceVersion;
//! compare-and-sets are PUTs with one. Both ways get the same number of clients, and the same seconds.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::Utc;
use rackrift::kube::lease::{self, Lease};
use rackrift::kube::{Answer, ApiServer, Kubectl, Proxies};
use rackrift::run::recorder::Recorder;
use rackrift::workload::lease::wire;
use rackrift::workload::namespace::{self, NAMESPACE};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, kubeconfig, url, rest @ ..] = args.as_slice() else {
        return Err("usage: lease_rate KUBECTL KUBECONFIG URL [SECONDS [CLIENTS]]".into());
    };
    let seconds = rest.first().map_or(Ok(10), |s| s.parse())?;
    let clients = rest.get(1).map_or(Ok(3), |s| s.parse())?;
    let kubectl = Kubectl::with(Path::new(program), Path::new(kubeconfig))?;
    namespace::create(&kubectl, Duration::from_secs(30)).await?;
    let folder = tempfile::tempdir()?;
    let recorder = Recorder::create(&folder.path().join("history.jsonl"), "lease-rate")?;
    let proxies = Proxies::start(&kubectl, [(&"server".to_owned(), url)], &recorder).await?;
    let server = &proxies.servers()[0];
    let pinned = kubectl.on(url);

    for i in 0..clients {
        create(server, i).await?;
    }
    println!("{clients} clients, {seconds} s each way, operations a second");
    for (what, cas) in [("read", false), ("compare-and-set", true)] {
        let kept = rate(clients, seconds, |i, end| kept_open(server.clone(), i, cas, end)).await?;
        let each = rate(clients, seconds, |i, end| process_each(pinned.clone(), i, cas, end)).await?;
        println!("{what}: {kept:.0} kept open, {each:.1} a process each, {:.0} times", kept / each);
    }
    proxies.stop().await;
    namespace::remove(&kubectl, Duration::from_secs(30)).await?;
    Ok(())
}

/// Operations a second of `clients` tasks in `seconds`.
async fn rate<F, T>(clients: usize, seconds: u64, task: F) -> Result<f64, Failure>
where
    F: Fn(usize, Instant) -> T,
    T: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..clients).map(|i| tokio::spawn(task(i, end))).collect();
    let mut done = 0_u32;
    for task in tasks {
        done += u32::try_from(task.await??)?;
    }
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}

async fn create(server: &ApiServer, i: usize) -> Result<(), Failure> {
    let new = Lease { name: wire::name(i), ..Lease::default() };
    let request = wire::create(&wire::next(&new, "rate", "w0".into(), 5, Utc::now()));
    match server.client().send(&request, LIMIT).await {
        Answer::Came { status: 201, .. } => Ok(()),
        other => Err(format!("cannot create a lease: {other:?}").into()),
    }
}

async fn kept_open(server: ApiServer, i: usize, cas: bool, end: Instant) -> Result<u64, Failure> {
    let mut client = server.client();
    let name = wire::name(i);
    let mut done = 0;
    let mut known = answered(client.send(&wire::read(&name), LIMIT).await)?;
    while Instant::now() < end {
        let request = if cas {
            wire::replace(&wire::next(&known, "rate", format!("w{done}"), 5, Utc::now()))
        } else {
            wire::read(&name)
        };
        known = answered(client.send(&request, LIMIT).await)?;
        done += 1;
    }
    Ok(done)
}

fn answered(answer: Answer) -> Result<Lease, Failure> {
    match answer {
        Answer::Came { status: 200, body } => Ok(lease::from_json(&body)?),
        other => Err(format!("no success: {other:?}").into()),
    }
}

async fn process_each(kubectl: Kubectl, i: usize, cas: bool, end: Instant) -> Result<u64, Failure> {
    let name = wire::name(i);
    let get = ["get", "lease", "-n", NAMESPACE, &name, "-o", "json"];
    let mut known = lease::from_json(kubectl.run(&get, None, LIMIT).await?.as_bytes())?;
    let mut done = 0;
    while Instant::now() < end {
        let shown = if cas {
            let next = wire::replace(&wire::next(&known, "rate", format!("w{done}"), 5, Utc::now()));
            let body = String::from_utf8(next.body.to_vec())?;
            let put = ["replace", "-n", NAMESPACE, "-f", "-", "-o", "json"];
            kubectl.run(&put, Some(&body), LIMIT).await?
        } else {
            kubectl.run(&get, None, LIMIT).await?
        };
        known = lease::from_json(shown.as_bytes())?;
        done += 1;
    }
    Ok(done)
}
