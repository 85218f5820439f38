//! How far apart in time a cut comes into force on many hosts of one machine.
//!
//! Figures, no judgement: all hosts share this machine's cores, so what is measured is what the commits cost together.
//! Long, so it is `scripts/crowd` that runs it.

use std::time::{Duration, SystemTime};

use rackrift::fault::script::on_each;
use rackrift::fault::shape::Shape;
use rackrift::host::remote::Script;

use crate::bench::Bench;

/// Milliseconds.
fn ms(length: Duration) -> f64 {
    length.as_secs_f64() * 1e3
}

/// One cut between two halves of `n` hosts: how long from the command to the first and to the last host in force.
async fn cut(n: usize) -> (Duration, Duration) {
    let names: Vec<String> = (1..=n).map(|i| format!("h{i}")).collect();
    let bench = Bench::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (a, b) = names.split_at(n / 2);
    let mut request = bench.request(1, &Shape::RackSplit { a: a.to_vec(), b: b.to_vec() });
    request.ttl = Duration::from_secs(120);
    let plan = bench.plan(&request).await;
    // Not by `Cut`: its probes of each edge, 20,000 of 200 hosts, are not what is measured here.
    let scripts = |body: &dyn Fn(&rackrift::fault::plan::HostPlan) -> String| {
        let script = |text| Script::new(text).limit(Duration::from_secs(100));
        plan.hosts.iter().map(|(host, h)| (host.clone(), script(body(h)))).collect()
    };
    for (host, outcome) in on_each(&bench.remote, scripts(&|h| plan.envelope(h).prepare())).await {
        outcome.ok().unwrap_or_else(|e| panic!("{host} was not prepared: {e}"));
    }
    let asked = SystemTime::now();
    for (host, outcome) in on_each(&bench.remote, scripts(&|h| plan.envelope(h).commit())).await {
        outcome.ok().unwrap_or_else(|e| panic!("{host} did not commit: {e}"));
    }
    // Written when the rules act; namespaces share the clock.
    let in_force = |host: &String| {
        let made = bench.lab.run_dir(host).join("test-1/committed").metadata().unwrap().modified().unwrap();
        made.duration_since(asked).unwrap_or_default()
    };
    let moments: Vec<Duration> = names.iter().map(in_force).collect();
    for (host, outcome) in on_each(&bench.remote, scripts(&|h| plan.envelope(h).undo())).await {
        outcome.ok().unwrap_or_else(|e| panic!("{host} was not healed: {e}"));
    }
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    (*moments.iter().min().unwrap(), *moments.iter().max().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "figures: scripts/crowd runs it"]
#[expect(clippy::print_stdout, reason = "the figures")]
async fn from_command_to_in_force() {
    let most = std::env::var("RACKRIFT_HOSTS").map_or(200, |n| n.parse().unwrap());
    println!("{:>5} {:>12} {:>12} {:>12}", "hosts", "first, ms", "last, ms", "spread, ms");
    for n in [2, 8, 50, 200_usize].into_iter().filter(|n| *n <= most) {
        for _ in 0..3 {
            let (first, last) = cut(n).await;
            println!("{n:>5} {:>12.1} {:>12.1} {:>12.1}", ms(first), ms(last), ms(last - first));
        }
    }
}
