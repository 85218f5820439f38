//! One kept-open `kubectl proxy` for each API server, on a Unix socket in a folder that only we can enter.
//!
//! # Invariants
//! * Each proxy talks to one API server, named in the inventory: no load balancer hides who answered.
//! * A proxy that dies is started again, at most every [`PAUSE`]; both are told to the history.
//! * A proxy never outlives us, even if we are killed by SIGKILL: a small shell stands between, which ends it when
//!   our end of its standard input closes.
//!
//! A kept-open proxy, not one kubectl a call, because starting kubectl costs 70 ms of CPU: it would measure itself.
//! A shell that watches a pipe, not a parent-death signal, because that signal goes with the *thread* that forked.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Answer, Client, Kubectl, KubectlError, Request};
use crate::run::recorder::Recorder;

/// Least time between two starts of one proxy.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a proxy may take to listen.
const START: Duration = Duration::from_secs(10);

/// Runs its arguments; ends them when standard input closes, and itself when they end. `read` is a builtin, so
/// that no third process is left waiting on the pipe. Whoever is killed removes no folder: the guard does, the
/// last of them; before it ends the proxy, for its own end follows.
const GUARD: &str = r#"exec 3<&0
"$@" 3<&- </dev/null & p=$!
{ read -r _ <&3; rm -f "$SOCKET"; rmdir "${SOCKET%/*}"; kill "$p"; } >/dev/null 2>&1 & w=$!
exec 3<&-
wait "$p"; s=$?
kill "$w" 2>/dev/null
exit "$s""#;

/// Why the proxies could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The inventory names no API server.
    #[error(
        "the inventory names no API server; list them under kubernetes.apiServers, by control-plane host"
    )]
    NoServers,
    /// The folder for the sockets could not be made.
    #[error("cannot make a folder for the sockets of kubectl proxy: {0}")]
    Folder(std::io::Error),
    /// kubectl cannot be started.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// A proxy did not begin to listen.
    #[error("kubectl proxy for the API server {url} of {host} does not listen: {reason}")]
    Silent {
        /// The control-plane host.
        host: String,
        /// Its API server.
        url: String,
        /// What it said last.
        reason: String,
    },
}

/// An API server, reached through its own proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer {
    /// The control-plane host it runs on.
    pub host: String,
    /// Its URL as the controller reaches it.
    pub url: String,
    socket: PathBuf,
}

impl ApiServer {
    /// One that listens at `socket`, for tests.
    #[cfg(test)]
    pub(crate) fn at(host: &str, socket: &Path) -> Self {
        Self { host: host.to_owned(), url: "https://test".to_owned(), socket: socket.to_owned() }
    }

    /// A new client of it, with a connection of its own.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    /// GETs `path` and returns the JSON of a 200, on a connection of its own.
    ///
    /// # Errors
    /// A sentence that names the API server and what it answered.
    pub async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
    ) -> Result<T, String> {
        let answer = self.client().send(&Request::get(path), limit).await;
        decoded(&answer).map_err(|e| format!("API server {} ({}), {path}: {e}", self.host, self.url))
    }
}

/// The JSON of a 200.
///
/// # Errors
/// What came instead, in a few words.
pub fn decoded<T: serde::de::DeserializeOwned>(answer: &Answer) -> Result<T, String> {
    match answer {
        Answer::Came { status: 200, body } => {
            serde_json::from_slice(body).map_err(|e| format!("not the JSON that was asked for: {e}"))
        }
        other => Err(super::errors::classify(super::Effect::Read, other).text()),
    }
}

/// The proxies of a lab. Dropping this ends them.
#[derive(Debug)]
pub struct Proxies {
    servers: Vec<ApiServer>,
    stop: CancellationToken,
    keepers: Vec<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Proxies {
    /// Starts one proxy for each `host → URL` and waits until all listen. (That the API server answers is not
    /// asked: it may be what the run is about.)
    ///
    /// # Errors
    /// If kubectl cannot start or a proxy does not listen; none is left running then.
    pub async fn start<'a>(
        kubectl: &Kubectl,
        servers: impl IntoIterator<Item = (&'a String, &'a String)>,
        recorder: &Recorder,
    ) -> Result<Self, ProxyError> {
        let folder = folder().map_err(ProxyError::Folder)?;
        let servers: Vec<ApiServer> = servers
            .into_iter()
            .enumerate()
            .map(|(i, (host, url))| ApiServer {
                host: host.clone(),
                url: url.clone(),
                // Numbered, not named: a socket's path is at most 107 bytes long.
                socket: folder.path().join(format!("{i}.sock")),
            })
            .collect();
        if servers.is_empty() {
            return Err(ProxyError::NoServers);
        }
        let mut proxies =
            Self { servers, stop: CancellationToken::new(), keepers: Vec::new(), _folder: folder };
        for server in proxies.servers.clone() {
            let kubectl = kubectl.on(&server.url);
            let first = listen(&kubectl, &server).await?;
            let keeper = Keeper { kubectl, server, recorder: recorder.clone(), stop: proxies.stop.clone() };
            proxies.keepers.push(tokio::spawn(keeper.keep(first)));
        }
        Ok(proxies)
    }

    /// The API servers, in the order of their hosts' names.
    #[must_use]
    pub fn servers(&self) -> &[ApiServer] {
        &self.servers
    }

