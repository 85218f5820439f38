//! `rackrift list`.

use std::io::{self, Write};

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Modify, Style, Width};

use crate::cli::Listed;
use crate::fault::kind::catalogue::KINDS;
use crate::run::cuts::SHAPES;
use crate::run::library;

/// Prints what there is.
///
/// # Errors
/// If `out` cannot be written.
pub fn list(what: Listed, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Builder::default();
    match what {
        Listed::Scenarios => {
            table.push_record(["kind", "name", "what it proves"]);
            for (kind, name, about) in library::embedded() {
                table.push_record([kind.to_owned(), name, about]);
            }
        }
        Listed::Faults => {
            table.push_record(["kind", "written", "what it does"]);
            for shape in SHAPES {
                table.push_record([format!("partition/{}", shape.name).as_str(), shape.written, shape.does]);
            }
            for kind in KINDS {
                table.push_record([kind.name, kind.written, kind.does]);
            }
        }
        Listed::Checks => {
            table.push_record(["check", "class", "what is said"]);
            for (check, class, what) in CHECKS {
                table.push_record([check, class, what]);
            }
        }
    }
    let mut table = table.build();
    table.with(Style::sharp()).with(Modify::new(Columns::last()).with(Width::wrap(76).keep_words(true)));
    writeln!(out, "{table}")
}

/// The checks of a run, as the judge names them.
const CHECKS: [(&str, &str, &str); 20] = [
    ("run-complete", "evidence", "the run ended by its plan"),
    ("evidence", "evidence", "every observer, heartbeat and clock spoke through the whole run"),
    ("fault-coverage/FAULT", "evidence", "every planned directed edge was seen cut; else the run is invalid"),
    ("fault-healed/FAULT", "evidence", "every edge was seen open again"),
    ("lease-takeover/COMPONENT", "from code", "the lease moved between the bounds after the last renewal"),
    ("lease-steady/COMPONENT", "from code", "the lease did not move"),
    ("lease-record/COMPONENT", "from code", "nobody took the lease before it was released or expired"),
    ("leader-stops/COMPONENT", "from code", "a leader that cannot renew gives up in time"),
    ("belief-overlap/COMPONENT", "from code", "how long two processes believed that they led"),
    ("reached/FAULT", "from code", "the state that a fault waits for came while it was in force"),
    ("watch-streams", "from code", "each etcd member's watch showed every version, once, in order"),
    ("lease-linearizable", "promised", "the clients' lease histories are linearizable by resourceVersion"),
    ("node-unknown/NODE", "from code", "a cut node becomes Unknown within the bounds"),
    (
        "duplicate-pods/IDENTITY",
        "by owner",
        "which pods ran twice, certain or possible; never for a StatefulSet's ordinal",
    ),
    ("nodes-ready", "promised", "all other nodes stayed Ready"),
    ("eviction/NODE", "promised", "no pod was evicted before its toleration had ended"),
    ("daemon-undisturbed/IDENTITY", "promised", "a DaemonSet's pods were neither evicted nor restarted"),
    ("not-recreated/IDENTITY", "promised", "a bare pod was not made again"),
    ("converged", "promised", "nodes, pods and leases came back after the heal"),
    ("hosts-clean", "evidence", "every host's rules are as they were"),
];

#[cfg(test)]
mod tests {
    use rackrift_checkers::verdict::RunVerdict;

    use super::*;

    #[test]
    fn every_check_of_the_sample_run_is_listed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/tests/fixtures/rack-split/verdict.json");
        let verdict: RunVerdict = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let word = |id: &str| id.split('/').next().unwrap_or_default().to_owned();
        let listed: Vec<String> = CHECKS.iter().map(|(id, _, _)| word(id)).collect();
        for check in &verdict.checks {
            assert!(listed.contains(&word(&check.id)), "{} is not listed", check.id);
        }
    }
}
