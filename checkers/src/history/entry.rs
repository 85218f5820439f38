//! One line of a history.

use serde::{Deserialize, Serialize};

use super::{At, HostTime, Nanos, Value};

/// The first line of a history file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Header {
    /// Version of the format; 1 today.
    pub rackrift_history: u32,
    /// Wall-clock time of the run's origin (RFC 3339), for people; never used for order.
    pub origin: String,
    /// The run's id.
    pub run: String,
}

/// One line of a history, tagged by its kind: `{"op": {...}}`, `{"lease": {...}}` ...
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A client's operation, or its completion.
    Op(Op),
    /// One observed version of a lease.
    Lease(LeaseSeen),
    /// A process starts or stops believing that it leads.
    Belief(Belief),
    /// A container starts, lives or ends.
    Pod(PodSeen),
    /// A node's state as an API server shows it.
    Node(NodeSeen),
    /// A step of a fault.
    Fault(FaultMark),
    /// One round trip that compares a host's clock with the controller's.
    Clock(ClockSample),
    /// Something worth telling a reader; no checker reads it.
    Note(Note),
}

/// What an [`Op`] line says of its operation, as in Jepsen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpType {
    /// The client is about to send it.
    Invoke,
    /// It happened.
    Ok,
    /// It certainly did not happen.
    Fail,
    /// It may have happened, or may yet happen.
    Info,
}

/// A client's operation: an `invoke` line, later a completion of the same `process`.
///
/// Values by `f`, for keys with versions (Kubernetes objects; `version` is a resourceVersion):
/// * `read`: ok `{"version": 7, "id": "w3", "holder": "a1", ...}`, or `null` for "no such object";
/// * `create`: invoke `{"id": "w4", ...}`, ok `{"version": 8, "id": "w4", ...}`;
/// * `cas`: invoke `{"expected": 7, "id": "w5", ...}`, ok adds `"version"`; a `fail` with error
///   `conflict` says that the current version was not `expected` at one instant;
/// * `delete`: invoke `{"expected": 7}`, ok `{"version": 9}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Op {
    /// Position among the operations of this history, from 0.
    pub index: u64,
    /// When the recorder saw it, ns.
    pub time: Nanos,
    /// A logical process: at most one operation open; a process whose operation ended as `info` never speaks again.
    pub process: u64,
    /// Invocation or completion.
    #[serde(rename = "type")]
    pub kind: OpType,
    /// What was asked: `read`, `write`, `cas`, `create`, `delete`, `acquire`, `release` ...
    pub f: String,
    /// The object, such as `lab/lease-0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The client, such as `a1`: stays the same when its process id changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Argument or result.
    #[serde(default)]
    pub value: Value,
    /// Why it failed or is unknown: a word of the error table, then free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Op {
    /// Whether the server answered no: the first word of its error is `conflict`, `exists` or `absent`. Other failures
    /// (`unread`, `not-sent`, `no-connection` ...) say that nothing happened, not that anybody answered.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let word = self.error.as_deref().and_then(|e| e.split([':', ' ']).next());
        self.kind == OpType::Fail && matches!(word, Some("conflict" | "exists" | "absent"))
    }
}

/// One version of a lease as one observer showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseSeen {
    /// When the observer's answer reached the controller, ns.
    pub time: Nanos,
    /// Who showed it: `etcd:e3` or `api:m1`.
    pub via: String,
    /// `namespace/name`.
    pub lease: String,
    /// resourceVersion, which is etcd's mod_revision.
    pub version: u64,
    /// The object's UID; a new one after a delete.
    #[serde(default)]
    pub uid: String,
    /// holderIdentity; empty means released.
    pub holder: String,
    /// leaseDurationSeconds of this record.
    pub duration_s: u32,
    /// leaseTransitions of this record.
    pub transitions: u32,
    /// acquireTime as written: the holder's wall clock, data only.
    #[serde(default)]
    pub acquire_time: String,
    /// renewTime as written: the holder's wall clock, data only.
    #[serde(default)]
    pub renew_time: String,
    /// The object was deleted at this version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The observer began here, or began anew, with what was there: versions before this one it need not have shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}

/// What a process says of its own leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeliefEvent {
    /// The process started.
    Starts,
    /// It tries to acquire the lease.
    Candidate,
    /// It says that it leads.
    Leads,
    /// It says that it no longer leads.
    Lost,
    /// The process ended.
    Exits,
}

