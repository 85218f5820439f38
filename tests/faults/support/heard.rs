//! Who hears whom, found out with sockets of our own: no tool of the host, and none of the code under test.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, ipproto};

use super::namespaces::Lab;

/// How long a packet may take over the bridge of one machine.
pub(crate) const PATIENCE: Duration = Duration::from_millis(400);
/// The port of the ears.
pub(crate) const PORT: u16 = 9;
/// A long echo in IPv4, with all headers, bytes; 20 more in IPv6.
pub(crate) const LONG: u16 = 1_200;
/// Header of IPv4, bytes.
const HEADER: usize = 20;

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A datagram, heard by the receiver: one direction.
    Udp,
    /// A connection opened: both directions.
    Tcp,
    /// A short echo answered: both directions.
    Ping,
    /// A long echo answered: both directions.
    LongPing,
}

/// (from, to, kind, v6) → heard.
pub(crate) type Matrix = BTreeMap<(String, String, Kind, bool), bool>;

/// Runs `f` on a thread inside a namespace; a socket made there stays there.
pub(crate) fn inside<T: Send + 'static>(namespace: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let path = format!("/run/netns/{namespace}");
    std::thread::spawn(move || {
        let file = std::fs::File::open(path).expect("the namespace is there");
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind)
            .expect("root may enter");
        f()
    })
    .join()
    .expect("no panic inside")
}

/// Ears of one host: a datagram socket and a listener for both families (v4 arrives on the v6 sockets).
struct Ears {
    udp: UdpSocket,
    // Kept open so that connections succeed.
    _tcp: TcpListener,
}

/// The whole matrix, tried now.
pub(crate) fn matrix(lab: &Lab) -> Matrix {
    let hosts = lab.hosts();
    let ears: BTreeMap<&String, Ears> = hosts
        .iter()
        .map(|host| {
            let any = SocketAddr::from(([0_u16; 8], PORT));
            let (udp, tcp) = inside(&lab.namespace(host), move || {
                (UdpSocket::bind(any).expect("a free port"), TcpListener::bind(any).expect("a free port"))
            });
            udp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            (host, Ears { udp, _tcp: tcp })
        })
        .collect();
    let tries: Vec<_> = hosts
        .iter()
        .flat_map(|from| hosts.iter().filter(move |to| *to != from).map(move |to| (from, to)))
        .flat_map(|(from, to)| lab.addresses(to).map(|address| (from, to, address)))
        .collect();
    let mut matrix = Matrix::new();
    std::thread::scope(|scope| {
        let answers: Vec<_> = tries
            .iter()
            .map(|(from, to, address)| {
                let namespace = lab.namespace(from);
                let address = *address;
                let answers = scope.spawn(move || {
                    inside(&namespace, move || {
                        let ear = SocketAddr::new(address, PORT);
                        [
                            (Kind::Tcp, TcpStream::connect_timeout(&ear, PATIENCE).is_ok()),
                            (Kind::Ping, ping(address, 8)),
                            (Kind::LongPing, ping(address, usize::from(LONG) - HEADER)),
                        ]
                    })
                });
                ((*from).clone(), (*to).clone(), address.is_ipv6(), answers)
            })
            .collect();
        for (from, to, v6, answers) in answers {
            for (kind, answered) in answers.join().expect("no panic") {
                matrix.insert((from.clone(), to.clone(), kind, v6), answered);
            }
        }
    });
    // One receiver after the other, all its senders at once: the letter tells who it was.
    for to in &hosts {
        for (n, from) in hosts.iter().enumerate().filter(|(_, from)| *from != to) {
            for address in lab.addresses(to) {
                let letter = [u8::try_from(n).expect("few hosts"), u8::from(address.is_ipv6())];
                // A sender-side drop shows as an error here; not sent is not heard.
                let _ = ears[from].udp.send_to(&letter, (address, PORT));
                matrix.insert((from.clone(), to.clone(), Kind::Udp, address.is_ipv6()), false);
            }
        }
        let mut letter = [0_u8; 2];
        while let Ok((2, _)) = ears[to].udp.recv_from(&mut letter) {
            let from = hosts[usize::from(letter[0])].clone();
            matrix.insert((from, to.clone(), Kind::Udp, letter[1] == 1), true);
        }
    }
    matrix
}

/// One ICMP echo of so many bytes, its header included, from the namespace that the thread is in.
fn ping(address: IpAddr, bytes: usize) -> bool {
    let (family, protocol, request, reply) = match address {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8_u8, 0_u8),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128, 129),
    };
    let Ok(fd) = rustix::net::socket(family, SocketType::RAW, Some(protocol)) else { return false };
    let timeout = rustix::net::sockopt::Timeout::Recv;
    rustix::net::sockopt::set_socket_timeout(&fd, timeout, Some(PATIENCE)).expect("a timeout");
    // Each echo has an identifier of its own: raw sockets see everybody's answers.
    static ECHOES: AtomicU16 = AtomicU16::new(1);
    let id = ECHOES.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let mut packet = vec![0; bytes];
    packet[..8].copy_from_slice(&[request, 0, 0, 0, id[0], id[1], 0, 1]);
    if address.is_ipv4() {
        // The kernel sums up for v6 only.
        let words = packet.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum: u32 = words.sum();
        let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("folded");
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    if rustix::net::sendto(&fd, &packet, rustix::net::SendFlags::empty(), &SocketAddr::new(address, 0))
        .is_err()
    {
        return false;
    }
    let mut socket = std::fs::File::from(fd);
    let end = std::time::Instant::now() + PATIENCE;
    let mut answer = [0_u8; 2_048];
    while std::time::Instant::now() < end {
        let Ok(n) = socket.read(&mut answer) else { return false };
        // A raw v4 socket shows the IP header, a v6 one does not.
        let start = if address.is_ipv4() { usize::from(answer[0] & 0xf) * 4 } else { 0 };
        if n >= start + 6 && answer[start] == reply && answer[start + 4..start + 6] == packet[4..6] {
            let source_ok = match address {
                IpAddr::V4(a) => answer[12..16] == a.octets(),
                IpAddr::V6(_) => true,
            };
            if source_ok {
                return true;
            }
        }
    }
    false
}
