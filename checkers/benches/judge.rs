//! How long the judge takes, and that it takes ten times as long for ten times as much.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rackrift_checkers::history::{At, Entry, Nanos, PodSeen, PodSource};
use rackrift_checkers::judge::judge;
use support::{Plan, Run};

/// The sample run with busy clients and so long a tail that it has about `entries` lines.
fn busy(entries: usize) -> Run {
    let mut plan = Plan::rack_split();
    plan.client_rate = 1_000.0;
    plan.end = entries as f64 / 385.0;
    plan.build()
}

/// The sample run with `pods` short-lived pods of one workload, three lines each, that begin `apart` ns after one another:
/// many at once, or each after the last.
fn churning(pods: u64, apart: Nanos) -> Run {
    let mut run = Plan::rack_split().build();
    let model = run.entries.iter().find_map(|entry| match entry {
        Entry::Pod(pod) if pod.identity == "lab/web" && pod.source == PodSource::Runtime => Some(pod.clone()),
        _ => None,
    });
    let Some(model) = model else { return run };
    run.entries.retain(|entry| !matches!(entry, Entry::Pod(pod) if pod.identity == model.identity));
    for n in 0..pods {
        let begin = n * apart;
        for (source, from, to) in [
            (PodSource::Heartbeat, begin, begin + 900_000_000),
            (PodSource::Runtime, begin, begin + 900_000_000),
            (PodSource::Api, begin, begin),
        ] {
            run.entries.push(Entry::Pod(PodSeen {
                from: At::exactly(from),
                to: At::exactly(to),
                source,
                uid: format!("uid-{n}"),
                name: format!("web-{n}"),
                container: Some(format!("c-{n}")),
                ..model.clone()
            }));
        }
    }
    run
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("judge");
    group.sample_size(10);
    let runs = [
        ("clients", busy(60_000)),
        ("clients", busy(500_000)),
        ("pods-at-once", churning(16_000, 1_000_000)),
        ("pods-at-once", churning(160_000, 1_000_000)),
        ("pods-in-a-row", churning(16_000, 3_000_000_000)),
        ("pods-in-a-row", churning(160_000, 3_000_000_000)),
    ];
    for (name, run) in &runs {
        group.throughput(Throughput::Elements(run.entries.len() as u64));
        group.bench_function(BenchmarkId::new(*name, run.entries.len()), |b| {
            b.iter_batched(|| (), |()| black_box(judge(&run.facts, &run.entries)), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
