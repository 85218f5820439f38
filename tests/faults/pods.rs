//! Pods behind hosts, each in a namespace of its own whose addresses the network routes as they are.

use std::process::Command;
use std::time::Duration;

use rackrift::fault::address::Block;
use rackrift::fault::cut::OBSERVE_LIMIT;
use rackrift::fault::shape::Shape;

use crate::bench::{Bench, names};
use crate::support::namespaces::until;

const HOSTS: [&str; 2] = ["m1", "m2"];

/// One pod behind each host, at `198.19.N.2` and `fd19:N::2`.
struct Pods {
    of: Vec<String>,
}

fn ip(line: &str) {
    let done = Command::new("ip").args(line.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {line}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Pods {
    fn behind(bench: &Bench) -> Self {
        let mut pods = Self { of: Vec::new() };
        for (n, (host, other)) in [(1, (HOSTS[0], 2)), (2, (HOSTS[1], 1))] {
            let ns = bench.lab.namespace(host);
            let pod = format!("{ns}-pod");
            ip(&format!("netns add {pod}"));
            pods.of.push(pod.clone());
            ip(&format!("-n {ns} link add pod type veth peer name eth0 netns {pod}"));
            for (at, device, end) in [(&ns, "pod", 1), (&pod, "eth0", 2)] {
                ip(&format!("-n {at} addr add 198.19.{n}.{end}/24 dev {device}"));
                ip(&format!("-n {at} addr add fd19:{n}::{end}/64 dev {device} nodad"));
                ip(&format!("-n {at} link set {device} up"));
            }
            ip(&format!("-n {pod} route add default via 198.19.{n}.1"));
            ip(&format!("-n {pod} -6 route add default via fd19:{n}::1"));
            ip(&format!("-n {ns} route add 198.19.{other}.0/24 via 198.18.1.{other}"));
            ip(&format!("-n {ns} -6 route add fd19:{other}::/64 via fd18::{other}"));
            bench.lab.on(host, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        }
        pods
    }

    /// Who hears whose ping: pod and pod, pod and the other host, host and host.
    fn heard(&self, bench: &Bench) -> [Vec<bool>; 3] {
        let hosts = HOSTS.map(|h| bench.lab.namespace(h));
        let ways = |from: [&String; 2], to: [[&str; 2]; 2]| {
            let asks = from.into_iter().zip(to).flat_map(|(f, to)| to.map(|t| (f, t)));
            asks.map(|(f, t)| ping(f, t)).collect::<Vec<bool>>()
        };
        let pods = [&self.of[0], &self.of[1]];
        [
            ways(pods, [["198.19.2.2", "fd19:2::2"], ["198.19.1.2", "fd19:1::2"]]),
            ways(pods, [["198.18.1.2", "fd18::2"], ["198.18.1.1", "fd18::1"]]),
            ways([&hosts[0], &hosts[1]], [["198.18.1.2", "fd18::2"], ["198.18.1.1", "fd18::1"]]),
        ]
    }
}

/// The same answer both ways and in both families.
fn alike(answers: [bool; 3]) -> [Vec<bool>; 3] {
    answers.map(|a| vec![a; 4])
}

impl Drop for Pods {
    fn drop(&mut self) {
        for pod in &self.of {
            let _ = Command::new("ip").args(["netns", "del", pod]).status();
        }
    }
}

fn ping(from: &str, to: &str) -> bool {
    let line = ["netns", "exec", from, "ping", "-c", "2", "-i", "0.2", "-W", "1", to];
    Command::new("ip").args(line).output().unwrap().status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_of_hosts_leaves_routed_pods_to_each_other_and_one_with_their_ranges_does_not() {
    let bench = Bench::new(&HOSTS);
    let pods = Pods::behind(&bench);
    // Neighbours have to find each other first.
    assert!(until(Duration::from_secs(20), || pods.heard(&bench) == alike([true; 3])).await, "before");
    let before = bench.all_rules();
    let shape = Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) };
    for (number, with_pods) in [(1, false), (2, true)] {
        let mut request = bench.request(number, &shape);
        if with_pods {
            let ranges = |n: usize| -> Vec<Block> {
                [format!("198.19.{n}.0/24"), format!("fd19:{n}::/64")]
                    .iter()
                    .map(|r| r.parse().unwrap())
                    .collect()
            };
            let targets = (1..).zip(request.targets);
            request.targets = targets.map(|(n, t)| t.with_pods(&ranges(n))).collect();
        }
        let cut = bench.prepare(bench.plan(&request).await).await;
        cut.commit().await.unwrap();
        let seen = cut.observe(OBSERVE_LIMIT).await;
        assert!(seen.bites() && seen.collateral.is_empty(), "{seen:#?}");
        assert_eq!(pods.heard(&bench), alike([!with_pods, false, false]), "with pods: {with_pods}");
        assert!(cut.heal().await.clean());
        assert_eq!(bench.all_rules(), before);
        assert_eq!(pods.heard(&bench), alike([true; 3]), "healed");
    }
}
