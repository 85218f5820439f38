//! Every shape with every kind of packets: what is heard is what the plan promises, and after it all is as before.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rackrift::fault::cut::OBSERVE_LIMIT;
use rackrift::fault::flap::Flap;
use rackrift::fault::packets::Packets;
use rackrift::fault::shape::Shape;
use rackrift_checkers::generate::Chance;

use crate::bench::{Bench, names, promised};
use crate::support::heard::{Kind, LONG, PATIENCE, PORT, inside, matrix};
use crate::support::namespaces::until;

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

fn shapes() -> Vec<Shape> {
    let all = || names(&HOSTS);
    vec![
        Shape::RackSplit { a: names(&["a", "b"]), b: names(&["c", "d"]) },
        Shape::Isolate { hosts: names(&["a"]), others: names(&["b", "c", "d"]) },
        Shape::OneWay { from: names(&["a"]), to: names(&["b", "c", "d"]) },
        Shape::Bridge { a: names(&["a"]), b: names(&["c", "d"]) },
        Shape::Halves { hosts: all() },
        Shape::MajoritiesRing { hosts: all() },
        Shape::Random { hosts: all(), share: "40%".parse().unwrap(), chance: Chance::seeded(7) },
        Shape::AllBut { hosts: names(&["a", "b"]), spared: names(&["c"]), others: names(&["d"]) },
    ]
}

fn ports() -> Vec<std::num::NonZeroU16> {
    vec![PORT.try_into().unwrap(), 2_379.try_into().unwrap()]
}

fn modes() -> Vec<Packets> {
    let all = Packets::default;
    vec![
        all(),
        Packets { reject: true, ..all() },
        Packets { new: true, ..all() },
        Packets { ports: ports(), ..all() },
        Packets { ports: ports(), reject: true, ..all() },
        Packets { ports: ports(), new: true, ..all() },
        Packets { longer_than: Some(LONG - 200), ..all() },
    ]
}

async fn heard_as_promised(shape: Shape) {
    let bench = Bench::new(&HOSTS);
    let before = bench.all_rules();
    for (number, packets) in (1..).zip(modes()) {
        let mut request = bench.request(number, &shape);
        request.packets = packets;
        let plan = bench.plan(&request).await;
        let what = format!("{} {:?}", shape.name(), plan.packets);
        let cut = bench.prepare(plan.clone()).await;
        cut.commit().await.unwrap();
        let seen = cut.observe(OBSERVE_LIMIT).await;
        assert!(seen.bites() && seen.collateral.is_empty(), "{what}: {seen:#?}");
        let (heard, promised) = (matrix(&bench.lab), promised(&plan, &bench.lab));
        let wrong: Vec<_> = heard.iter().filter(|(k, v)| promised[*k] != **v).collect();
        assert!(wrong.is_empty() && heard.len() == promised.len(), "{what}: {wrong:#?}");
        assert!(heard.values().any(|h| !h), "{what}: nothing is cut");
        assert!(cut.heal().await.clean(), "{what}");
        assert_eq!(bench.all_rules(), before, "{what}");
    }
}

/// Most of it is waiting for packets that do not come, so all shapes have their turn at the same time.
#[test]
fn each_shape_with_each_kind_of_packets_is_heard_as_promised() {
    std::thread::scope(|scope| {
        for shape in shapes() {
            scope.spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(heard_as_promised(shape)));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_is_told_so_at_once_by_the_own_host() {
    let bench = Bench::new(&["m1", "m2"]);
    let mut request = bench.request(1, &Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) });
    request.packets = Packets { reject: true, ..Packets::default() };
    let cut = bench.prepare(bench.plan(&request).await).await;
    cut.commit().await.unwrap();
    for (from, to) in [("m1", "m2"), ("m2", "m1")] {
        for address in bench.lab.addresses(to) {
            let said = inside(&bench.lab.namespace(from), move || {
                TcpStream::connect_timeout(&SocketAddr::new(address, 22), PATIENCE).map_err(|e| e.kind())
            });
            assert_eq!(said.unwrap_err(), std::io::ErrorKind::ConnectionRefused, "{from} to {address}");
        }
    }
    assert!(cut.heal().await.clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_stays_open_only_where_new_connections_are_taken() {
    use std::io::{Read as _, Write as _};
    let bench = Bench::new(&["m1", "m2"]);
    let ear = SocketAddr::new(bench.lab.addresses("m2")[0], PORT);
    let listener = inside(&bench.lab.namespace("m2"), move || std::net::TcpListener::bind(ear)).unwrap();
    let mut open = inside(&bench.lab.namespace("m1"), move || TcpStream::connect(ear)).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    other.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let shape = Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) };
    let modes =
        [Packets { new: true, ..Packets::default() }, Packets { ports: ports(), ..Packets::default() }];
    for (number, packets) in (1..).zip(modes) {
        let stays = packets.new;
        let mut request = bench.request(number, &shape);
        request.packets = packets;
        let cut = bench.prepare(bench.plan(&request).await).await;
        cut.commit().await.unwrap();
        open.write_all(b"x").unwrap();
        assert_eq!(other.read_exact(&mut [0]).is_ok(), stays);
        assert!(cut.heal().await.clean());
    }
}

fn flapping(bench: &Bench) -> rackrift::fault::plan::Request {
    let mut request = bench.request(1, &Shape::RackSplit { a: names(&["m1"]), b: names(&["m2"]) });
    let length = |text: &str| text.parse().unwrap();
    request.flap = Some(Flap { on: length("2s"), off: length("2s"), jitter: Some(length("500ms")), seed: 3 });
    request
}

async fn becomes(bench: &Bench, open: bool) -> bool {
    until(Duration::from_secs(20), || {
        let heard = matrix(&bench.lab);
        let mut tcp = heard.iter().filter(|((_, _, kind, _), _)| *kind == Kind::Tcp);
        tcp.all(|(_, heard)| *heard == open)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flapping_cut_comes_and_goes_by_itself_until_it_is_healed() {
    let mut bench = Bench::new(&["m1", "m2"]);
    let before = bench.all_rules();
    let cut = bench.prepare(bench.plan(&flapping(&bench)).await).await;
    cut.commit().await.unwrap();
    assert!(cut.observe(OBSERVE_LIMIT).await.bites());
    for open in [false, true, false, true] {
        assert!(becomes(&bench, open).await, "open: {open}");
    }
    let alive = cut.keep_alive();
    bench.lab.on("m1", &format!("kill -9 \"$(cat {}/test-1/flap.pid)\"", bench.lab.run_dir("m1").display()));
    let told = bench.next_mark_that(|m| m.detail.as_deref().is_some_and(|d| d.contains("loop"))).await;
    assert_eq!(told.detail.as_deref(), Some("m1: the loop that makes it come and go does not run"));
    alive.stop().await;
    assert!(cut.heal().await.clean());
    assert_eq!(bench.all_rules(), before);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flapping_cut_ends_with_the_dead_mans_time() {
    let bench = Bench::new(&["m1", "m2"]);
    let before = bench.all_rules();
    let mut request = flapping(&bench);
    request.ttl = Duration::from_secs(6);
    let cut = bench.prepare(bench.plan(&request).await).await;
    cut.commit().await.unwrap();
    let quiet = until(Duration::from_secs(40), || {
        let busy = ["m1", "m2"].iter().any(|h| !bench.lab.processes(h).is_empty());
        bench.all_rules() == before && bench.left_behind().is_empty() && !busy
    });
    assert!(quiet.await, "left: {:?} {:#?}", bench.left_behind(), bench.all_rules());
    assert!(cut.heal().await.clean());
}
