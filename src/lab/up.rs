//! `lab up`: the steps, in order, each of which may be repeated.

use std::path::PathBuf;
use std::time::Duration;

use super::call::Call;
use super::components::{self, Components};
use super::down;
use super::error::{During as _, Failure, LabError};
use super::machine::{Parts, Place};
use super::pki::{Pki, server, servers};
use super::prerequisites::{self, Package};
use super::progress::{Progress, Stage, Track};
use super::ready::{self, Access};
use super::record::{self, Lock, Record};
use super::settings::Settings;
use super::site::Site;
use super::topology::{MACHINES, balancer};
use super::{base, disk, image, inventory_file, network};

/// Where binaries and the shared tree are kept between labs, if nothing else is said.
pub const CACHE: &str = "/var/cache/rackrift";

/// What is asked of [`up`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which lab.
    pub site: Site,
    /// Where binaries and the shared tree are kept between labs.
    pub cache: PathBuf,
    /// A folder with the Kubernetes and etcd binaries, instead of building them.
    pub components: Option<PathBuf>,
    /// What may differ from one lab to another.
    pub settings: Settings,
}

/// A lab that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Up {
    /// Its inventory.
    pub inventory: PathBuf,
    /// How long each stage took.
    pub took: Vec<(Stage, Duration)>,
}

/// What has to be installed on this machine before [`up`] can work.
#[must_use]
pub fn missing(options: &Options) -> Vec<Package> {
    prerequisites::missing_prerequisites(
        options.components.is_none() && components::must_build(&options.cache),
    )
}

/// Brings a lab up: makes what is missing, starts what does not run, and waits until the cluster is ready.
///
/// # Errors
/// [`LabError`]: what cannot be done here, or the step and machine that failed, with the last lines of its log. What was
/// made stays; a further call goes on from there, [`down()`](super::down()) removes it.
pub fn up(options: &Options, sink: &dyn Progress) -> Result<Up, LabError> {
    let Options { site, settings, .. } = options;
    // Other programs get it as a path, and work elsewhere.
    let cache = &std::path::absolute(&options.cache).unwrap_or_else(|_| options.cache.clone());
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let missing = missing(options);
    if !missing.is_empty() {
        return Err(LabError::Missing(missing));
    }
    let given = options.components.as_deref().map(components::given).transpose()?;
    let _lock = Lock::take()?;
    disk::folder(site.state())?;
    let kind = disk::file_system(site.state())?;
    if disk::UNFIT.contains(&kind.as_str()) {
        return Err(LabError::Filesystem { path: site.state().to_owned(), kind });
    }
    disk::folder(cache)?;

    let mut plan = Vec::new();
    if given.is_none() && components::must_build(cache) {
        plan.push(Stage::Components);
    }
    if !base::folder(cache).is_dir() {
        plan.push(Stage::Base);
    }
    plan.extend([Stage::Foundation, Stage::Machines, Stage::ControlPlane, Stage::Cluster]);
    let track = Track::new(sink, cache.join("durations.json"), plan.clone());

    let components = match given {
        Some(components) => components,
        None => components::build(cache, &track)?,
    };
    if plan.contains(&Stage::Components) {
        track.done(Stage::Components);
    }
    let base = base::make(cache, &track)?;
    if plan.contains(&Stage::Base) {
        track.done(Stage::Base);
    }

    let asked = Record {
        boot: record::boot_id()?,
        settings: settings.clone(),
        kubernetes: components.kubernetes.clone(),
        etcd: components.etcd.clone(),
        base,
    };
    agree(site, &asked, &track)?;
    let lab = foundation(site, &asked, &components, &track)?;
    track.done(Stage::Foundation);
    lab.machines(&track)?;
    track.done(Stage::Machines);

    ready::control_plane(&lab.access, &track)?;
    track.done(Stage::ControlPlane);
    ready::cluster(&lab.access, &track)?;
    lab.describe()?;
    track.done(Stage::Cluster);
    track.remember();
    Ok(Up { inventory: site.inventory(), took: track.took() })
}

/// Comes to terms with what is there: the same lab is gone on with, another is refused, remains are removed.
fn agree(site: &Site, asked: &Record, track: &Track<'_>) -> Result<(), LabError> {
    if let Some(state) = record::known_state(site.name())
        && state != site.state()
        && network::namespace_exists(site)
    {
        return Err(LabError::Elsewhere { name: site.name().to_owned(), state });
    }
    let fresh = match Record::load(site) {
        Ok(Some(record)) if record.boot == asked.boot => {
            return match record.differences(asked) {
                Some(what) => Err(LabError::Differs { name: site.name().to_owned(), what }),
                None => Ok(()),
            };
        }
        Ok(None) => down::remains(site).is_empty(),
        // Made before this machine's last boot, or not readable: nothing of it can be gone on with.
        Ok(Some(_)) | Err(_) => false,
    };
    if !fresh {
        track.note(Stage::Foundation, None, "removing what is left of an earlier lab");
        down::remove(site)?;
    }
    Ok(())
}

