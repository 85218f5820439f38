//! The lease workload: clients of both racks contend for ten leases by compare-and-set.

use std::cell::RefCell;
use std::rc::Rc;

use rackrift_checkers::history::{Entry, Op, OpType, Value};

use super::{Jitter, Plan, Story, s};

/// An object as the simulated server holds it.
#[derive(Clone, Default)]
struct Object {
    version: u64,
    id: String,
    holder: String,
}

type Server = Rc<RefCell<Vec<Object>>>;
/// What each client last saw of each lease.
type Known = Rc<RefCell<Vec<u64>>>;

const LEASES: usize = 10;
/// An answer that takes this long, in seconds, never comes: the client gives up and does not know.
const LOST: f64 = 5.0;

fn map(pairs: Vec<(&str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn int(n: u64) -> Value {
    Value::Int(n as i64)
}

fn text(t: &str) -> Value {
    Value::Str(t.to_owned())
}

/// Operations of the clients a1, a2 (through m1) and b1, b2 (through m2).
pub(crate) fn operations(plan: &Plan, story: &mut Story) {
    let server: Server = Rc::new(RefCell::new(vec![Object::default(); LEASES]));
    for (n, client) in ["a1", "a2", "b1", "b2"].into_iter().enumerate() {
        let mut jitter = Jitter::new(plan.seed + 40 + n as u64);
        let known: Known = Rc::new(RefCell::new(vec![0; LEASES]));
        let mut process = n as u64;
        let mut at = 0.3 + 0.1 * n as f64;
        let mut turn = n;
        let mut first_lost = true;
        if client == "a1" {
            for lease in 0..LEASES {
                operation(story, &server, &known, client, process, at, (0.004, 0.004), lease, "create");
                at += 0.02;
            }
        } else {
            at += 1.0;
        }
        while at < plan.end - 3.0 {
            let lease = (jitter.next() * LEASES as f64) as usize;
            turn += 1;
            if stalled(plan, client, at) {
                if first_lost {
                    operation(story, &server, &known, client, process, at, (0.003, LOST), lease, "cas");
                    first_lost = false;
                } else {
                    lost(story, client, process, at, lease);
                }
                process += 4;
                at += 5.0 + 0.2 * jitter.next();
                continue;
            }
            let f = if turn.is_multiple_of(2) { "read" } else { "cas" };
            let legs = (0.002 + 0.004 * jitter.next(), 0.002 + 0.004 * jitter.next());
            operation(story, &server, &known, client, process, at, legs, lease, f);
            at += (0.5 + jitter.next()) / plan.client_rate + 0.02;
        }
    }
}

/// m1 answers nothing during the cut; m2 nothing until etcd has a new leader.
fn stalled(plan: &Plan, client: &str, at: f64) -> bool {
    let Some(cut) = plan.cut else { return false };
    let until = if client.starts_with('a') { plan.heal + 1.0 } else { cut + 10.5 };
    at > cut - 0.1 && at < until
}

/// A read that times out after five seconds; its process never speaks again.
fn lost(story: &mut Story, client: &str, process: u64, at: f64, lease: usize) {
    push(story, at, client, process, OpType::Invoke, "read", lease, Value::Nil, None);
    let error = Some("timeout: no answer within 5 s".to_owned());
    push(story, at + LOST, client, process, OpType::Info, "read", lease, Value::Nil, error);
}

#[expect(clippy::too_many_arguments, reason = "one line of a simulation, called three times")]
fn operation(
    story: &mut Story,
    server: &Server,
    known: &Known,
    client: &'static str,
    process: u64,
    at: f64,
    legs: (f64, f64),
    lease: usize,
    f: &'static str,
) {
    let (server, known) = (Rc::clone(server), Rc::clone(known));
    story.effect(s(at + legs.0), move |revision, story| {
        let id = format!("{client}-{}", s(at) / 1_000_000);
        let object = &mut server.borrow_mut()[lease];
        let expected = known.borrow()[lease];
        // A client that never saw the lease reads first.
        let f = if f == "cas" && expected == 0 { "read" } else { f };
        let written = [("id", text(&id)), ("holder", text(client))];
        let argument = match f {
            "read" => Value::Nil,
            "create" => map(written.to_vec()),
            _ => map([vec![("expected", int(expected))], written.to_vec()].concat()),
        };
        push(story, at, client, process, OpType::Invoke, f, lease, argument.clone(), None);
        let back = at + legs.0 + legs.1;
        if legs.1 >= LOST {
            if f == "cas" && object.version == expected {
                *object = Object { version: revision, id, holder: client.to_owned() };
            }
            let error = Some("timeout: no answer within 5 s".to_owned());
            push(story, back, client, process, OpType::Info, f, lease, argument, error);
            return;
        }
        if f == "cas" && object.version != expected {
            known.borrow_mut()[lease] = 0;
            let error = Some("conflict: the object has been modified".to_owned());
            push(story, back, client, process, OpType::Fail, f, lease, argument, error);
            return;
        }
        if f != "read" {
            *object = Object { version: revision, id, holder: client.to_owned() };
        }
        known.borrow_mut()[lease] = object.version;
        let mut shown = vec![("version", int(object.version)), ("id", text(&object.id))];
        shown.push(("holder", text(&object.holder)));
        if f == "cas" {
            shown.push(("expected", int(expected)));
        }
        let shown = if object.version == 0 { Value::Nil } else { map(shown) };
        push(story, back, client, process, OpType::Ok, f, lease, shown, None);
    });
}

#[expect(clippy::too_many_arguments, reason = "the fields of one line")]
fn push(
    story: &mut Story,
    when: f64,
    client: &str,
    process: u64,
    kind: OpType,
    f: &str,
    lease: usize,
    value: Value,
    error: Option<String>,
) {
    let op = Op {
        index: 0,
        time: s(when),
        process,
        kind,
        f: f.to_owned(),
        key: Some(format!("lab/lease-{lease}")),
        client: Some(client.to_owned()),
        value,
        error,
    };
    story.line(s(when), Entry::Op(op));
}
