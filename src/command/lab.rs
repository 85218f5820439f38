//! `rackrift lab up | status | enter | down`.

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use tabled::builder::Builder;
use tabled::settings::Style;

use super::{Failure, Voice};
use crate::exit::Exit;
use crate::lab::{self, Event, LabError, Options, Progress, Settings, Site, Status};
use crate::run::tell::Tell;

/// `rackrift lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Bring the lab up: make what is missing, start what does not run, wait until the cluster is ready.
    Up(UpArgs),
    /// Say what runs, who leads and what is ready.
    Status(Which),
    /// Open a shell, or run a command, in a machine (past its network) or in the seat of the `controller`.
    Enter(EnterArgs),
    /// Take the lab down, or whatever is left of one, and leave nothing.
    Down(Which),
}

/// Which lab.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Its name: several labs may be up at once.
    #[arg(long, default_value = Site::NAME)]
    pub name: String,
    /// The folder of its disks and keys, on ext4, xfs or btrfs; by default `/var/lib/rackrift/NAME`.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// `rackrift lab up`.
#[derive(Debug, Clone, Args)]
pub struct UpArgs {
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
    /// A folder with the Kubernetes and etcd binaries, instead of building them.
    #[arg(long, value_name = "DIR")]
    pub components: Option<PathBuf>,
    /// Where built binaries and the machines' common tree are kept between labs.
    #[arg(long, value_name = "DIR", default_value = lab::CACHE)]
    pub cache: PathBuf,
    /// No management network: the controller comes in by the data network.
    #[arg(long)]
    pub single_homed: bool,
    /// Node monitor grace period of kube-controller-manager (Kubernetes' own default: 50).
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().grace)]
    pub grace: u32,
    /// Lease duration of kubelet, which renews each quarter of it (Kubernetes' own default: 40).
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().lease)]
    pub lease: u32,
    /// How long pods tolerate a node that is not ready or unreachable (Kubernetes' own default: 300).
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().toleration)]
    pub toleration: u32,
    /// Install missing packages without asking.
    #[arg(short, long)]
    pub yes: bool,
}

/// `rackrift lab enter`.
#[derive(Debug, Clone, Args)]
pub struct EnterArgs {
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
    /// A machine (m1 w1 e1 m2 w2 e2 e3 lb), or `controller`: the lab's network, with `kubectl` at hand.
    pub host: String,
    /// A command instead of a shell.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

impl UpArgs {
    fn options(&self) -> Result<Options, Failure> {
        Ok(Options {
            site: site(&self.which)?,
            cache: self.cache.clone(),
            components: self.components.clone(),
            settings: Settings {
                single_homed: self.single_homed,
                grace: self.grace,
                lease: self.lease,
                toleration: self.toleration,
            },
        })
    }
}

fn site(which: &Which) -> Result<Site, Failure> {
    Site::find(&which.name, which.state.as_deref()).map_err(failure)
}

/// The exit code of each error: what the caller got wrong, what is not there, what could not be done.
fn failure(e: LabError) -> Failure {
    match e {
        LabError::Down(_) | LabError::Off { .. } => Failure { exit: Exit::Nothing, message: e.to_string() },
        LabError::Step(_) | LabError::Left(_) | LabError::Busy => Failure::harness(e),
        _ => Failure::usage(e),
    }
}

/// Runs a lab verb. Blocks: up to minutes for `up`, for as long as the shell lives for `enter`.
///
/// # Errors
/// One message, and the exit code that goes with it.
pub fn run(verb: &LabVerb, out: &mut dyn Write) -> Result<Exit, Failure> {
    match verb {
        LabVerb::Up(args) => {
            let voice = Voice::new();
            let said = up(&args.options()?, args.yes, &voice);
            voice.done();
            let up = said?;
            let text = format!(
                "the lab is ready; its inventory: {}\nlook: rackrift lab status · enter: rackrift lab enter m1 · end: \
                 rackrift lab down\n",
                up.inventory.display()
            );
            write(out, &text)?;
            Ok(Exit::Passed)
        }
        LabVerb::Status(which) => {
            let status = lab::status(&site(which)?).map_err(failure)?;
            write(out, &shown(&status))?;
            Ok(if status.healthy() { Exit::Passed } else { Exit::Harness })
        }
        LabVerb::Enter(args) => match lab::enter(&site(&args.which)?, &args.host, &args.command) {
            Ok(never) => match never {},
            Err(e) => Err(failure(e)),
        },
        LabVerb::Down(which) => {
            let site = site(which)?;
            let there = lab::down(&site).map_err(failure)?;
            let said = if there { "is down; nothing of it is left" } else { "was not there" };
            write(out, &format!("the lab `{}` {said}\n", site.name()))?;
            Ok(Exit::Passed)
        }
    }
}

/// Brings a lab up, and shows what is done; installs what is missing, after asking if there is a
/// terminal and not `yes`.
///
/// # Errors
/// One message, and the exit code that goes with it.
pub fn up(options: &Options, yes: bool, voice: &Voice) -> Result<lab::Up, Failure> {
    let missing = lab::missing(options);
    if missing.iter().any(|p| p.debian.is_some()) {
        let error = LabError::Missing(missing.clone());
        if !(yes || ask(&error)) {
            return Err(failure(error));
        }
        let names: Vec<&str> = missing.iter().filter_map(|p| p.debian).collect();
        voice.now(&format!("installing {}", names.join(", ")), None);
        lab::install(&missing).map_err(|f| failure(f.into()))?;
    }
    let up = lab::up(options, &Spoken(voice)).map_err(failure)?;
    let total: Duration = up.took.iter().map(|(_, d)| *d).sum();
    let parts: Vec<String> =
        up.took.iter().map(|(stage, d)| format!("{} {:.1} s", stage.name(), d.as_secs_f64())).collect();
    voice.say(&format!("ready after {:.1} s ({})", total.as_secs_f64(), parts.join(", ")));
    Ok(up)
}

/// Asks on the terminal whether to install what is missing; without a terminal nobody can be asked, and it is done.
fn ask(what: &LabError) -> bool {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return true;
    }
    let mut answer = String::new();
    let asked = write!(std::io::stderr().lock(), "{what}\nDo that now? [y/N] ");
    asked.is_ok()
        && std::io::stdin().read_line(&mut answer).is_ok()
        && answer.trim().eq_ignore_ascii_case("y")
}

