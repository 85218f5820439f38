//! The history of a run: one [`Entry`] a line, in the order in which the recorder wrote them.
//!
//! All times are nanoseconds of the *controller's* monotonic clock since the run's origin. What another
//! host saw carries an interval [`At`] on that clock, computed from clock samples; wall clocks are data,
//! never order.

pub mod calls;
pub mod edn;
pub mod entry;
pub mod foreign;
pub mod jsonl;
pub mod porcupine_log;
pub mod time;
pub mod value;

pub use entry::{
    Belief, BeliefEvent, ClockSample, Entry, FaultMark, FaultPhase, Header, LeaseSeen, NodeSeen, Note, Op,
    OpType, PodSeen, PodSource, PodState,
};
pub use time::{At, HostTime, Nanos};
pub use value::Value;
