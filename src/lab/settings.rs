//! What may differ from one lab to another.

use serde::{Deserialize, Serialize};

/// The lab's settings. The three waits are shorter than Kubernetes' own defaults, so that an experiment takes
/// minutes, not a quarter of an hour; every bound that a check uses follows from the flags in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// No management network: the controller comes in by the data network.
    pub single_homed: bool,
    /// `--node-monitor-grace-period` of kube-controller-manager, seconds (Kubernetes 1.34: 50).
    pub grace: u32,
    /// `nodeLeaseDurationSeconds` of kubelet, seconds (Kubernetes: 40); it renews each quarter of it.
    pub lease: u32,
    /// Default tolerations of not-ready and unreachable, seconds (Kubernetes: 300).
    pub toleration: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { single_homed: false, grace: 20, lease: 20, toleration: 10 }
    }
}

impl Settings {
    /// How `self`, which is in force, differs from `asked`: one phrase, or none if it does not.
    pub(super) fn differences(&self, asked: &Self) -> Option<String> {
        let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
        let seconds = |n: u32| format!("{n} s");
        let all = [
            ("single-homed", yes(self.single_homed), yes(asked.single_homed)),
            ("grace period", seconds(self.grace), seconds(asked.grace)),
            ("node lease", seconds(self.lease), seconds(asked.lease)),
            ("toleration", seconds(self.toleration), seconds(asked.toleration)),
        ];
        let differ: Vec<String> = all
            .into_iter()
            .filter(|(_, is, asked)| is != asked)
            .map(|(name, is, asked)| format!("{name}: {is}, asked: {asked}"))
            .collect();
        (!differ.is_empty()).then(|| differ.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let is = Settings::default();
        assert_eq!(is.differences(&Settings::default()), None);
        let asked = Settings { single_homed: true, grace: 40, ..is.clone() };
        assert_eq!(
            is.differences(&asked).as_deref(),
            Some("single-homed: no, asked: yes, grace period: 20 s, asked: 40 s")
        );
    }
}
