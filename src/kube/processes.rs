//! Which Kubernetes processes run on a host, and with which arguments.
//!
//! `/proc/PID/cmdline`, not a unit file or a manifest, because what counts is what the running process was given;
//! the host's `/proc` shows processes in containers too, so one way serves systemd units and static pods.

use std::collections::BTreeMap;

use crate::host::remote::{Remote, Script};

/// The components that are looked for.
const COMPONENTS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

/// A running component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its pid, as the host sees it.
    pub pid: u32,
    /// Its name: the last part of its first argument.
    pub component: String,
    /// Its flags.
    pub flags: Flags,
}

/// Flags of a command line. The last of equal names counts, as in the components.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags(BTreeMap<String, String>);

impl Flags {
    /// Reads `--name=value`, `--name value` and `--name`.
    pub fn parse<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        let mut flags = BTreeMap::new();
        let mut args = args.into_iter().peekable();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.strip_prefix("--") else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value),
                // A truth flag takes its value only after '=', so a bare word that follows is another's value.
                None => (flag, args.next_if(|next| !next.starts_with('-')).unwrap_or("true")),
            };
            flags.insert(name.to_owned(), value.to_owned());
        }
        Self(flags)
    }

    /// The value of `--name`, if it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Asks a host for its Kubernetes processes.
///
/// # Errors
/// How the question ended otherwise.
pub async fn list(remote: &dyn Remote, host: &str) -> Result<Vec<Process>, String> {
    let names = COMPONENTS.join("|");
    // grep -z takes each argument as a line, so only an argument that is the program matches, never this script.
    let script = Script::new(format!(
        "for f in $(grep -zlE '^([^ ]*/)?({names})$' /proc/[0-9]*/cmdline 2>/dev/null); do\n\
         echo \"process $f\"; tr '\\0' '\\n' <\"$f\"; echo\ndone\n"
    ));
    let output = remote.run(host, &script).await.ok()?;
    Ok(parse(&output))
}

/// Reads what the script of [`list`] prints: a line `process /proc/PID/cmdline`, then one argument a line, then an
/// empty line.
fn parse(output: &str) -> Vec<Process> {
    output
        .split("process /proc/")
        .filter_map(|block| {
            let (pid, args) = block.split_once("/cmdline\n")?;
            let mut args = args.lines();
            let program = args.next()?;
            let component = program.rsplit('/').next()?;
            COMPONENTS.contains(&component).then(|| Process {
                pid: pid.parse().unwrap_or_default(),
                component: component.to_owned(),
                flags: Flags::parse(args),
            })
        })
        .filter(|p| p.pid != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_form_of_a_flag() {
        let flags = Flags::parse(["--a=1", "--b", "2", "--c", "--d=x=y", "-v", "2", "word", "--a=3", "--e"]);
        let get = |n| flags.get(n);
        assert_eq!(get("a"), Some("3"));
        assert_eq!(get("b"), Some("2"));
        assert_eq!(get("c"), Some("true"));
        assert_eq!(get("d"), Some("x=y"));
        assert_eq!((get("e"), get("word"), get("v")), (Some("true"), None, None));
    }

    #[test]
    fn only_a_process_whose_program_is_a_component_counts() {
        let output = "process /proc/412/cmdline\n/opt/k8s/kube-scheduler\n--leader-elect=true\n\n\
                      process /proc/500/cmdline\njournalctl\n-u\nkubelet\n\nprocess /proc/x/cmdline\nkubelet\n\n";
        let found = parse(output);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].pid, found[0].component.as_str()), (412, "kube-scheduler"));
        assert_eq!(found[0].flags.get("leader-elect"), Some("true"));
    }

    proptest! {
        #[test]
        fn no_output_panics(output: String) {
            let _ = parse(&output);
        }
    }
}
