//! What a host is and has beyond its firewall: can scripts run there, does its clock agree, is there room.
//!
//! # Invariants
//! * Looks only. Firewall tables are tried in a network namespace that ends with the trial, because asking for a table
//!   makes it where the question is asked.
//! * A clock's offset is an interval: the reading lies somewhere between question and answer.
//!
//! The firewall's commands are `crate::fault::survey`'s business; both answers make one row of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::remote::{Outcome, Remote, Script};

/// How long a host may take to tell.
const LIMIT: Duration = Duration::from_secs(20);

/// Where room is needed: faults keep their files in the first, heartbeats grow in the second.
pub const ROOM: [&str; 2] = ["/run", "/var"];

/// Least room, bytes: a heartbeat line is about 100 bytes, five a second for each pod, over a night's suite.
pub const LEAST_ROOM: u64 = 64 << 20;

/// An answer that takes longer than this is told: probes and clock samples become as coarse.
pub const SLOW: Duration = Duration::from_millis(300);

/// A wall clock that is certainly further off than this is told, ns: log lines can no longer be put side by side.
pub const CLOCK_OFF: i64 = 1_000_000_000;

/// Tables in which a partition hooks itself.
pub const TABLES: [&str; 2] = ["raw", "mangle"];

const LOOK: &str = r#"set -u
echo "kernel=$(uname -r)"
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
echo "machine=$(readlink /proc/1/ns/mnt)"
for tool in setsid systemd-run ip tc unshare; do
    command -v "$tool" >/dev/null 2>&1 && echo "have=$tool"
done
for tool in iptables-nft iptables-legacy iptables ip6tables-nft ip6tables-legacy ip6tables; do
    command -v "$tool" >/dev/null 2>&1 && unshare -n true 2>/dev/null || continue
    for table in raw mangle; do
        said=$(unshare -n "$tool" -t "$table" -S 2>&1 >/dev/null) && echo "table=$tool $table" ||
            echo "no-table=$tool $table $(echo "$said" | head -n 1)"
    done
done
for place in /run /var; do
    df -Pk "$place" 2>/dev/null | while read -r _ _ _ free _; do
        case $free in *[!0-9]* | '') ;; *) echo "free=$place $free" ;; esac
    done
done
echo end=look
"#;

const CLOCK: &str = "date +%s%N";

/// A host's facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's boot id.
    pub boot: String,
    /// The mount namespace of its first process: with the boot id, what tells machines apart. Empty if not readable.
    pub machine: String,
    /// Commands that are there.
    pub have: BTreeSet<String>,
    /// (command, table) of each firewall table that works.
    pub tables: BTreeSet<(String, String)>,
    /// The same for those that do not, with what the command said. Where no namespace can be made, nothing is known
    /// of tables.
    pub no_tables: BTreeMap<(String, String), String>,
    /// Bytes free by place.
    pub free: BTreeMap<String, u64>,
    /// How far the host's wall clock is ahead of the controller's, ns: smallest and largest possible value. Absent
    /// where `date` knows no nanoseconds.
    pub ahead: Option<(i64, i64)>,
    /// How long it took to ask for that, with a connection that stood already.
    pub answers_in: Duration,
}

impl Machine {
    /// Reads what the looking script printed.
    ///
    /// # Errors
    /// The output is not whole.
    pub fn parse(output: &str) -> Result<Self, String> {
        let mut found = Self::default();
        let mut whole = false;
        for (key, value) in output.lines().filter_map(|l| l.split_once('=')) {
            match key {
                "kernel" => value.clone_into(&mut found.kernel),
                "boot" => value.clone_into(&mut found.boot),
                "machine" => value.clone_into(&mut found.machine),
                "have" => {
                    found.have.insert(value.to_owned());
                }
                "table" => {
                    let pair = value.split_once(' ').map(|(c, t)| (c.to_owned(), t.to_owned()));
                    found.tables.extend(pair);
                }
                "no-table" => {
                    let mut words = value.splitn(3, ' ').map(str::to_owned);
                    if let (Some(command), Some(table)) = (words.next(), words.next()) {
                        found.no_tables.insert((command, table), words.next().unwrap_or_default());
                    }
                }
                "free" => {
                    let pair = value.split_once(' ').and_then(|(p, k)| Some((p, k.parse::<u64>().ok()?)));
                    found.free.extend(pair.map(|(p, k)| (p.to_owned(), k.saturating_mul(1024))));
                }
                "end" => whole = true,
                _ => {}
            }
        }
        if whole && !found.boot.is_empty() { Ok(found) } else { Err("its answer is not whole".to_owned()) }
    }