/// A process starts or stops believing that it leads, from its log and its supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Belief {
    /// When, on the controller's clock.
    pub at: At,
    /// Where.
    pub host: String,
    /// The component, such as `kube-controller-manager`.
    pub component: String,
    /// Which process of it: the pid, within the host's boot.
    pub pid: u32,
    /// What it says.
    pub event: BeliefEvent,
    /// The same moment on the host's own clock.
    pub host_time: HostTime,
    /// The log line that says so.
    pub line: String,
}

/// Where a [`PodSeen`] comes from; the node's word counts, the API's may be stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodSource {
    /// The container's own heartbeat file on the node.
    Heartbeat,
    /// The container runtime of the node.
    Runtime,
    /// An API server.
    Api,
}

/// What is known of a container from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodState {
    /// It ran during the whole span (proof of life).
    Running,
    /// It was marked for deletion (API only).
    Terminating,
    /// It had ended.
    Stopped,
}

/// A span of a pod's life as one source tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PodSeen {
    /// First moment of the span.
    pub from: At,
    /// Last moment of the span. Equal to `from` for a single observation.
    pub to: At,
    /// Who says so.
    pub source: PodSource,
    /// The node (for [`PodSource::Api`]: `spec.nodeName`).
    pub node: String,
    /// Which API server, for [`PodSource::Api`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// `Deployment`, `StatefulSet`, `DaemonSet`, `Job`, `Pod`.
    pub owner_kind: String,
    /// What must be unique or counted: the owner's `namespace/name`, for a StatefulSet the ordinal's pod name,
    /// for a DaemonSet `name@node`.
    pub identity: String,
    /// The pod's name.
    pub name: String,
    /// The pod's UID.
    pub uid: String,
    /// Container id or, for heartbeats, a token made when the container started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// What it did.
    pub state: PodState,
    /// Heartbeats in the span; 0 for other sources.
    #[serde(default)]
    pub beats: u64,
    /// Longest pause between two heartbeats of the span, ns.
    #[serde(default)]
    pub gap: Nanos,
    /// `from` on the host's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_from: Option<HostTime>,
    /// `to` on the host's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_to: Option<HostTime>,
}

/// A node as an API server shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeSeen {
    /// When the answer reached the controller, ns.
    pub time: Nanos,
    /// Which API server.
    pub via: String,
    /// The node's name.
    pub node: String,
    /// resourceVersion of this state.
    pub version: u64,
    /// The Ready condition: `True`, `False` or `Unknown`.
    pub ready: String,
    /// Taints as `key:effect`.
    #[serde(default)]
    pub taints: Vec<String>,
}

/// A step in the life of a fault.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FaultPhase {
    /// The command was sent.
    Asked,
    /// The command returned.
    Applied,
    /// A probe saw the effect.
    Observed,
    /// The healing command was sent.
    Healing,
    /// A probe saw the effect gone.
    Healed,
    /// The answer was lost: it may be in force or not.
    Unknown,
    /// It was seen not to be in force while it should have been.
    Missing,
    /// The state that the fault waits for came.
    Reached,
}

/// A step in the life of a fault, for the whole fault or for one directed edge of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FaultMark {
    /// When, ns.
    pub time: Nanos,
    /// The fault's id within the run, such as `rack-split-1`.
    pub fault: String,
    /// What happened.
    pub phase: FaultPhase,
    /// The directed edge `[from, to]`: packets of `from` do not reach `to`; `[host, host]`: the host itself. Absent: the
    /// whole fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<(String, String)>,
    /// A note, such as packet counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// One round trip that reads a host's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockSample {
    /// The host.
    pub host: String,
    /// Controller's clock before the question, ns.
    pub sent: Nanos,
    /// Controller's clock after the answer, ns.
    pub received: Nanos,
    /// What the host's clock showed.
    pub host_time: HostTime,
    /// Resolution of that reading, ns: the true value lies in `[mono, mono + resolution)`.
    pub resolution: u64,
    /// The host's wall clock, ns since 1970; data only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<i64>,
}

/// Something worth telling a reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// When, ns.
    pub time: Nanos,
    /// What.
    pub text: String,
}