    /// Ends all proxies.
    pub async fn stop(mut self) {
        self.stop.cancel();
        for keeper in self.keepers.drain(..) {
            // A keeper ends at once when cancelled; its child dies with its standard input.
            let _ = timeout(Duration::from_secs(5), keeper).await;
        }
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Keeper {
    kubectl: Kubectl,
    server: ApiServer,
    recorder: Recorder,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(self, mut running: Running) {
        let host = self.server.host.clone();
        loop {
            let ended = tokio::select! {
                () = self.stop.cancelled() => return running.end().await,
                why = running.ended() => why,
            };
            self.recorder
                .note(format!("kubectl proxy for API server {host} ended ({ended}); starting it again"));
            running = loop {
                let started = tokio::select! {
                    () = self.stop.cancelled() => return,
                    started = async { sleep(PAUSE).await; listen(&self.kubectl, &self.server).await } => started,
                };
                if let Ok(running) = started {
                    break running;
                }
            };
            self.recorder.note(format!("kubectl proxy for API server {host} listens again"));
        }
    }
}

/// A proxy behind its guard.
struct Running {
    guard: Child,
    // Held here: `Child::wait` would close it, and the guard would take that for our end.
    leash: Option<ChildStdin>,
    said: JoinHandle<String>,
}

impl Running {
    /// Waits for its end, and says why.
    async fn ended(&mut self) -> String {
        let status = self.guard.wait().await;
        let said = (&mut self.said).await.unwrap_or_default();
        match status {
            Ok(status) if said.is_empty() => status.to_string(),
            Ok(status) => format!("{status}: {said}"),
            Err(e) => e.to_string(),
        }
    }

    /// Ends it, and waits for that a little.
    async fn end(mut self) {
        drop(self.leash.take());
        let _ = timeout(Duration::from_secs(2), self.guard.wait()).await;
    }
}

/// A folder that only we can enter: nobody else is to use an administrator's proxy.
fn folder() -> std::io::Result<tempfile::TempDir> {
    let ours = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("rackrift-proxy-").permissions(ours).tempdir()
}

/// Starts a proxy and waits until its socket takes connections.
async fn listen(kubectl: &Kubectl, server: &ApiServer) -> Result<Running, ProxyError> {
    remove_socket(&server.socket);
    let mut command = kubectl.command("/bin/sh");
    command.args(["-c", GUARD, "kubectl-proxy"]).args(kubectl.pinned());
    command.arg("proxy").arg(format!("--unix-socket={}", server.socket.display()));
    command.env("SOCKET", &server.socket);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut guard = command
        .spawn()
        .map_err(|e| KubectlError::Missing { program: PathBuf::from("/bin/sh"), reason: e.to_string() })?;
    let said = tokio::spawn(last_line(guard.stderr.take()));
    let mut running = Running { leash: guard.stdin.take(), guard, said };
    let silent = |reason| ProxyError::Silent { host: server.host.clone(), url: server.url.clone(), reason };
    let up = async {
        while UnixStream::connect(&server.socket).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = up => Ok(running),
        why = running.ended() => Err(silent(why)),
        () = sleep(START) => Err(silent(format!("nothing after {} s", START.as_secs()))),
    }
}

/// kubectl proxy refuses to listen on a socket file that a killed one left behind.
fn remove_socket(path: &Path) {
    // Absent is what we want; any other error comes back when kubectl cannot listen.
    let _ = std::fs::remove_file(path);
}

/// Reads to the end and keeps the last line.
async fn last_line(pipe: Option<tokio::process::ChildStderr>) -> String {
    let mut last = String::new();
    if let Some(pipe) = pipe {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if !line.trim().is_empty() {
                last = line;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::process::Command;

    /// A guard over a process that sleeps, as if it were a proxy with that socket.
    fn guard(socket: &Path, seconds: &str) -> Child {
        std::fs::write(socket, "").unwrap();
        Command::new("/bin/sh")
            .args([
                "-c",
                GUARD,
                "guard",
                "/bin/sh",
                "-c",
                r#"echo $$ >"$SOCKET.pid"; exec sleep "$0""#,
                seconds,
            ])
            .env("SOCKET", socket)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    }

    async fn pid_in(file: PathBuf) -> String {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => {
                    std::fs::remove_file(&file).unwrap();
                    return text.trim().to_owned();
                }
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    }

    #[tokio::test]
    async fn when_we_are_gone_so_are_proxies_sockets_and_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sockets");
        std::fs::create_dir(&folder).unwrap();
        let (one, two) = (folder.join("0.sock"), folder.join("1.sock"));
        let mut guards = [guard(&one, "1000"), guard(&two, "1000")];
        let pids = [pid_in(folder.join("0.sock.pid")).await, pid_in(folder.join("1.sock.pid")).await];
        drop(guards[0].stdin.take());
        guards[0].wait().await.unwrap();
        assert!(!one.exists() && two.exists(), "the other proxy goes on");
        assert!(!Path::new("/proc").join(&pids[0]).exists());
        drop(guards[1].stdin.take());
        guards[1].wait().await.unwrap();
        assert!(!folder.exists());
        assert!(!Path::new("/proc").join(&pids[1]).exists());
    }

    #[test]
    fn nobody_else_can_enter_the_folder_of_the_sockets() {
        let mode = std::fs::metadata(folder().unwrap().path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[tokio::test]
    async fn a_proxy_that_ends_by_itself_leaves_the_folder_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("0.sock");
        let mut guard = guard(&socket, "0");
        let leash = guard.stdin.take();
        guard.wait().await.unwrap();
        drop(leash);
        assert!(socket.exists(), "its socket file is removed by the next start");
    }
}