    /// The least room of all places, bytes.
    #[must_use]
    pub fn least_free(&self) -> Option<u64> {
        self.free.values().min().copied()
    }

    /// What it lacks, and what to do.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if !self.have.contains("ip") {
            lacks
                .push("there is no `ip`, so its addresses cannot be read; install iproute2 there".to_owned());
        }
        for (place, free) in self.free.iter().filter(|(_, free)| **free < LEAST_ROOM) {
            let (free, least) = (free >> 20, LEAST_ROOM >> 20);
            lacks.push(format!("only {free} MiB are free in {place}; make at least {least} MiB free"));
        }
        lacks
    }

    /// Tables that do not work with that command, with what it said.
    #[must_use]
    pub fn broken_tables(&self, command: &str) -> Vec<(&'static str, &str)> {
        TABLES
            .into_iter()
            .filter_map(|table| {
                let key = (command.to_owned(), table.to_owned());
                Some((table, self.no_tables.get(&key)?.as_str()))
            })
            .collect()
    }

    /// What hinders no run and is worth knowing.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.answers_in > SLOW {
            remarks.push(format!(
                "takes {} ms for the smallest script; what do the start-up files of the user's shell do?",
                self.answers_in.as_millis()
            ));
        }
        // The end of the interval that is nearer to zero: it is off by at least that much.
        let off = self.ahead.map_or(0, |(lo, hi)| lo.max(0) + hi.min(0));
        if off.abs() > CLOCK_OFF {
            let way = if off > 0 { "ahead of" } else { "behind" };
            remarks.push(format!(
                "its wall clock is at least {:.1} s {way} the controller's; verdicts do not depend on it, logs are \
                 hard to compare",
                off.unsigned_abs() as f64 / 1e9
            ));
        }
        remarks
    }
}

/// What was found of each host; for one that could not be asked, why.
pub type Machines = BTreeMap<String, Result<Machine, String>>;

/// Looks at hosts, all at once.
pub async fn look(remote: &Arc<dyn Remote>, hosts: &[String]) -> Machines {
    let mut tasks = tokio::task::JoinSet::new();
    for host in hosts {
        let (remote, host) = (Arc::clone(remote), host.clone());
        tasks.spawn(async move {
            let found = at(remote.as_ref(), &host).await;
            (host, found)
        });
    }
    tasks.join_all().await.into_iter().collect()
}

async fn at(remote: &dyn Remote, host: &str) -> Result<Machine, String> {
    let outcome = remote.run(host, &Script::new(LOOK).limit(LIMIT)).await;
    let mut found = Machine::parse(&told(outcome)?)?;
    let (before, started) = (since_1970(), Instant::now());
    let outcome = remote.run(host, &Script::new(CLOCK).limit(LIMIT)).await;
    found.answers_in = started.elapsed();
    let asked = i64::try_from(found.answers_in.as_nanos()).unwrap_or(i64::MAX);
    let read = told(outcome)?.trim().parse::<i64>().ok();
    found.ahead = read.map(|t| (t.saturating_sub(before.saturating_add(asked)), t.saturating_sub(before)));
    Ok(found)
}

/// The controller's wall clock, ns since 1970.
fn since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Every script is run by `timeout`: a host without it fails at the first, and the reason should be said.
fn told(outcome: Outcome) -> Result<String, String> {
    match &outcome {
        Outcome::Done(done) if done.status == 127 && done.stderr.contains("timeout") => {
            Err("there is no `timeout`, without which no script is run; install coreutils or busybox there"
                .to_owned())
        }
        _ => outcome.ok(),
    }
}

