//! A Lease object as an API server shows it (JSON) and as etcd stores it (an envelope of protobuf).
//!
//! # Invariants
//! * Both readers give the same [`Lease`] for the same version, times in the API's own notation, so that what
//!   etcd and an API server showed can be compared field by field.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat};
use rackrift_checkers::history::{LeaseSeen, Nanos};
use serde::Deserialize;

use super::protobuf::{Field, fields};

/// The annotation under which the lease workload puts the id of the write.
pub const WRITE_ID: &str = "rackrift/write";

/// One version of a Lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lease {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// resourceVersion as a number: etcd's `mod_revision`. 0 in etcd's stored form, which does not hold it.
    pub version: u64,
    /// `spec.holderIdentity`; empty means released.
    pub holder: String,
    /// `spec.leaseDurationSeconds`.
    pub duration_s: u32,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
    /// `spec.acquireTime`, RFC 3339 with microseconds; empty if absent.
    pub acquire_time: String,
    /// `spec.renewTime`, RFC 3339 with microseconds; empty if absent.
    pub renew_time: String,
    /// The annotation [`WRITE_ID`]; empty if absent. Not read from etcd's form.
    pub write_id: String,
}

impl Lease {
    /// `namespace/name`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The history's line for this version, shown by `via`, come to the controller at `time`.
    #[must_use]
    pub fn seen(&self, via: &str, time: Nanos) -> LeaseSeen {
        LeaseSeen {
            time,
            via: via.to_owned(),
            lease: self.key(),
            version: self.version,
            uid: self.uid.clone(),
            holder: self.holder.clone(),
            duration_s: self.duration_s,
            transitions: self.transitions,
            acquire_time: self.acquire_time.clone(),
            renew_time: self.renew_time.clone(),
            deleted: false,
            anew: false,
        }
    }
}

/// Why bytes are no Lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotALease {
    /// JSON of another shape.
    #[error("not a Lease in JSON: {0}")]
    Json(String),
    /// The resourceVersion is not a whole number.
    #[error("resourceVersion {0:?} is not a whole number")]
    Version(String),
    /// Not etcd's envelope with a Lease in it.
    #[error("not a Lease in etcd's stored form: {0}")]
    Stored(&'static str),
}

#[derive(Deserialize)]
struct Json {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    lease_transitions: Option<u32>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
}

impl Json {
    fn lease(self) -> Result<Lease, NotALease> {
        let (m, s) = (self.metadata, self.spec);
        let version = m.resource_version.parse().map_err(|_| NotALease::Version(m.resource_version))?;
        Ok(Lease {
            namespace: m.namespace,
            name: m.name,
            uid: m.uid,
            version,
            holder: s.holder_identity.unwrap_or_default(),
            duration_s: s.lease_duration_seconds.unwrap_or_default(),
            transitions: s.lease_transitions.unwrap_or_default(),
            acquire_time: s.acquire_time.unwrap_or_default(),
            renew_time: s.renew_time.unwrap_or_default(),
            write_id: m.annotations.get(WRITE_ID).cloned().unwrap_or_default(),
        })
    }
}

/// Reads a Lease as an API server sends it.
///
/// # Errors
/// If it is none.
pub fn from_json(body: &[u8]) -> Result<Lease, NotALease> {
    serde_json::from_slice::<Json>(body).map_err(|e| NotALease::Json(e.to_string()))?.lease()
}

/// Reads a LeaseList as an API server sends it.
///
/// # Errors
/// If it is none, or holds something that is no Lease.
pub fn list_from_json(body: &[u8]) -> Result<Vec<Lease>, NotALease> {
    #[derive(Deserialize)]
    struct List {
        // Go writes an empty list as null.
        items: Option<Vec<Json>>,
    }
    let list = serde_json::from_slice::<List>(body).map_err(|e| NotALease::Json(e.to_string()))?;
    list.items.unwrap_or_default().into_iter().map(Json::lease).collect()
}

/// Reads a Lease as etcd stores it: four magic bytes, then the message `Unknown` of apimachinery's
/// `runtime/generated.proto`, which holds the type and the Lease of `coordination/v1/generated.proto`.
///
/// # Errors
/// If it is none. Fields that this does not know are skipped.
pub fn from_stored(value: &[u8]) -> Result<Lease, NotALease> {
    let unknown = value.strip_prefix(b"k8s\0").ok_or(NotALease::Stored("no k8s envelope"))?;
    let kind = message(unknown, 1)?.map_or(Ok(None), |type_meta| message(type_meta, 2))?;
    if kind != Some(b"Lease") {
        return Err(NotALease::Stored("another kind of object"));
    }
    let raw = message(unknown, 2)?.ok_or(NotALease::Stored("no object in the envelope"))?;
    let mut lease = Lease::default();
    for field in fields(message(raw, 1)?.unwrap_or_default()) {
        match field.map_err(cut)? {
            (1, v) => lease.name = v.text().unwrap_or_default(),
            (3, v) => lease.namespace = v.text().unwrap_or_default(),
            (5, v) => lease.uid = v.text().unwrap_or_default(),
            _ => {}
        }
    }
    for field in fields(message(raw, 2)?.unwrap_or_default()) {
        match field.map_err(cut)? {
            (1, v) => lease.holder = v.text().unwrap_or_default(),
            (2, v) => lease.duration_s = small(v),
            (3, v) => lease.acquire_time = micro_time(v)?,
            (4, v) => lease.renew_time = micro_time(v)?,
            (5, v) => lease.transitions = small(v),
            _ => {}
        }
    }
    Ok(lease)
}