/// What the later stages work with.
struct Made<'a> {
    access: Access,
    base: PathBuf,
    components: &'a Components,
    pki: Pki,
    key: String,
    image: Vec<u8>,
}

/// Everything that is not a machine.
fn foundation<'a>(
    site: &Site,
    record: &Record,
    components: &'a Components,
    track: &Track<'_>,
) -> Result<Made<'a>, LabError> {
    track.note(Stage::Foundation, None, "network namespace, bridges, certificates, keys");
    let single = record.settings.single_homed;
    record::arrange()?;
    record.save(site)?;
    network::make(site, single)?;
    let pki = Pki {
        program: components.kubernetes.join("kubeadm"),
        version: components.version()?,
        folder: site.state().join("pki"),
    };
    pki.make()?;
    pki.kubeconfig("admin", &server(balancer(), single), &site.kubeconfig())?;
    let key = site.state().join("id_ed25519");
    if !key.is_file() {
        let name = key.display().to_string();
        Call::new("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "rackrift", "-f", &name])
            .run()
            .during(|| "making the controller's key".to_owned())?;
    }
    let key = disk::read(&key.with_extension("pub"))?;
    let places: Vec<Place> = MACHINES.into_iter().map(|m| Place::new(site, m)).collect();
    let kubeconfigs = site.state().join("kubeconfigs");
    let access = Access {
        site: site.clone(),
        settings: record.settings.clone(),
        kubectl: components.kubernetes.join("kubectl"),
        kubeconfigs: kubeconfigs.clone(),
        places,
    };
    for machine in servers() {
        let to = access.kubeconfig(machine);
        // Before the first API server has bound the administrators' group, only this user has rights.
        pki.kubeconfig("super-admin", &server(machine, single), &to)?;
    }
    Ok(Made { access, base: record.base.clone(), components, pki, key, image: pod_image()? })
}

/// The image of the pods, of this machine's busybox.
fn pod_image() -> Result<Vec<u8>, Failure> {
    let step = || "making the image of the pods".to_owned();
    let path = prerequisites::find("busybox").ok_or("no busybox in PATH").during(step)?;
    let bytes = std::fs::read(&path).during(step)?;
    // A program that needs a loader names it near its beginning.
    let head = &bytes[..bytes.len().min(4096)];
    if head.windows(4).any(|w| w == b"/ld-") {
        let cause = format!("{} is not static; install: apt-get install busybox-static", path.display());
        return Err(Failure::new(step(), cause));
    }
    Ok(image::archive(&bytes))
}

impl Made<'_> {
    /// Makes and starts all machines, until each lets the controller in.
    fn machines(&self, track: &Track<'_>) -> Result<(), LabError> {
        let parts = Parts {
            base: &self.base,
            kubernetes: &self.components.kubernetes,
            etcd: &self.components.etcd,
            key: &self.key,
            image: &self.image,
            pki: &self.pki,
            settings: &self.access.settings,
        };
        let one = |place: &Place| -> Result<(), Failure> {
            let name = place.machine.name;
            if !place.runs() {
                // A life that ended badly leaves mounts, links and processes in the way of the next.
                place.kill()?;
                place.prepare(&parts)?;
                track.note(Stage::Machines, Some(name), "boots");
                place.start(&parts)?;
            }
            self.access.wait_for_ssh(place)?;
            track.note(Stage::Machines, Some(name), "lets the controller in");
            Ok(())
        };
        let mut failures = each(&self.access.places, one);
        match failures.is_empty() {
            true => Ok(()),
            false => Err(failures.swap_remove(0).into()),
        }
    }

    /// Writes what the controller reads: host keys and the inventory.
    fn describe(&self) -> Result<(), Failure> {
        let Access { site, settings, kubectl, places, .. } = &self.access;
        let mut known = String::new();
        for place in places {
            known.push_str(&self.access.known_host(place)?);
        }
        disk::write(&site.state().join("known_hosts"), known, 0o644)?;
        let text = inventory_file::text(site, settings, kubectl, network::has_ipv6());
        disk::write(&site.inventory(), text, 0o644)
    }
}

/// Does the same on all machines at once; returns the failures, each with its machine's name.
pub(super) fn each(places: &[Place], act: impl Fn(&Place) -> Result<(), Failure> + Sync) -> Vec<Failure> {
    let act = &act;
    std::thread::scope(|scope| {
        let threads: Vec<_> = places.iter().map(|p| scope.spawn(move || act(p))).collect();
        let ended = threads.into_iter().zip(places);
        let results = ended.map(|(t, p)| {
            let result =
                t.join().unwrap_or_else(|_| Err(Failure::new("working on it", "a bug: it panicked")));
            result.map_err(|f| f.on(p.machine.name))
        });
        results.filter_map(Result::err).collect()
    })
}