/// Hosts that are one machine under several names.
#[must_use]
pub fn doubled(machines: &Machines) -> Vec<Vec<&str>> {
    let mut by_machine: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (host, found) in machines {
        if let Ok(found) = found
            && !found.machine.is_empty()
        {
            by_machine.entry((&found.boot, &found.machine)).or_default().push(host);
        }
    }
    by_machine.into_values().filter(|names| names.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::local::Namespaces;

    #[tokio::test]
    async fn this_machine_is_looked_at() {
        let remote: Arc<dyn Remote> = Arc::new(Namespaces::new().here("h1").here("h2"));
        let found = look(&remote, &["h1".to_owned(), "h2".to_owned(), "h3".to_owned()]).await;
        let h1 = found["h1"].as_ref().unwrap();
        let read = |path: &str| std::fs::read_to_string(path).unwrap().trim().to_owned();
        assert_eq!(h1.boot, read("/proc/sys/kernel/random/boot_id"));
        assert_eq!(h1.kernel, read("/proc/sys/kernel/osrelease"));
        assert_eq!(h1.free.keys().map(String::as_str).collect::<Vec<_>>(), ROOM);
        // One clock: the true offset, none, lies within.
        let (lo, hi) = h1.ahead.unwrap();
        assert!(lo <= 0 && 0 <= hi, "{lo} {hi}");
        assert_eq!(found["h3"], Err("there is no such host".to_owned()));
    }

    #[test]
    fn an_answer_cut_short_is_no_answer() {
        assert!(Machine::parse("kernel=6.1\nboot=x\n").is_err());
        let whole = Machine::parse(
            "kernel=6.1\nboot=x\nhave=ip\ntable=iptables-nft raw\nno-table=iptables raw can't initialize: no module\n\
             free=/var 10\nfree=/run x\nend=look\n",
        )
        .unwrap();
        assert_eq!(whole.least_free(), Some(10240));
        assert_eq!(whole.broken_tables("iptables"), [("raw", "can't initialize: no module")]);
        assert_eq!(whole.broken_tables("iptables-nft"), []);
    }

    #[test]
    fn one_machine_under_two_names_is_noticed() {
        let machine = |boot: &str, machine: &str| {
            Ok(Machine { boot: boot.to_owned(), machine: machine.to_owned(), ..Machine::default() })
        };
        let found: Machines = [
            ("a", machine("b1", "m1")),
            ("b", machine("b1", "m2")),
            ("c", machine("b2", "m1")),
            ("d", machine("b1", "m1")),
            ("e", machine("b1", "")),
            ("f", machine("b1", "")),
            ("g", Err("off".to_owned())),
        ]
        .map(|(name, found)| (name.to_owned(), found))
        .into();
        assert_eq!(doubled(&found), [["a", "d"]]);
    }

    #[test]
    fn lacks_and_remarks_say_what_to_do() {
        let poor = Machine { free: [("/run".to_owned(), 3 << 20)].into(), ..Machine::default() };
        let clock = |lo, hi| Machine { ahead: Some((lo, hi)), ..Machine::default() }.remarks();
        let slow = Machine { answers_in: Duration::from_millis(812), ..Machine::default() };
        assert!(clock(-900_000_000, 5_000_000_000).is_empty(), "this may be the way there and back");
        let mut said = poor.lacks();
        said.extend(clock(2_000_000_000, 2_100_000_000));
        said.extend(clock(-7_100_000_000, -7_000_000_000));
        said.extend(slow.remarks());
        let without = Outcome::Done(crate::host::remote::Finished {
            status: 127,
            stderr: "/bin/sh: 7: timeout: not found\n".to_owned(),
            ..Default::default()
        });
        said.extend(told(without).err());
        insta::assert_snapshot!(said.join("\n"));
    }
}
