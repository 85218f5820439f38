//! Did the run leave every host as it found it.

use super::finding::{Finding, witness};
use super::index::Index;
use super::wording::{counted, list, short_list};
use crate::facts::HostFacts;
use crate::verdict::{CheckResult, Class, Verdict};

/// One check over all hosts.
pub(super) fn check(index: &Index<'_>) -> Vec<CheckResult> {
    vec![hosts(index)]
}

fn hosts(index: &Index<'_>) -> CheckResult {
    let hosts = &index.facts.hosts;
    let finding = Finding::new("hosts-clean", "Every host as it was before", Class::Evidence)
        .bound("rules byte-equal, nothing left, dead-man's switch disarmed")
        .checked(counted(hosts.len(), "host", "hosts"))
        .evidence("rules before and after, counters aside");
    let known: Vec<&str> = hosts.iter().map(|host| host.host.as_str()).collect();
    let all = index.facts.racks.iter().flat_map(|rack| &rack.hosts).map(|(host, _)| host.as_str());
    let unseen: Vec<&str> = all.filter(|host| !known.contains(host)).collect();
    let dirty: Vec<(&str, String)> =
        hosts.iter().filter_map(|h| Some((h.host.as_str(), trouble(h)?))).collect();
    let finding =
        finding.measured(format!("{} of {} clean", hosts.len() - dirty.len(), hosts.len() + unseen.len()));
    if let Some((host, why)) = dirty.first() {
        let sentence = match dirty.len() {
            1 => format!("{host} is not as it was before the run: {why}."),
            _ => {
                let names: Vec<&str> = dirty.iter().map(|(host, _)| *host).collect();
                format!("{} are not as they were before the run; {host}: {why}.", short_list(&names, 4))
            }
        };
        let witnesses =
            dirty.iter().map(|(host, why)| witness("dirty-host", format!("{host}: {why}."), Vec::new()));
        return witnesses.fold(finding, Finding::witness).say(Verdict::Fail, sentence);
    }
    if hosts.is_empty() || !unseen.is_empty() {
        let which = if hosts.is_empty() { "any host".to_owned() } else { short_list(&unseen, 4) };
        return finding.unknown(format!("Whether {which} is as before was not looked at."));
    }
    let fired: Vec<&str> =
        hosts.iter().filter(|h| h.dead_man.contains("fired")).map(|h| h.host.as_str()).collect();
    if !fired.is_empty() {
        return finding.invalid(format!(
            "Every host is clean, but the dead-man's switch fired on {}: the fault ended there before its time.",
            list(&fired)
        ));
    }
    finding.pass(format!(
        "All {} were verified clean, their rules byte-equal to before, their dead-man's switches disarmed.",
        counted(hosts.len(), "host", "hosts")
    ))
}

/// What is wrong with a host.
fn trouble(host: &HostFacts) -> Option<String> {
    if let Some(why) = &host.clean {
        return Some(why.clone());
    }
    if host.rules_before != host.rules_after {
        return Some("its rules differ from those before the run".to_owned());
    }
    let armed = host.dead_man.contains("armed") && !host.dead_man.contains("disarmed");
    (armed && !host.dead_man.contains("fired")).then(|| "its dead-man's switch is still armed".to_owned())
}
