//! The scripts that a host gets: the envelope that is the same for every kind of fault, round the few lines that
//! make the kind.
//!
//! # Invariants
//! * POSIX sh only; works with dash and busybox.
//! * No command in a script may read the script's own standard input, or it would eat the rest.
//! * Every answer is lines of `key=value`, decided on by key; sentences of other programs are shown, never parsed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::id::FaultId;
use crate::host::remote::{Outcome, Remote, Script};

const CLIENT: &str = include_str!("sh/client.sh");
const TABLES: &str = include_str!("sh/tables.sh");
const TOOLS: &str = include_str!("sh/tools.sh");
const SURVEY: &str = include_str!("sh/survey.sh");
const PREPARE: &str = include_str!("sh/prepare.sh");
const WATCH: &str = include_str!("sh/watch.sh");
const COMMIT: &str = include_str!("sh/commit.sh");
const RENEW: &str = include_str!("sh/renew.sh");
const LOOK: &str = include_str!("sh/look.sh");
const UNDO: &str = include_str!("sh/undo.sh");

/// Where scripts that lie on a host find their programs, whoever starts them.
const ENVIRONMENT: &str =
    "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin\nLC_ALL=C\nexport PATH LC_ALL\n";

/// What a fault is on one host: its doing and its undoing, in one value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HostPart {
    /// The host.
    pub host: String,
    /// Where faults keep their files on this host.
    pub run_dir: String,
    /// Makes everything ready and changes nothing that acts. On trouble it calls `fail 'why'`.
    pub stage: String,
    /// Makes it act. Appends to `$bad` what did not succeed. Repeating it changes nothing.
    pub commit: String,
    /// Takes everything away, staged or acting; tolerates absence.
    pub undo: String,
    /// Prints a line for each thing still there, also if it could not look.
    pub left: String,
    /// Prints what can be seen of it, for the kind's own reader.
    pub look: String,
}

/// What the envelope must know beside the part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The fault.
    pub id: &'a FaultId,
    /// Its part on the host.
    pub part: &'a HostPart,
    /// Seconds without a word of the controller after which the host undoes the fault.
    pub ttl: u64,
    /// The boot during which the host was surveyed.
    pub boot: &'a str,
    /// Addresses from which the controller may come, as SSH tells them.
    pub clients: &'a [String],
    /// `systemd` or `setsid`.
    pub supervisor: &'static str,
}

impl Envelope<'_> {
    fn variables(&self) -> String {
        let mut s = ENVIRONMENT.to_owned();
        let root = quoted(&self.part.run_dir);
        let dir = quoted(&self.id.folder(&self.part.run_dir));
        let _ = writeln!(s, "id={} root={root} dir={dir} ttl={}", self.id, self.ttl);
        s
    }

    /// Writes the undo, arms the dead-man's switch, stages.
    #[must_use]
    pub fn prepare(&self) -> String {
        let mut s = self.variables();
        let clients = quoted(&self.clients.join(" "));
        let _ = writeln!(s, "boot={} clients={clients} supervisor={}", quoted(self.boot), self.supervisor);
        s + CLIENT
            + TABLES
            + &PREPARE
                .replace("@UNDO@\n", &self.undo())
                .replace("@WATCH@\n", &(self.variables() + WATCH))
                .replace("@STAGE@\n", &self.part.stage)
    }

    /// Makes the staged fault act.
    #[must_use]
    pub fn commit(&self) -> String {
        self.variables() + &COMMIT.replace("@COMMIT@\n", &self.part.commit)
    }

    /// Moves the dead-man's time on.
    #[must_use]
    pub fn renew(&self) -> String {
        self.variables() + RENEW
    }

    /// Tells what stands of the fault.
    #[must_use]
    pub fn look(&self) -> String {
        self.variables() + &LOOK.replace("@LOOK@\n", &self.part.look)
    }

    /// Undoes it: the text that also lies on the host.
    #[must_use]
    pub fn undo(&self) -> String {
        let body = UNDO.replace("@UNDO@\n", &self.part.undo).replace("@LEFT@\n", &self.part.left);
        self.variables() + TABLES + &body
    }
}

/// The survey script.
#[must_use]
pub fn survey() -> String {
    ENVIRONMENT.to_owned() + CLIENT + SURVEY
}

/// A script that knows no fault and looks at every iptables of the host.
#[must_use]
pub(super) fn over_tools(variables: &str, body: &str) -> String {
    format!("{ENVIRONMENT}{variables}{TABLES}{TOOLS}{body}")
}

/// A script that knows no fault and looks at a host.
#[must_use]
pub(super) fn over_host(body: &str) -> String {
    format!("{ENVIRONMENT}set -u\n{CLIENT}{body}")
}

/// The text as one word of sh.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The `key=value` lines of an answer, in order.
pub fn pairs(output: &str) -> impl Iterator<Item = (&str, &str)> {
    output.lines().filter_map(|l| l.trim_end_matches('\r').split_once('='))
}

/// The first value of a key.
#[must_use]
pub fn value<'a>(output: &'a str, key: &str) -> Option<&'a str> {
    pairs(output).find(|(k, _)| *k == key).map(|(_, v)| v)
}

/// Runs a script on each host, all at once, and waits for all of them.
pub async fn on_each(
    remote: &Arc<dyn Remote>,
    scripts: BTreeMap<String, Script>,
) -> BTreeMap<String, Outcome> {
    let mut outcomes = BTreeMap::new();
    let mut tasks = start_each(remote, scripts);
    while let Some((host, outcome)) = next(&mut tasks).await {
        outcomes.insert(host, outcome);
    }
    outcomes
}

/// Outcomes that come in one by one.
pub(super) type Tasks = tokio::task::JoinSet<(String, Outcome)>;

/// Starts a script on each host.
pub(super) fn start_each(remote: &Arc<dyn Remote>, scripts: BTreeMap<String, Script>) -> Tasks {
    let mut tasks = Tasks::new();
    for (host, script) in scripts {
        let remote = Arc::clone(remote);
        tasks.spawn(async move {
            let outcome = remote.run(&host, &script).await;
            (host, outcome)
        });
    }
    tasks
}

/// The next outcome; none when all have come.
pub(super) async fn next(tasks: &mut Tasks) -> Option<(String, Outcome)> {
    Some(tasks.join_next().await?.expect("a task that runs a script neither panics nor is aborted"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sh_reads_a_quoted_text_as_it_was(text in "[^\0\r]{0,40}") {
            let out = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("printf %s {}", quoted(&text))])
                .output()
                .unwrap();
            prop_assert_eq!(String::from_utf8(out.stdout).unwrap(), text);
        }
    }

    #[test]
    fn answers_are_pairs() {
        let answer = "noise\na=1\r\nb=x=y\na=2\n";
        assert_eq!(value(answer, "a"), Some("1"));
        assert_eq!(value(answer, "b"), Some("x=y"));
        assert_eq!(value(answer, "c"), None);
    }
}
