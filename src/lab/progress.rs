//! What `up` is doing, and how long it will still take.
//!
//! # Invariants
//! * The library prints nothing: it tells a [`Progress`], which the command line implements.
//! * Time left is an estimate from what the same stages took the last time on this machine, and before there was a
//!   last time, from what they took on two cores.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A stage of `up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Building Kubernetes and etcd.
    Components,
    /// Making the tree that all machines share.
    Base,
    /// The namespace and its bridges, authorities, keys.
    Foundation,
    /// Machines: their layers, their start, until SSH lets the controller in.
    Machines,
    /// etcd has a leader, both API servers and the load balancer are ready.
    ControlPlane,
    /// Leases are held, both nodes are ready.
    Cluster,
}

impl Stage {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Components => "components",
            Self::Base => "base tree",
            Self::Foundation => "foundation",
            Self::Machines => "machines",
            Self::ControlPlane => "control plane",
            Self::Cluster => "cluster",
        }
    }

    /// What it took on two cores, with nothing else to do: seconds.
    const fn usual(self) -> f64 {
        match self {
            Self::Components => 330.0,
            Self::Base => 60.0,
            Self::Foundation => 0.6,
            Self::Machines => 3.5,
            Self::ControlPlane => 4.5,
            Self::Cluster => 4.0,
        }
    }
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Since `up` began.
    pub at: Duration,
    /// The stage it belongs to.
    pub stage: Stage,
    /// The machine it is about.
    pub machine: Option<&'static str>,
    /// What happens or has happened.
    pub text: String,
    /// An estimate of the time until the cluster is ready.
    pub left: Duration,
}

/// Listens to what is going on.
pub trait Progress: Sync {
    /// Takes notice of an event; called from several threads.
    fn event(&self, event: &Event);
}

/// Measures stages, tells about them, and remembers how long they took.
pub(super) struct Track<'a> {
    sink: &'a dyn Progress,
    start: Instant,
    memory: PathBuf,
    usual: BTreeMap<&'static str, f64>,
    state: Mutex<State>,
}

struct State {
    /// Stages to come, the present one first.
    plan: Vec<Stage>,
    began: Instant,
    took: Vec<(Stage, Duration)>,
}

impl<'a> Track<'a> {
    /// `memory`: the file of recorded durations; `plan`: the stages to come, in order.
    pub(super) fn new(sink: &'a dyn Progress, memory: PathBuf, plan: Vec<Stage>) -> Self {
        // No memory, or one that cannot be read, is no memory: only an estimate depends on it.
        let usual = std::fs::read_to_string(&memory).ok().and_then(|t| parse(&t)).unwrap_or_default();
        let start = Instant::now();
        Self { sink, start, memory, usual, state: Mutex::new(State { plan, began: start, took: Vec::new() }) }
    }

    fn expected(&self, stage: Stage) -> f64 {
        self.usual.get(stage.name()).copied().unwrap_or_else(|| stage.usual())
    }

    /// Tells something about a stage.
    pub(super) fn note(&self, stage: Stage, machine: Option<&'static str>, text: impl Into<String>) {
        let left = self.left();
        self.sink.event(&Event { at: self.start.elapsed(), stage, machine, text: text.into(), left });
    }

    /// The present stage is over; tells how long it took.
    pub(super) fn done(&self, stage: Stage) {
        let took = {
            let mut state = self.lock();
            let took = state.began.elapsed();
            state.began = Instant::now();
            state.plan.retain(|s| *s != stage);
            state.took.push((stage, took));
            took
        };
        self.note(stage, None, format!("done in {:.1} s", took.as_secs_f64()));
    }

    /// How long each stage took.
    pub(super) fn took(&self) -> Vec<(Stage, Duration)> {
        self.lock().took.clone()
    }

    /// Remembers the durations for the next time.
    pub(super) fn remember(&self) {
        let mut all = self.usual.clone();
        all.extend(self.lock().took.iter().map(|(s, d)| (s.name(), d.as_secs_f64())));
        if let Ok(text) = serde_json::to_string(&all) {
            // Only an estimate is lost.
            let _ = std::fs::write(&self.memory, text);
        }
    }

    fn left(&self) -> Duration {
        let state = self.lock();
        let spent = state.began.elapsed().as_secs_f64();
        remaining(&state.plan.iter().map(|s| self.expected(*s)).collect::<Vec<_>>(), spent)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn parse(text: &str) -> Option<BTreeMap<&'static str, f64>> {
    let all: BTreeMap<String, f64> = serde_json::from_str(text).ok()?;
    let stages = [
        Stage::Components,
        Stage::Base,
        Stage::Foundation,
        Stage::Machines,
        Stage::ControlPlane,
        Stage::Cluster,
    ];
    Some(stages.into_iter().filter_map(|s| Some((s.name(), *all.get(s.name())?))).collect())
}

/// Time left: what the present stage is expected to need still, and all that the later ones need, seconds.
fn remaining(expected: &[f64], spent: f64) -> Duration {
    let present = expected.first().map_or(0.0, |e| (e - spent).max(0.0));
    Duration::from_secs_f64(present + expected.iter().skip(1).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left() {
        assert_eq!(remaining(&[10.0, 5.0, 1.0], 4.0), Duration::from_secs(12));
        assert_eq!(remaining(&[10.0, 5.0], 40.0), Duration::from_secs(5));
        assert_eq!(remaining(&[], 1.0), Duration::ZERO);
    }

    struct Heard(Mutex<Vec<Event>>);
    impl Progress for Heard {
        fn event(&self, event: &Event) {
            self.0.lock().expect("not poisoned").push(event.clone());
        }
    }

    #[test]
    fn what_a_stage_took_is_the_next_estimate() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let memory = folder.path().join("durations.json");
        std::fs::write(&memory, r#"{"machines": 100.0, "cluster": 50.0, "unknown": 9.0}"#).expect("written");
        let heard = Heard(Mutex::new(Vec::new()));
        let track = Track::new(&heard, memory.clone(), vec![Stage::Machines, Stage::Cluster]);
        track.note(Stage::Machines, Some("m1"), "starts");
        track.done(Stage::Machines);
        track.remember();
        let events = heard.0.lock().expect("not poisoned").clone();
        assert_eq!(events[0].left.as_secs_f64().round(), 150.0);
        assert_eq!(events[1].left.as_secs_f64().round(), 50.0);
        let kept = parse(&std::fs::read_to_string(&memory).expect("written")).expect("valid");
        assert!(kept["machines"] < 100.0 && kept["cluster"] == 50.0, "{kept:?}");
    }
}
