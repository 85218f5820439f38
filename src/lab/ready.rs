//! Waits until the lab's parts are ready, and takes the few steps that need a running cluster.
//!
//! # Invariants
//! * Every wait has a limit, ends at once when the machine is off or its service fails again and again, and its failure
//!   names what was waited for, the machine, the last answer and the last lines of the log that may say why.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::call::Call;
use super::disk;
use super::error::{During as _, Failure, LabError};
use super::machine::Place;
use super::progress::{Stage, Track};
use super::settings::Settings;
use super::site::Site;
use super::topology::{Machine, Rack, Role, balancer};

/// How long anything may take: eight machines boot on two cores that may have other work.
const LIMIT: Duration = Duration::from_secs(120);
/// So many restarts of a service, which wait two seconds each, are no start-up quarrel any more: kube-controller-manager
/// and kube-scheduler restart once or twice until their API server answers.
const RESTARTS: u32 = 8;
/// The group that kubeadm's admin.conf belongs to, and its binding, as kubeadm names both.
const ADMINS: &str = "kubeadm:cluster-admins";

/// The ways into a lab.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// The lab.
    pub site: Site,
    /// Its settings.
    pub settings: Settings,
    /// `kubectl`.
    pub kubectl: PathBuf,
    /// The folder of kubeconfigs that look at one server each.
    pub kubeconfigs: PathBuf,
    /// The machines.
    pub places: Vec<Place>,
}

impl Access {
    /// A kubeconfig that looks at one API server, or at the load balancer.
    pub(super) fn kubeconfig(&self, machine: Machine) -> PathBuf {
        self.kubeconfigs.join(format!("{}.conf", machine.name))
    }

    fn place(&self, name: &str) -> Result<&Place, Failure> {
        let found = self.places.iter().find(|p| p.machine.name == name);
        found.ok_or("no such machine").during(|| format!("looking for {name}"))
    }

    fn with_role(&self, role: Role) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |p| p.machine.role == role)
    }

    /// The controlling half of rack a, whose components are the first to lead.
    fn first(&self) -> Result<&Place, Failure> {
        self.with_role(Role::ControlPlane)
            .find(|p| p.machine.rack == Rack::A)
            .ok_or("no master in rack a")
            .during(|| "looking for the first master".to_owned())
    }

    /// Runs kubectl against a server, from the controller's seat.
    pub(super) fn kubectl(&self, server: Machine, args: &[&str]) -> Result<String, String> {
        let config = self.kubeconfig(server).display().to_string();
        let all = ["--kubeconfig", &config, "--request-timeout=5s"].into_iter().chain(args.iter().copied());
        Call::inside(&self.site, &self.kubectl, all)
            .limit(Duration::from_secs(15))
            .run()
            .map_err(|e| e.to_string())
    }

    /// The line of known_hosts for a machine.
    pub(super) fn known_host(&self, place: &Place) -> Result<String, Failure> {
        Ok(format!("{} {}\n", place.machine.seat(self.settings.single_homed), place.host_key()?))
    }

    /// Waits until a machine lets the controller in, with the host key that it was given.
    pub(super) fn wait_for_ssh(&self, place: &Place) -> Result<(), Failure> {
        let known = place.folder.join("known_hosts");
        disk::write(&known, self.known_host(place)?, 0o644)?;
        let key = self.site.state().join("id_ed25519");
        let options = [
            "BatchMode=yes".to_owned(),
            "ConnectTimeout=2".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            format!("UserKnownHostsFile={}", known.display()),
        ];
        let user = format!("root@{}", place.machine.seat(self.settings.single_homed));
        let mut args = vec!["-F".to_owned(), "none".to_owned(), "-i".to_owned(), key.display().to_string()];
        args.extend(options.into_iter().flat_map(|o| ["-o".to_owned(), o]));
        args.extend([user, "true".to_owned()]);
        let ssh = || {
            let call = Call::inside(&self.site, "ssh", &args).limit(Duration::from_secs(5));
            call.run().map(drop).map_err(|e| e.to_string())
        };
        wait(place, "waiting for sshd", Some("ssh"), LIMIT, ssh)
    }
}

