//! What a cluster with given flags must do, and by when: the formulas behind every bound of the judge.
//!
//! All of them are arithmetic on the flags in force ([`LeaseFlags`], [`NodeFlags`]); the few constants that
//! no flag carries stand at the top, each with its source. `t_r` is the commit of the old leader's last
//! renewal. The symbols (LD, RD, RP, G, MP, HB, TS) are those of the flags' documentation.
//!
//! # Invariants
//! - No bound holds a default of Kubernetes: change a flag and each bound that depends on it moves.
//! - `min <= max` in every [`Between`]; sums saturate, so absurd flags give absurd bounds and no panic.

use crate::facts::{LeaseFacts, LeaseFlags, NodeFlags};
use crate::history::Nanos;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// Longest time after which a silently dead HTTP/2 connection is noticed: read-idle 30 s plus ping 15 s
/// (client-go transport; the reason why the node monitor grace period became 50 s).
pub const DEAD_PEER: Nanos = 45 * SECOND;

/// How long a process may take to log, flush and exit once it knows that it lost the lease. Not a flag: the
/// allowance is for a loaded machine (measured there: 0.1 s on an idle one).
pub const STOP_SLACK: Nanos = 3 * SECOND;

/// From the commit of a lease or node version to its line at the controller, at most: a watch's hop plus a
/// loaded machine. It widens measured gaps; it never excuses more than itself.
pub const SEEN_WITHIN: Nanos = SECOND / 2;

/// From "leads" to the first look at the nodes, at most. Not a flag: a new controller manager starts its controllers
/// one after the other, which takes about 1 s; but each request of it may hang on an API server that has not yet found
/// out that an etcd member is cut off. Its etcd client does so by keepalives, 30 s + 10 s after the last word
/// (`staging/src/k8s.io/apiserver/pkg/storage/storagebackend/factory/etcd3.go`: `keepaliveTime`, `keepaliveTimeout`);
/// of these 40 s some 15 are over when the lease has expired. Up to 21 s were measured.
pub const CONTROLLER_START: Nanos = 25 * SECOND;

/// Time between two evictions in a zone: one over `--node-eviction-rate`, whose default is 0.1 a second.
/// `run.json` does not carry that flag yet; the lab leaves it alone.
pub const EVICTION_INTERVAL: Nanos = 10 * SECOND;

/// By how much two clocks' rates may differ, parts per million: the largest slew of an NTP-disciplined clock.
pub const RATE_PPM: u64 = 500;

/// A span of time after some moment in which something must happen, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// Not earlier than this.
    pub min: Nanos,
    /// Not later than this.
    pub max: Nanos,
}

