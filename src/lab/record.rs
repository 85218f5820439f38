//! What is remembered of a lab between two calls, what of this machine, and the lock that keeps calls apart.
//!
//! # Invariants
//! * What a lab changes of the whole machine (kernel settings, unreachable routes) is recorded before it is changed,
//!   once, by the first lab; the last lab to go puts it back. The record lies in `/run`, which a reboot empties as it
//!   undoes the changes.
//! * Records are complete or absent: written beside their place, then moved there.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::disk;
use super::error::{During as _, Failure, LabError};
use super::network;
use super::settings::Settings;
use super::site::Site;
use super::sysctl;

const RUN: &str = "/run/rackrift";

/// What is remembered of a lab, in its state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Boot id of the machine that it was made on: after a reboot nothing of it runs.
    pub boot: String,
    /// The settings in force.
    pub settings: Settings,
    /// Kubernetes' binaries.
    pub kubernetes: PathBuf,
    /// etcd's binaries.
    pub etcd: PathBuf,
    /// The shared tree below every machine.
    pub base: PathBuf,
}

/// Changes of the whole machine, and what was there before.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    /// Kernel settings: name with slashes → value.
    sysctls: BTreeMap<String, String>,
    /// The unreachable route was not there, IPv4.
    route: bool,
    /// The same, IPv6.
    route6: bool,
}

fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    if !std::fs::exists(path).unwrap_or(false) {
        return Ok(None);
    }
    let text = disk::read(path)?;
    serde_json::from_str(&text).map(Some).during(|| format!("reading {}", path.display()))
}

fn save(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).during(|| format!("writing {}", path.display()))?;
    let partial = path.with_extension("partial");
    disk::write(&partial, text + "\n", 0o644)?;
    disk::rename(&partial, path)
}

/// The file of a lab's record.
pub(super) fn file(site: &Site) -> PathBuf {
    site.state().join("lab.json")
}

impl Record {
    /// The record of a lab, if there is one.
    pub(super) fn load(site: &Site) -> Result<Option<Self>, Failure> {
        load(&file(site))
    }

    /// Writes it, and where it is.
    pub(super) fn save(&self, site: &Site) -> Result<(), Failure> {
        save(&file(site), self)?;
        save(&pointer(site.name()), &site.state())
    }

    /// How what is there differs from what is asked: one phrase, or none if it does not.
    pub(super) fn differences(&self, asked: &Self) -> Option<String> {
        let path = |name, is: &Path, asked: &Path| {
            (is != asked).then(|| format!("{name}: {}, asked: {}", is.display(), asked.display()))
        };
        let all = [
            self.settings.differences(&asked.settings),
            path("Kubernetes", &self.kubernetes, &asked.kubernetes),
            path("etcd", &self.etcd, &asked.etcd),
            path("tree", &self.base, &asked.base),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Names the state folder of a lab that is up.
fn pointer(name: &str) -> PathBuf {
    Path::new(RUN).join(format!("{name}.json"))
}

/// The state folder of the lab of that name, if it is up. One that cannot be read is as good as none: the usual
/// place is looked at then.
pub(super) fn known_state(name: &str) -> Option<PathBuf> {
    load(&pointer(name)).ok().flatten()
}

/// Forgets where a lab was.
pub(super) fn forget(site: &Site) -> Result<(), Failure> {
    disk::remove(&pointer(site.name()))
}

/// This boot of the machine.
pub(super) fn boot_id() -> Result<String, Failure> {
    Ok(disk::read(Path::new("/proc/sys/kernel/random/boot_id"))?.trim().to_owned())
}

/// Makes the machine fit for labs: its kernel's settings, and no way out for the labs' addresses.
pub(super) fn arrange() -> Result<(), Failure> {
    let path = before_file();
    if load::<Before>(&path)?.is_none() {
        let (route, route6) = network::open()?;
        save(&path, &Before { sysctls: sysctl::to_change()?, route, route6 })?;
    }
    network::close()?;
    sysctl::set()
}

/// Puts the machine back as it was, unless another lab is up.
pub(super) fn restore() -> Result<(), Failure> {
    if network::any_lab() {
        return Ok(());
    }
    let path = before_file();
    if let Some(before) = load::<Before>(&path)? {
        sysctl::restore(&before.sysctls)?;
        network::reopen(before.route, before.route6)?;
        disk::remove(&path)?;
    }
    Ok(())
}

fn before_file() -> PathBuf {
    Path::new(RUN).join("before.json")
}

/// Held while a lab is made or taken down. The kernel lets go of it when we end, however we end.
#[derive(Debug)]
pub(super) struct Lock(
    #[expect(dead_code, reason = "held, not read: the lock lives as long as the file is open")] File,
);

impl Lock {
    /// Takes it.
    pub(super) fn take() -> Result<Self, LabError> {
        disk::folder(Path::new(RUN))?;
        let path = Path::new(RUN).join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.during(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LabError::Busy),
            Err(TryLockError::Error(e)) => Err(Failure::new(format!("locking {}", path.display()), e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            boot: "b".into(),
            settings: Settings::default(),
            kubernetes: "/cache/kubernetes".into(),
            etcd: "/cache/etcd".into(),
            base: "/cache/base".into(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("lab.json");
        assert_eq!(load::<Record>(&path), Ok(None));
        save(&path, &record()).expect("written");
        assert_eq!(load(&path), Ok(Some(record())));
        std::fs::write(&path, "{").expect("written");
        assert!(load::<Record>(&path).is_err());
    }

    #[test]
    fn differences_name_settings_and_folders() {
        assert_eq!(record().differences(&record()), None);
        let asked = Record {
            kubernetes: "/opt/bin".into(),
            settings: Settings { single_homed: true, ..Settings::default() },
            ..record()
        };
        insta::assert_snapshot!(record().differences(&asked).unwrap_or_default());
    }
}
