//! `lab enter`: a shell or a command in a machine, past its network, so that it works while the network is cut.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::cgroup;
use super::error::{During as _, LabError};
use super::machine::{PATH, Place};
use super::network;
use super::record::Record;
use super::site::Site;
use super::topology::Machine;

/// The name by which one enters the lab's network namespace, where the controller sits.
const CONTROLLER: &str = "controller";

/// Becomes a shell (or `command`) in a machine of the lab, or in the controller's seat with `KUBECONFIG` and `kubectl`
/// at hand. Returns only if that failed.
///
/// # Errors
/// [`LabError`]: no such lab or machine, or the machine is off.
pub fn enter(site: &Site, host: &str, command: &[String]) -> Result<std::convert::Infallible, LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let machine = Machine::named(host);
    if machine.is_none() && host != CONTROLLER {
        return Err(LabError::NoMachine(host.to_owned()));
    }
    let record = Record::load(site)?.filter(|_| network::namespace_exists(site));
    let record = record.ok_or_else(|| LabError::Down(site.name().to_owned()))?;
    let shell: Vec<OsString> = match command {
        [] => vec!["bash".into(), "-l".into()],
        given => given.iter().map(OsString::from).collect(),
    };
    let mut enter = Command::new("nsenter");
    if let Some(machine) = machine {
        let off = || LabError::Off { name: site.name().to_owned(), machine: machine.name };
        let init = Place::new(site, machine).init().ok_or_else(off)?;
        // So that it ends with the machine, and does not keep its disk in use.
        cgroup::join(site, machine.name)?;
        enter
            .arg(format!("--target={}", init.pid))
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]);
        let terminal = std::env::var_os("TERM").unwrap_or_else(|| "dumb".into());
        enter.env_clear().env("TERM", terminal).env("HOME", "/root").env("PATH", PATH);
        enter.arg("--wd=/root");
    } else {
        enter.arg(format!("--net={}", site.namespace_path())).env("KUBECONFIG", site.kubeconfig());
        let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
        let folders = [record.kubernetes].into_iter().chain(std::env::split_paths(&path));
        enter.env("PATH", std::env::join_paths(folders).unwrap_or(path));
    }
    enter.arg("--").args(shell);
    Err(Err(enter.exec())
        .during(|| "entering".to_owned())
        .map_or_else(LabError::from, |never: std::convert::Infallible| match never {}))
}
