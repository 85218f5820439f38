//! Units of systemd and static pods: stopped, restarted, taken away.

use serde::{Deserialize, Serialize};

use super::amount::Name;
use super::{Ground, Lines, No};
use crate::fault::script;

/// Where a kubelet looks for static pods if nobody told it otherwise (kubeadm's choice).
const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// What is done to a unit of systemd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Service {
    /// Stopped in good order until the heal.
    Stop(Name),
    /// Restarted once.
    Restart(Name),
}

/// What is done to a static pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum StaticPod {
    /// Its file is taken out of the kubelet's folder until the heal.
    Stop(Name),
}

impl Service {
    pub(super) const fn unit(&self) -> &Name {
        match self {
            Self::Stop(name) | Self::Restart(name) => name,
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Stop(_) => "service/stop",
            Self::Restart(_) => "service/restart",
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            Self::Stop(name) => format!("{name} is stopped"),
            Self::Restart(name) => format!("{name} is restarted"),
        }
    }

    pub(super) fn scout(&self) -> String {
        format!(
            "if [ -d /run/systemd/system ]; then echo systemd=yes; fi\n\
             echo \"unit=$(systemctl is-active {} 2>/dev/null)\"\n",
            self.unit()
        )
    }

    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let unit = self.unit();
        if script::value(ground.scouted, "systemd") != Some("yes") {
            return Err(No::Missing("systemd does not run there".to_owned()));
        }
        match script::value(ground.scouted, "unit") {
            Some("active") => {}
            other => {
                let state = other.filter(|s| !s.is_empty()).unwrap_or("unknown");
                return Err(No::Refused(format!("the unit {unit} is {state} there, not active")));
            }
        }
        Ok(match self {
            Self::Stop(_) => stop(unit),
            Self::Restart(_) => restart(unit),
        })
    }
}

fn stop(unit: &Name) -> Lines {
    Lines {
        commit: format!(
            ": >\"$dir/stopped\"\ntimeout 25 systemctl stop {unit} </dev/null || bad=\"$bad {unit} did not stop;\"\n"
        ),
        undo: format!("if [ -e \"$dir/stopped\" ]; then timeout 25 systemctl start {unit} </dev/null; fi\n"),
        left: format!(
            "if [ -e \"$dir/stopped\" ] && ! systemctl is-active --quiet {unit}; then echo '{unit} does not run'; fi\n"
        ),
        look: format!(
            "rr_state=$(systemctl is-active {unit})\n\
             case $rr_state in inactive | failed) echo \"sign=yes {unit} is $rr_state\" ;; *) echo \"sign=no {unit} is $rr_state\" ;; esac\n"
        ),
        ..Lines::default()
    }
}

fn restart(unit: &Name) -> Lines {
    let run = format!("systemctl show --value --property=InvocationID {unit}");
    Lines {
        commit: format!(
            "if [ ! -e \"$dir/run-before\" ]; then\n    {run} >\"$dir/run-before\"\n    \
             timeout 25 systemctl restart {unit} </dev/null || bad=\"$bad {unit} was not restarted;\"\nfi\n"
        ),
        undo: format!(
            "if [ -e \"$dir/run-before\" ] && ! systemctl is-active --quiet {unit}; then timeout 25 systemctl start {unit} </dev/null; fi\n"
        ),
        left: format!(
            "if [ -e \"$dir/run-before\" ] && ! systemctl is-active --quiet {unit}; then echo '{unit} does not run'; fi\n"
        ),
        look: format!(
            "if [ -e \"$dir/run-before\" ]; then\n    rr_now=$({run})\n    \
             if [ \"$rr_now\" != \"$(cat \"$dir/run-before\")\" ]; then echo \"sign=yes {unit} runs as $rr_now\"; \
             else echo \"sign=no {unit} is the same as before\"; fi\nfi\n"
        ),
        ..Lines::default()
    }
}

impl StaticPod {
    pub(super) fn scout(&self) -> String {
        let Self::Stop(name) = self;
        format!("if [ -f {MANIFESTS}/{name}.yaml ]; then echo manifest=yes; fi\n")
    }

    /// Moved within its file system, out of the folder that the kubelet reads: a reboot leaves it there under a name
    /// that tells the fault, where every heal finds it.
    pub(super) fn lines(&self, ground: &Ground<'_>) -> Result<Lines, No> {
        let Self::Stop(name) = self;
        if script::value(ground.scouted, "manifest") != Some("yes") {
            return Err(No::Refused(format!("there is no {MANIFESTS}/{name}.yaml")));
        }
        let here = format!("{MANIFESTS}/{name}.yaml");
        let away = format!("{}/rackrift-{}.{name}.yaml", MANIFESTS.trim_end_matches("/manifests"), ground.id);
        Ok(Lines {
            commit: format!("[ -f {away} ] || mv {here} {away} || bad=\"$bad {here} could not be moved;\"\n"),
            undo: format!(
                "if [ -f {away} ]; then if [ -e {here} ]; then rm -f {away}; else mv {away} {here}; fi; fi\n"
            ),
            left: format!("if [ -f {away} ]; then echo 'the file of {name} is not back'; fi\n"),
            look: format!(
                "{}if [ -f {away} ]; then\n    if rr_find {name} | grep -q .; then echo 'sign=no {name} still runs'; \
                 else echo 'sign=yes {name} does not run'; fi\nfi\n",
                super::process::FIND
            ),
            ..Lines::default()
        })
    }
}