/// Repeats `probe` until it succeeds.
fn wait<T>(
    place: &Place,
    step: &str,
    unit: Option<&str>,
    limit: Duration,
    mut probe: impl FnMut() -> Result<T, String>,
) -> Result<T, Failure> {
    let start = Instant::now();
    let mut looked = start;
    let mut pause = Duration::from_millis(50);
    loop {
        let said = match probe() {
            Ok(value) => return Ok(value),
            Err(said) => said,
        };
        let fail = |cause: String, unit| {
            let (source, lines) = place.last_lines(unit);
            Err(Failure::new(step, cause).on(place.machine.name).with_log(source, lines))
        };
        if !place.runs() {
            return fail("the machine went off".to_owned(), None);
        }
        if start.elapsed() > limit {
            return fail(format!("not within {} s; the last answer: {said}", limit.as_secs()), unit);
        }
        if let Some(unit) = unit.filter(|_| looked.elapsed() > Duration::from_secs(3)) {
            looked = Instant::now();
            let restarts = restarts(place, unit);
            if restarts >= RESTARTS {
                return fail(format!("{unit} failed and was started again {restarts} times"), Some(unit));
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(300));
    }
}

/// How often systemd has started a service again. One that cannot be asked has not restarted as far as we know.
fn restarts(place: &Place, unit: &str) -> u32 {
    let asked = place.inside("systemctl", &["show", "-p", "NRestarts", "--value", unit]);
    asked.ok().and_then(|c| c.run().ok()).and_then(|t| t.trim().parse().ok()).unwrap_or(0)
}

/// What a URL of the machine itself answers.
pub(super) fn ask(place: &Place, url: &str) -> Result<String, String> {
    let args = ["-ksS", "--fail-with-body", "--max-time", "3", url];
    let call = place.inside("curl", &args).map_err(|f| f.cause)?;
    call.limit(Duration::from_secs(5)).run().map_err(|e| e.to_string())
}

/// etcd's own answer whether it is healthy: it has a leader and can write.
pub(super) const ETCD_HEALTH: &str = "http://127.0.0.1:2381/health";
/// An API server's own answer whether it is ready.
pub(super) const API_READY: &str = "https://127.0.0.1:6443/readyz";

/// etcd is healthy on all three, both API servers are ready, and the load balancer leads to one.
pub(super) fn control_plane(access: &Access, track: &Track<'_>) -> Result<(), LabError> {
    for place in access.with_role(Role::Etcd) {
        wait(place, "waiting for etcd", Some("etcd"), LIMIT, || ask(place, ETCD_HEALTH))?;
        track.note(Stage::ControlPlane, Some(place.machine.name), "etcd is healthy");
    }
    for place in access.with_role(Role::ControlPlane) {
        wait(place, "waiting for kube-apiserver", Some("kube-apiserver"), LIMIT, || ask(place, API_READY))?;
        track.note(Stage::ControlPlane, Some(place.machine.name), "kube-apiserver is ready");
    }
    let place = access.place(balancer().name)?;
    wait(place, "waiting for haproxy", Some("haproxy"), LIMIT, || {
        access.kubectl(place.machine, &["get", "--raw", "/readyz"])
    })?;
    track.note(Stage::ControlPlane, Some(place.machine.name), "haproxy leads to the API servers");
    Ok(())
}

/// Administrators have their rights, the first master's components lead, the second one's stand by, both nodes are
/// ready, and pods can be made.
pub(super) fn cluster(access: &Access, track: &Track<'_>) -> Result<(), LabError> {
    let first = access.first()?;
    let api = first.machine;
    wait(first, "giving administrators their rights", Some("kube-apiserver"), LIMIT, || {
        let binding = format!("clusterrolebinding/{ADMINS}");
        if access.kubectl(api, &["get", &binding]).is_ok() {
            return Ok(());
        }
        let group = format!("--group={ADMINS}");
        let args = ["create", "clusterrolebinding", ADMINS, "--clusterrole=cluster-admin", &group];
        access.kubectl(api, &args).map(drop)
    })?;
    for component in ELECTED {
        let step = format!("waiting for {component} to lead");
        let holder = wait(first, &step, Some(component), LIMIT, || holder(access, api, component))?;
        track.note(
            Stage::Cluster,
            Some(first.machine.name),
            format!("{component}'s lease is held by {holder}"),
        );
    }
    for place in access.with_role(Role::ControlPlane).filter(|p| p.machine != api) {
        let args = ["enable", "--now", "--quiet", ELECTED[0], ELECTED[1]];
        let started = place.inside("systemctl", &args)?.run();
        started.during(|| "starting the components that stand by".to_owned()).map_err(|f| {
            let (source, lines) = place.last_lines(Some(ELECTED[0]));
            f.on(place.machine.name).with_log(source, lines)
        })?;
        track.note(Stage::Cluster, Some(place.machine.name), "its components stand by");
    }
    for place in access.with_role(Role::Worker) {
        let name = place.machine.name;
        wait(place, "waiting for the node to be ready", Some("kubelet"), LIMIT, || {
            match nodes(access, api)?.into_iter().find(|(n, _)| n == name) {
                Some((_, true)) => Ok(()),
                Some((_, false)) => Err("the node is not ready".to_owned()),
                None => Err("kubelet has not registered the node".to_owned()),
            }
        })?;
        track.note(Stage::Cluster, Some(name), "the node is ready");
    }
    // Without it no pod is admitted to the namespace.
    wait(first, "waiting for the default service account", Some(ELECTED[0]), LIMIT, || {
        access.kubectl(api, &["get", "serviceaccount", "default", "--namespace=default"])
    })?;
    Ok(())
}

/// The components that elect a leader.
pub(super) const ELECTED: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// Who holds a component's lease, as one server says: the host's name.
pub(super) fn holder(access: &Access, server: Machine, component: &str) -> Result<String, String> {
    let path = "jsonpath={.spec.holderIdentity}";
    let text = access.kubectl(server, &["get", "lease", component, "--namespace=kube-system", "-o", path])?;
    // A holder is named by its host, an underscore and a random part.
    let host = text.split('_').next().unwrap_or_default().to_owned();
    if host.is_empty() { Err("nobody holds the lease".to_owned()) } else { Ok(host) }
}

/// The nodes, and whether each is ready, as one server says.
pub(super) fn nodes(access: &Access, server: Machine) -> Result<Vec<(String, bool)>, String> {
    let path = "jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}";
    let text = access.kubectl(server, &["get", "nodes", "-o", path])?;
    let pair = |line: &str| {
        let (name, ready) = line.split_once(' ')?;
        Some((name.to_owned(), ready == "True"))
    };
    Ok(text.lines().filter_map(pair).collect())
}