/// Brings the lab of a demo up. Returns whether it was up before.
///
/// # Errors
/// As [`up`].
pub fn for_demo(yes: bool, components: Option<PathBuf>, voice: &Voice) -> Result<bool, Failure> {
    let site = Site::find(Site::NAME, None).map_err(failure)?;
    let was_up = lab::status(&site).is_ok_and(|s| s.healthy());
    let options = Options { site, cache: lab::CACHE.into(), components, settings: Settings::default() };
    up(&options, yes, voice)?;
    Ok(was_up)
}

/// Takes the lab of a demo down.
///
/// # Errors
/// What could not be removed.
pub fn after_demo() -> Result<(), Failure> {
    let site = Site::find(Site::NAME, None).map_err(failure)?;
    lab::down(&site).map(|_| ()).map_err(failure)
}

/// The inventory of the local lab, whether it is up or not.
///
/// # Errors
/// If the lab's folder can't be told.
pub fn inventory() -> Result<PathBuf, Failure> {
    Ok(Site::find(Site::NAME, None).map_err(failure)?.inventory())
}

/// A lab's progress by the voice of this process.
struct Spoken<'a>(&'a Voice);

impl Progress for Spoken<'_> {
    fn event(&self, event: &Event) {
        let machine = event.machine.map(|m| format!("{m} ")).unwrap_or_default();
        self.0.now(&format!("{}: {machine}{}", event.stage.name(), event.text), Some(event.left));
    }
}

fn write(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes()).map_err(Failure::harness)
}

/// A status as text.
fn shown(status: &Status) -> String {
    let mut table = Builder::default();
    table.push_record(["machine", "rack", "role", "up", "memory", "services"]);
    for m in &status.machines {
        let services: Vec<String> = m
            .services
            .iter()
            .map(
                |(name, state)| {
                    if state == "active" { (*name).to_owned() } else { format!("{name} ({state})") }
                },
            )
            .chain(m.trouble.iter().map(|t| format!("! {}", reason(t))))
            .collect();
        table.push_record([
            m.machine.name.to_owned(),
            m.machine.rack.name().to_owned(),
            m.machine.role.name().to_owned(),
            m.up.map_or_else(|| "off".to_owned(), ago),
            m.memory.map_or_else(String::new, |b| format!("{} MiB", b >> 20)),
            services.join(", "),
        ]);
    }
    let mut table = table.build();
    table.with(Style::sharp());
    let mut text = format!("{table}\n");
    for (component, holder) in &status.leaders {
        let holder =
            holder.as_ref().map_or_else(|e| format!("not known: {}", reason(e)), |h| format!("held by {h}"));
        text.push_str(&format!("lease of {component}: {holder}\n"));
    }
    match &status.nodes {
        Ok(all) => {
            let all: Vec<String> = all
                .iter()
                .map(|(n, ready)| format!("{n} {}", if *ready { "ready" } else { "not ready" }))
                .collect();
            text.push_str(&format!(
                "nodes: {}\n",
                if all.is_empty() { "none".to_owned() } else { all.join(", ") }
            ));
        }
        Err(e) => text.push_str(&format!("nodes: not known: {}\n", reason(e))),
    }
    text.push_str(&format!("inventory: {}\n", status.inventory.display()));
    text
}

/// What a failed program said last: the lines before name its call, which is long and always the same.
fn reason(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default().trim_start().trim_start_matches("| ")
}

fn ago(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7199 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{MACHINES, MachineStatus};

    #[test]
    fn a_status_is_readable() {
        let mut machines: Vec<MachineStatus> = MACHINES
            .iter()
            .map(|m| MachineStatus {
                machine: *m,
                up: Some(Duration::from_secs(75)),
                memory: Some(123 << 20),
                services: vec![("kubelet", "active".to_owned())],
                trouble: None,
            })
            .collect();
        machines[0].services =
            vec![("kube-apiserver", "active".to_owned()), ("kube-scheduler", "activating".to_owned())];
        machines[0].trouble = Some(
            "`curl` ended with exit status: 22\n  | [-]etcd failed\n  | readyz check failed\n".to_owned(),
        );
        machines[4] = MachineStatus { up: None, memory: None, services: Vec::new(), ..machines[4].clone() };
        machines[5].up = Some(Duration::from_secs(7300));
        let status = Status {
            name: "lab".into(),
            inventory: "/var/lib/rackrift/lab/inventory.yaml".into(),
            machines,
            leaders: vec![
                ("kube-controller-manager", Ok("m1".to_owned())),
                ("kube-scheduler", Err("`kubectl` ended with exit status: 1\n  | no route".to_owned())),
            ],
            nodes: Ok(vec![("w1".into(), true), ("w2".into(), false)]),
        };
        insta::assert_snapshot!(shown(&status));
    }

    #[test]
    fn exit_codes() {
        assert_eq!(failure(LabError::NotRoot).exit, Exit::Usage);
        assert_eq!(failure(LabError::Down("lab".into())).exit, Exit::Nothing);
        assert_eq!(failure(LabError::Busy).exit, Exit::Harness);
        assert_eq!(failure(LabError::Left(vec![])).exit, Exit::Harness);
    }
}