impl Between {
    /// Both ends later.
    #[must_use]
    pub const fn after(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

/// Bounds of one elected component; all but [`Self::gap`] count from `t_r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseBounds {
    /// `STOP_MAX = RP + RD`: after a success the renew loop waits RP, then tries for at most RD
    /// (client-go `leaderelection.go`, `renew`).
    pub stop_max: Nanos,
    /// When the process must be gone: `STOP_MAX`, for a component that releases also `SCHED_TAIL`'s two
    /// black-holed requests, and [`STOP_SLACK`].
    pub exit_max: Nanos,
    /// `TAKE_MIN = LD … TAKE_MAX = LD + 2·RP·(1+J)` with J = 1.2: up to one jittered period to see the last
    /// renewal, LD unchanged on the candidate's clock, up to one period to the next try (`acquire`).
    pub takeover: Between,
    /// `TAKE_MAX` plus [`DEAD_PEER`]: with a quorum, a serving API server and a healthy candidate somebody holds
    /// the lease by then.
    pub alive_max: Nanos,
    /// `GAP = LD − RP − RD`: how long nobody leads when all goes by the flags, the only margin there is; negative
    /// where flags leave none, ns.
    pub gap: i64,
    /// `SCHED_TAIL = STOP_MAX + LT … STOP_MAX + 2·LT` with the lock client's time-out LT = RD/2: a component that
    /// releases goes on until the release has been tried, and a black hole swallows each try for LT.
    pub release_tail: Between,
    /// `ZOMBIE = RD … RP + RD` after it resumes: how long a leader that was paused beyond LD goes on before it
    /// gives up, for "held by another" is retried until the renew deadline ends.
    pub zombie: Between,
}

impl LeaseBounds {
    /// The bounds that follow from a component's flags.
    #[must_use]
    pub fn of(lease: &LeaseFacts) -> Self {
        let LeaseFlags { lease_duration: ld, renew_deadline: rd, retry_period: rp } = lease.flags;
        let stop_max = rp.saturating_add(rd);
        let request = rd / 2;
        let release_tail = Between {
            min: stop_max.saturating_add(request),
            max: stop_max.saturating_add(request.saturating_mul(2)),
        };
        let last = if lease.releases { release_tail.max } else { stop_max };
        // Twice the jittered period RP·(1 + 1.2).
        let tries = rp.saturating_mul(44) / 10;
        let take_max = ld.saturating_add(tries);
        Self {
            stop_max,
            exit_max: last.saturating_add(STOP_SLACK),
            takeover: Between { min: ld, max: take_max },
            alive_max: take_max.saturating_add(DEAD_PEER),
            gap: signed(ld).saturating_sub(signed(stop_max)),
            release_tail,
            zombie: Between { min: rd, max: stop_max },
        }
    }
}

/// When a silent node must be called Unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeBounds {
    /// `G − HB … G + 2·MP` after the cut, if the controller manager that judges the nodes led before it: the
    /// last heartbeat came up to HB before the cut, and the silence is noticed on a tick.
    pub unknown_kept: Between,
    /// `G … G + 2·MP` and [`CONTROLLER_START`] after the takeover, if a new one leads: its health map is in memory
    /// and starts at "now" (`Missing timestamp for Node`).
    pub unknown_moved: Between,
    /// `TS … TS + MP + n/ER` after Unknown: NoExecute follows within a tick, nodes of a zone take turns, then the
    /// toleration runs. The first turn may have to be waited for too: with one silent node 9.5 s beyond TS were seen.
    pub evicted: Between,
}

impl NodeBounds {
    /// The bounds that follow from the node controller's flags with `silent` nodes falling silent at once.
    #[must_use]
    pub fn of(flags: &NodeFlags, silent: u64) -> Self {
        let ticks = flags.monitor_period.saturating_mul(2);
        let kept = flags.grace_period.saturating_add(ticks);
        let turns = EVICTION_INTERVAL.saturating_mul(silent);
        Self {
            unknown_kept: Between { min: flags.grace_period.saturating_sub(flags.heartbeat), max: kept },
            unknown_moved: Between { min: flags.grace_period, max: kept.saturating_add(CONTROLLER_START) },
            evicted: Between {
                min: flags.toleration,
                max: flags.toleration.saturating_add(flags.monitor_period).saturating_add(turns),
            },
        }
    }
}

/// How much two clocks may drift apart over `length`, ns.
#[must_use]
pub const fn drift(length: Nanos) -> Nanos {
    length.saturating_mul(RATE_PPM) / 1_000_000
}