fn cut(_: super::protobuf::Malformed) -> NotALease {
    NotALease::Stored("cut short")
}

/// The last field of that number, if it has bytes.
fn message(of: &[u8], number: u64) -> Result<Option<&[u8]>, NotALease> {
    let mut found = None;
    for field in fields(of) {
        let (n, value) = field.map_err(cut)?;
        if n == number {
            found = value.bytes();
        }
    }
    Ok(found)
}

fn small(v: Field<'_>) -> u32 {
    v.number().and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
}

/// A MicroTime message (1: seconds, 2: nanoseconds) in the API's notation.
fn micro_time(v: Field<'_>) -> Result<String, NotALease> {
    let (mut seconds, mut nanos) = (0_i64, 0_u32);
    for field in fields(v.bytes().unwrap_or_default()) {
        match field.map_err(cut)? {
            // The wire holds a signed number as the unsigned one with the same bits.
            (1, v) => seconds = v.number().unwrap_or_default().cast_signed(),
            (2, v) => nanos = small(v),
            _ => {}
        }
    }
    let time = DateTime::from_timestamp(seconds, nanos).ok_or(NotALease::Stored("no such time"))?;
    Ok(time.to_rfc3339_opts(SecondsFormat::Micros, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use proptest::prelude::*;

    /// kube-scheduler's lease as etcd 3.6.16 held it under a 1.34.4 API server.
    const STORED: &str = "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRLrAgqdAgoOa3ViZS1zY2hlZHVsZXISABoLa3ViZS1zeXN0ZW0iACokYmFmMmU0MTItNmY1NC00YWFmLWE0MWUtNGI0ZmVmZTMzMjkzMgA4AEIICO+FuNgGEACKAcQBCg5rdWJlLXNjaGVkdWxlchIGVXBkYXRlGhZjb29yZGluYXRpb24uazhzLmlvL3YxIggIl4a42AYQADIIRmllbGRzVjE6fAp6eyJmOnNwZWMiOnsiZjphY3F1aXJlVGltZSI6e30sImY6aG9sZGVySWRlbnRpdHkiOnt9LCJmOmxlYXNlRHVyYXRpb25TZWNvbmRzIjp7fSwiZjpsZWFzZVRyYW5zaXRpb25zIjp7fSwiZjpyZW5ld1RpbWUiOnt9fX1CABJJCid2bV9kMWIxYjUwMi05MTIxLTRmZmMtOWMxNy1jN2FmMDYzMjg0NTcQDxoMCO+FuNgGEJC6rLYBIgwIl4a42AYQmLuU3gEoABoAIgA=";

    /// The same version as that API server showed it.
    const SHOWN: &str = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"creationTimestamp":"2026-11-30T23:12:47Z","name":"kube-scheduler","namespace":"kube-system","resourceVersion":"325","uid":"baf2e412-6f54-4aaf-a41e-4b4fefe33293"},"spec":{"acquireTime":"2026-11-30T23:12:47.382410Z","holderIdentity":"vm_d1b1b502-9121-4ffc-9c17-c7af06328457","leaseDurationSeconds":15,"leaseTransitions":0,"renewTime":"2026-11-30T23:13:27.465903Z"}}"#;

    fn stored() -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(STORED).unwrap()
    }

    #[test]
    fn etcd_and_the_api_server_show_the_same_lease() {
        let from_etcd = Lease { version: 325, ..from_stored(&stored()).unwrap() };
        let from_api = from_json(SHOWN.as_bytes()).unwrap();
        assert_eq!(from_etcd, from_api);
        assert_eq!(from_api.holder, "vm_d1b1b502-9121-4ffc-9c17-c7af06328457");
        assert_eq!((from_api.duration_s, from_api.key().as_str()), (15, "kube-system/kube-scheduler"));
        assert_eq!(from_api.renew_time, "2026-11-30T23:13:27.465903Z");
    }

    #[test]
    fn a_released_lease_may_lack_everything() {
        let shown = r#"{"metadata":{"name":"x","namespace":"n","resourceVersion":"7","annotations":{"rackrift/write":"w3"}},"spec":{"holderIdentity":""}}"#;
        let lease = from_json(shown.as_bytes()).unwrap();
        assert_eq!((lease.holder.as_str(), lease.version, lease.write_id.as_str()), ("", 7, "w3"));
        assert_eq!(list_from_json(br#"{"items":null}"#).unwrap(), []);
        assert_eq!(
            from_json(br#"{"metadata":{"name":"x","resourceVersion":"a"}}"#),
            Err(NotALease::Version("a".into()))
        );
    }

    #[test]
    fn what_is_no_lease_is_refused() {
        assert_eq!(from_stored(b"{}"), Err(NotALease::Stored("no k8s envelope")));
        assert_eq!(from_stored(b"k8s\0"), Err(NotALease::Stored("another kind of object")));
        let whole = stored();
        for end in 4..whole.len() - 4 {
            assert!(from_stored(&whole[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, at in 0_usize..400, with: u8) {
            let _ = from_stored(&[b"k8s\0".as_slice(), &bytes].concat());
            let mut spoiled = stored();
            let at = at % spoiled.len();
            spoiled[at] = with;
            let _ = from_stored(&spoiled);
            let _ = from_json(&bytes);
        }
    }
}
