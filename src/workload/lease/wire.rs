//! Requests and values of the lease workload.

use chrono::{DateTime, SecondsFormat, Utc};
use hyper::Method;
use hyper::body::Bytes;
use rackrift_checkers::history::Value;
use serde_json::json;

use super::super::namespace::NAMESPACE;
use crate::kube::Request;
use crate::kube::lease::{Lease, WRITE_ID};

/// The name of lease number `i`.
#[must_use]
pub fn name(i: usize) -> String {
    format!("lease-{i}")
}

/// A GET of a lease: without a resourceVersion, so linearizable by the API's promise.
#[must_use]
pub fn read(name: &str) -> Request {
    Request::get(format!("{}/{name}", path()))
}

/// A POST of a new lease.
#[must_use]
pub fn create(lease: &Lease) -> Request {
    Request { method: Method::POST, path: path(), body: body(lease) }
}

/// A PUT that replaces the version `lease.version` of the object `lease.uid`, and no other.
#[must_use]
pub fn replace(lease: &Lease) -> Request {
    Request { method: Method::PUT, path: format!("{}/{}", path(), lease.name), body: body(lease) }
}

fn path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

fn body(lease: &Lease) -> Bytes {
    // Managed fields are turned off: they would make up two thirds of the object and of the API server's work.
    let mut metadata = json!({
        "name": lease.name,
        "annotations": {WRITE_ID: lease.write_id},
        "managedFields": [{}],
    });
    if lease.version != 0 {
        metadata["resourceVersion"] = json!(lease.version.to_string());
        // A PUT of a Lease that is gone would create it, whatever resourceVersion it names; a UID forbids that.
        metadata["uid"] = json!(lease.uid);
    }
    let body = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": lease.duration_s,
            "leaseTransitions": lease.transitions,
            "acquireTime": lease.acquire_time,
            "renewTime": lease.renew_time,
        },
    });
    Bytes::from(body.to_string())
}

/// The next version of a lease: taken or renewed by `holder`, or given up if that is empty. Transitions and times
/// follow client-go: acquireTime and transitions change with the holder, and a release counts as one second long.
#[must_use]
pub fn next(old: &Lease, holder: &str, write_id: String, duration_s: u32, now: DateTime<Utc>) -> Lease {
    let time = now.to_rfc3339_opts(SecondsFormat::Micros, true);
    let moves = !holder.is_empty() && holder != old.holder;
    Lease {
        holder: holder.to_owned(),
        duration_s: if holder.is_empty() { 1 } else { duration_s },
        transitions: old.transitions.saturating_add(u32::from(moves && old.version != 0)),
        acquire_time: if moves { time.clone() } else { old.acquire_time.clone() },
        renew_time: time,
        write_id,
        ..old.clone()
    }
}

/// The value of an operation's invocation: what it wants to write, over which version.
#[must_use]
pub fn wanted(lease: &Lease) -> Value {
    let mut pairs = Vec::with_capacity(3);
    if lease.version != 0 {
        pairs.push(("expected".to_owned(), int(lease.version)));
    }
    pairs.push(("id".to_owned(), Value::Str(lease.write_id.clone())));
    pairs.push(("holder".to_owned(), Value::Str(lease.holder.clone())));
    Value::Map(pairs)
}

/// The value of a read's or write's success: the version that the API server showed.
#[must_use]
pub fn shown(lease: &Lease) -> Value {
    Value::Map(vec![
        ("version".to_owned(), int(lease.version)),
        ("id".to_owned(), Value::Str(lease.write_id.clone())),
        ("holder".to_owned(), Value::Str(lease.holder.clone())),
    ])
}

/// The value of a compare-and-set's success: beside the version shown, the one that it replaced.
#[must_use]
pub fn replaced(expected: u64, lease: &Lease) -> Value {
    let mut value = shown(lease);
    if let Value::Map(pairs) = &mut value {
        pairs.insert(0, ("expected".to_owned(), int(expected)));
    }
    value
}

fn int(n: u64) -> Value {
    // etcd's revisions are signed 64-bit numbers, so this always fits.
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(s, 0).unwrap()
    }

    #[test]
    fn a_lease_changes_hands_as_client_go_does_it() {
        let none = Lease { name: name(0), ..Lease::default() };
        let a = next(&none, "a", "w0".into(), 5, at(1));
        assert_eq!(
            (a.transitions, a.duration_s, a.acquire_time.as_str()),
            (0, 5, "1970-01-01T00:00:01.000000Z")
        );
        let stored = Lease { version: 7, uid: "u".into(), ..a };
        let renewed = next(&stored, "a", "w1".into(), 5, at(2));
        assert_eq!((renewed.transitions, &renewed.acquire_time), (0, &stored.acquire_time));
        let taken = next(&renewed, "b", "w2".into(), 5, at(3));
        assert_eq!((taken.transitions, taken.acquire_time.as_str()), (1, "1970-01-01T00:00:03.000000Z"));
        let released = next(&taken, "", "w3".into(), 5, at(4));
        assert_eq!((released.transitions, released.duration_s), (1, 1));
        assert_eq!(next(&released, "a", "w4".into(), 5, at(5)).transitions, 2);
    }

    #[test]
    fn a_replacement_names_version_and_uid_and_a_creation_neither() {
        let old = Lease { name: name(3), version: 7, uid: "u".into(), ..Lease::default() };
        let put = replace(&next(&old, "a", "w1".into(), 5, at(1)));
        assert_eq!(
            (put.method, put.path.as_str()),
            (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/rackrift/leases/lease-3")
        );
        insta::assert_snapshot!(String::from_utf8_lossy(&put.body), @r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"annotations":{"rackrift/write":"w1"},"managedFields":[{}],"name":"lease-3","resourceVersion":"7","uid":"u"},"spec":{"acquireTime":"1970-01-01T00:00:01.000000Z","holderIdentity":"a","leaseDurationSeconds":5,"leaseTransitions":1,"renewTime":"1970-01-01T00:00:01.000000Z"}}"#);
        let post = create(&next(&Lease { name: name(3), ..Lease::default() }, "a", "w1".into(), 5, at(1)));
        let body = String::from_utf8_lossy(&post.body).into_owned();
        assert!(!body.contains("resourceVersion") && !body.contains("uid"), "{body}");
    }

    #[test]
    fn values_as_the_history_documents_them() {
        let old = Lease { version: 7, ..Lease::default() };
        let new = next(&old, "a", "w1".into(), 5, at(1));
        let text = |v: &Value| serde_json::to_string(v).unwrap();
        assert_eq!(text(&wanted(&new)), r#"{"expected":7,"id":"w1","holder":"a"}"#);
        assert_eq!(
            text(&replaced(7, &Lease { version: 9, ..new })),
            r#"{"expected":7,"version":9,"id":"w1","holder":"a"}"#
        );
    }
}
