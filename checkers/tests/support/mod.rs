//! A builder of synthetic runs: everything that a real rack-split run records, without a cluster.
//!
//! [`Plan`] holds the moments of the story in seconds since the run's origin; [`Plan::build`] tells it as
//! facts and history. A test plants a fault by moving a moment, or by editing the entries afterwards.
//!
//! # Invariants
//! - The unedited [`Plan::rack_split`] is a run in which Kubernetes kept every promise.
//! - Built twice, a plan gives the same bytes: jitter comes from the plan's seed.

pub(crate) mod clients;
pub(crate) mod cluster;
pub(crate) mod facts;
pub(crate) mod fault;
pub(crate) mod pods;

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::{At, Entry, HostTime, Nanos};

/// Seconds since the run's origin as nanoseconds.
pub(crate) fn s(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// The story of a run. All moments in seconds since the run's origin.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// When the cut is asked for; `None`: the partition is left out of the history.
    pub(crate) cut: Option<f64>,
    /// When healing is asked for.
    pub(crate) heal: f64,
    /// When the run ends.
    pub(crate) end: f64,
    /// Half the width of every interval mapped from a host's clock.
    pub(crate) clock_bound: f64,
    /// kube-controller-manager.
    pub(crate) kcm: LeasePlan,
    /// kube-scheduler.
    pub(crate) scheduler: LeasePlan,
    /// When m2's node controller calls w1 Unknown.
    pub(crate) w1_unknown: f64,
    /// When w1 is Ready again with its taints gone.
    pub(crate) w1_ready: f64,
    /// When w1's pods are marked for deletion.
    pub(crate) evicted: f64,
    /// First sign of life of web's replacement on w2.
    pub(crate) web_replacement: f64,
    /// Last sign of life of web's old pod on w1.
    pub(crate) web_old_end: f64,
    /// Last sign of life of db-0 on w1.
    pub(crate) db_old_end: f64,
    /// First sign of life of db-0 on w2.
    pub(crate) db_new_start: f64,
    /// When the agent's container on w1 restarts; `None`: never.
    pub(crate) agent_restart: Option<f64>,
    /// Client operations a second of each client.
    pub(crate) client_rate: f64,
    /// Seed of the jitter.
    pub(crate) seed: u64,
}

/// The story of one lease: m1 holds it, m2 takes it.
#[derive(Debug, Clone)]
pub(crate) struct LeasePlan {
    /// Component and lease name.
    pub(crate) component: &'static str,
    /// Commit of m1's last renewal.
    pub(crate) last_renewal: f64,
    /// When m1's process says that it lost the lease.
    pub(crate) lost: f64,
    /// When m1's process ends.
    pub(crate) exits: f64,
    /// Commit of m2's takeover; `None`: nobody takes over, m1 holds it on.
    pub(crate) takeover: Option<f64>,
    /// leaseTransitions are raised by this at the takeover.
    pub(crate) transitions_step: u32,
    /// The process ids on m1 (first, restarted) and m2.
    pub(crate) pids: [u32; 3],
}

/// Facts and history of a synthetic run.
pub(crate) struct Run {
    /// run.json.
    pub(crate) facts: Facts,
    /// The history after its header.
    pub(crate) entries: Vec<Entry>,
}

impl Plan {
    /// Rack a is cut off for 108 s; the leaders sit in it.
    pub(crate) fn rack_split() -> Self {
        Self {
            cut: Some(20.0),
            heal: 128.0,
            end: 155.0,
            clock_bound: 0.002,
            kcm: LeasePlan {
                component: "kube-controller-manager",
                last_renewal: 19.4,
                lost: 31.43,
                exits: 31.46,
                takeover: Some(39.5),
                transitions_step: 1,
                pids: [812, 1544, 797],
            },
            scheduler: LeasePlan {
                component: "kube-scheduler",
                last_renewal: 18.7,
                lost: 30.72,
                exits: 35.74,
                takeover: Some(36.3),
                transitions_step: 1,
                pids: [815, 1560, 801],
            },
            w1_unknown: 92.4,
            w1_ready: 136.6,
            evicted: 102.6,
            web_replacement: 103.5,
            web_old_end: 129.4,
            db_old_end: 129.6,
            db_new_start: 133.4,
            agent_restart: None,
            client_rate: 2.0,
            seed: 7,
        }
    }

    /// The facts and the history of this story.
    pub(crate) fn build(&self) -> Run {
        let mut story = Story::default();
        cluster::leases(self, &mut story);
        clients::operations(self, &mut story);
        story.commit();
        fault::marks(self, &mut story);
        cluster::beliefs(self, &mut story);
        cluster::nodes(self, &mut story);
        cluster::clocks(self, &mut story);
        pods::pods(self, &mut story);
        Run { facts: facts::facts(self), entries: story.entries() }
    }

    /// An interval on the controller's clock round a moment that a host saw.
    pub(crate) fn at(&self, seconds: f64) -> At {
        At { lo: s((seconds - self.clock_bound).max(0.0)), hi: s(seconds + self.clock_bound) }
    }

    /// Whether rack a is cut off at that moment.
    pub(crate) fn is_cut(&self, seconds: f64) -> bool {
        self.cut.is_some_and(|cut| seconds >= cut + 0.06 && seconds < self.heal + 0.25)
    }
}

/// A write that will be committed at a moment; the revision is known only once all are sorted.
type Commit = Box<dyn FnOnce(u64, &mut Story)>;

/// Collects the lines of a history with the moment at which the recorder wrote each.
#[derive(Default)]
pub(crate) struct Story {
    lines: Vec<(Nanos, Entry)>,
    commits: Vec<(Nanos, Commit)>,
}

impl Story {
    /// A line that the recorder wrote at `when`.
    pub(crate) fn line(&mut self, when: Nanos, entry: Entry) {
        self.lines.push((when, entry));
    }

    /// Something that takes effect in etcd at `when` and gets the next revision there.
    pub(crate) fn effect(&mut self, when: Nanos, commit: impl FnOnce(u64, &mut Story) + 'static) {
        self.commits.push((when, Box::new(commit)));
    }

    fn commit(&mut self) {
        let mut commits = std::mem::take(&mut self.commits);
        commits.sort_by_key(|(when, _)| *when);
        for (n, (_, commit)) in commits.into_iter().enumerate() {
            commit(1_000 + n as u64, self);
        }
    }

    fn entries(mut self) -> Vec<Entry> {
        self.lines.sort_by_key(|(when, _)| *when);
        let mut next = 0;
        let mut entries: Vec<Entry> = self.lines.into_iter().map(|(_, entry)| entry).collect();
        for entry in &mut entries {
            if let Entry::Op(op) = entry {
                op.index = next;
                next += 1;
            }
        }
        entries
    }
}

/// A small deterministic source of jitter in `[0, 1)`.
pub(crate) struct Jitter(u64);

impl Jitter {
    /// The same seed gives the same row.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A moment on a host's own clock: hosts boot at different times.
pub(crate) fn host_time(host: &str, seconds: f64) -> HostTime {
    let n = host.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
    HostTime { boot: format!("b007-{host}"), mono: s(seconds) + (n % 900 + 100) * 1_000_000_000 }
}