fn signed(length: Nanos) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: f64) -> Nanos {
        (n * 1e9).round() as Nanos
    }

    fn lease(ld: f64, rd: f64, rp: f64, releases: bool) -> LeaseBounds {
        let flags = LeaseFlags {
            lease_duration: seconds(ld),
            renew_deadline: seconds(rd),
            retry_period: seconds(rp),
        };
        LeaseBounds::of(&LeaseFacts {
            lease: "kube-system/x".into(),
            component: "x".into(),
            flags,
            exits_on_loss: true,
            releases,
        })
    }

    fn nodes(grace: f64, toleration: f64) -> NodeBounds {
        let flags = NodeFlags {
            monitor_period: seconds(5.0),
            grace_period: seconds(grace),
            heartbeat: seconds(10.0),
            toleration: seconds(toleration),
        };
        NodeBounds::of(&flags, 1)
    }

    fn holds(bound: Between, measured: f64) -> bool {
        bound.min <= seconds(measured) && seconds(measured) <= bound.max
    }

    #[test]
    fn default_flags_give_the_documented_figures() {
        let kcm = lease(15.0, 10.0, 2.0, false);
        assert_eq!(kcm.stop_max, seconds(12.0));
        assert_eq!(kcm.exit_max, seconds(15.0));
        assert_eq!(kcm.takeover, Between { min: seconds(15.0), max: seconds(23.8) });
        assert_eq!(kcm.alive_max, seconds(68.8));
        assert_eq!(kcm.gap, 3_000_000_000);
        assert_eq!(kcm.zombie, Between { min: seconds(10.0), max: seconds(12.0) });
        let scheduler = lease(15.0, 10.0, 2.0, true);
        assert_eq!(scheduler.release_tail, Between { min: seconds(17.0), max: seconds(22.0) });
        assert_eq!(scheduler.exit_max, seconds(25.0));
        assert_eq!(nodes(40.0, 300.0).unknown_kept, Between { min: seconds(30.0), max: seconds(50.0) });
        assert_eq!(nodes(50.0, 300.0).unknown_kept, Between { min: seconds(40.0), max: seconds(60.0) });
    }

    #[test]
    fn figures_measured_on_real_clusters_lie_within() {
        let kcm = lease(15.0, 10.0, 2.0, false);
        for takeover in [17.97, 19.27, 21.26, 18.5, 21.1, 16.6] {
            assert!(holds(kcm.takeover, takeover), "{takeover}");
        }
        for resumed in [10.08, 10.14, 10.0] {
            assert!(holds(kcm.zombie, resumed), "{resumed}");
        }
        assert!(seconds(12.1) <= kcm.exit_max);
        // G = 40 s: the takeover at 18.5 s, both nodes Unknown at 59.9 s, evictions at 365.2 and 375.7 s.
        assert!(holds(nodes(40.0, 300.0).unknown_moved, 59.9 - 18.5));
        let two = NodeBounds::of(
            &NodeFlags {
                monitor_period: seconds(5.0),
                grace_period: seconds(40.0),
                heartbeat: seconds(10.0),
                toleration: seconds(300.0),
            },
            2,
        );
        let (slack, unknown) = (Between { min: 0, max: SEEN_WITHIN }, 59.9);
        assert!(holds(two.evicted.after(slack), 365.2 - unknown));
        assert!(
            !holds(nodes(40.0, 300.0).evicted.after(slack), 375.7 - unknown),
            "the second waits its turn"
        );
        // G = 50 s, TS = 10 s: takeover at 17.8 s, Unknown at 77.7 s, evicted at 87.7 s.
        assert!(holds(nodes(50.0, 10.0).unknown_moved, 77.7 - 17.8));
        assert!(holds(nodes(50.0, 10.0).evicted, 87.7 - 77.7));
        // A steady leader and a worker that lost its power.
        assert!(holds(nodes(50.0, 10.0).unknown_kept, 44.3));
    }

    #[test]
    fn bounds_follow_the_flags_and_survive_absurd_ones() {
        let quick = lease(6.0, 4.0, 1.0, false);
        assert_eq!(quick.takeover, Between { min: seconds(6.0), max: seconds(10.4) });
        assert_eq!(quick.gap, 1_000_000_000);
        assert!(lease(10.0, 10.0, 2.0, false).gap < 0, "no margin left");
        let absurd = Nanos::MAX as f64 / 1e9;
        assert!(
            lease(absurd, absurd, absurd, true).takeover.max >= lease(absurd, 0.0, 0.0, true).takeover.min
        );
        assert_eq!(nodes(5.0, 0.0).unknown_kept.min, 0);
    }

    #[test]
    fn two_clocks_drift_half_a_millisecond_a_second() {
        assert_eq!(drift(seconds(15.0)), 7_500_000);
    }
}
