//! Runs `kubectl`, one process a call.
//!
//! # Invariants
//! * kubeconfig, API server and request timeout are always given: nothing depends on `~/.kube` or on a variable
//!   of the caller, and no load balancer hides which API server answered.
//! * A call that does not end within its limit is killed and says so; output over the cap is dropped, not kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::inventory::Inventory;

/// How much of each of stdout and stderr is kept, bytes.
const CAP: u64 = 16 << 20;

/// Why a call of kubectl did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// There is no such program.
    #[error(
        "cannot start {program}: {reason}; install kubectl, or name it in the inventory under kubernetes.kubectl"
    )]
    Missing {
        /// The program.
        program: PathBuf,
        /// The system's word.
        reason: String,
    },
    /// The folder for its cache could not be made.
    #[error("cannot make a folder for kubectl's cache: {0}")]
    Cache(std::io::Error),
    /// It did not end in time and was killed: what it asked for may have happened.
    #[error("kubectl {call} did not end within {} s and was killed; does the API server {server} answer?", after.as_secs())]
    TimedOut {
        /// Its arguments.
        call: String,
        /// The API server.
        server: String,
        /// The limit that passed.
        after: Duration,
    },
    /// It ended with an error.
    #[error("kubectl {call} (API server {server}) ended with status {status}: {message}")]
    Failed {
        /// Its arguments.
        call: String,
        /// The API server.
        server: String,
        /// Its exit status; -1 if a signal killed it.
        status: i32,
        /// The end of what it wrote to standard error.
        message: String,
    },
}

/// kubectl with a pinned kubeconfig and, if given, a pinned API server.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    server: Option<String>,
    cache: Arc<tempfile::TempDir>,
}

impl Kubectl {
    /// The kubectl of an inventory, with its administrator's kubeconfig and that file's API server.
    ///
    /// # Errors
    /// If no folder for its cache can be made.
    pub fn new(inventory: &Inventory) -> Result<Self, KubectlError> {
        let k = &inventory.kubernetes;
        let program = k.kubectl.clone().unwrap_or_else(|| PathBuf::from("kubectl"));
        Self::with(&program, &k.kubeconfig)
    }

    /// That program with that kubeconfig.
    ///
    /// # Errors
    /// If no folder for its cache can be made.
    pub fn with(program: &Path, kubeconfig: &Path) -> Result<Self, KubectlError> {
        let cache =
            tempfile::Builder::new().prefix("rackrift-kubectl-").tempdir().map_err(KubectlError::Cache)?;
        Ok(Self {
            program: program.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            server: None,
            cache: Arc::new(cache),
        })
    }

    /// The same against one API server.
    #[must_use]
    pub fn on(&self, url: &str) -> Self {
        Self { server: Some(url.to_owned()), ..self.clone() }
    }

    /// The program and the arguments that pin it, for a call that the caller runs.
    pub(crate) fn pinned(&self) -> Vec<OsString> {
        let mut words = vec![self.program.clone().into_os_string(), "--kubeconfig".into()];
        words.push(self.kubeconfig.clone().into_os_string());
        if let Some(url) = &self.server {
            words.push(format!("--server={url}").into());
        }
        words
    }

    /// A command with the environment that every kubectl of ours gets: no proxy and no configuration of the
    /// caller's, and a cache folder that goes with us.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("KUBECACHEDIR", self.cache.path()).env("LC_ALL", "C");
        for keep in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(keep) {
                command.env(keep, value);
            }
        }
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `kubectl ARGS` with `input` on its standard input, and returns its standard output.
    ///
    /// # Errors
    /// If it cannot start, does not end within `limit`, or ends with another status than 0.
    pub async fn run(
        &self,
        args: &[&str],
        input: Option<&str>,
        limit: Duration,
    ) -> Result<String, KubectlError> {
        let pinned = self.pinned();
        let mut command = self.command(&pinned[0]);
        command.args(&pinned[1..]).arg(format!("--request-timeout={}s", limit.as_secs().max(1))).args(args);
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command
            .spawn()
            .map_err(|e| KubectlError::Missing { program: self.program.clone(), reason: e.to_string() })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let (Some(mut pipe), Some(text)) = (stdin, input) {
                // kubectl that ends early closes the pipe; its status tells why.
                let _ = pipe.write_all(text.as_bytes()).await;
            }
        };
        let whole = async {
            let ((), out, err) = tokio::join!(feed, capped(stdout), capped(stderr));
            (child.wait().await, out, err)
        };
        let (status, out, err) = tokio::time::timeout(limit, whole).await.map_err(|_| {
            KubectlError::TimedOut { call: args.join(" "), server: self.server_name(), after: limit }
        })?;
        let status = status.ok().and_then(|s| s.code()).unwrap_or(-1);
        if status == 0 {
            return Ok(out);
        }
        Err(KubectlError::Failed {
            call: args.join(" "),
            server: self.server_name(),
            status,
            message: last_lines(&err, 3),
        })
    }

    fn server_name(&self) -> String {
        self.server.clone().unwrap_or_else(|| format!("of {}", self.kubeconfig.display()))
    }
}

/// Reads to the end, keeps at most [`CAP`] bytes.
async fn capped(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut kept = Vec::new();
    // A read error ends the text; the exit status decides whether the call succeeded.
    if (&mut pipe).take(CAP).read_to_end(&mut kept).await.is_ok() {
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    lines[lines.len().saturating_sub(n)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A stand-in for kubectl: a script that shows what it was given.
    fn stand_in(dir: &Path, body: &str) -> Kubectl {
        let program = dir.join("kubectl");
        std::fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Kubectl::with(&program, Path::new("/etc/admin.conf")).unwrap()
    }

    #[tokio::test]
    async fn every_call_is_pinned_and_gets_no_configuration_of_the_caller() {
        let dir = tempfile::tempdir().unwrap();
        let k = stand_in(dir.path(), r#"echo "$@"; cat; env | sed 's/=.*//'"#);
        let out = k
            .on("https://198.18.0.11:6443")
            .run(&["get", "nodes"], Some("fed\n"), Duration::from_secs(7))
            .await
            .unwrap();
        let mut lines = out.lines();
        assert_eq!(
            lines.next(),
            Some(
                "--kubeconfig /etc/admin.conf --server=https://198.18.0.11:6443 --request-timeout=7s get nodes"
            )
        );
        assert_eq!(lines.next(), Some("fed"));
        let known = ["PATH", "HOME", "TMPDIR", "LC_ALL", "KUBECACHEDIR", "PWD", "OLDPWD", "SHLVL", "_"];
        let foreign: Vec<&str> = lines.filter(|name| !known.contains(name)).collect();
        assert_eq!(foreign, Vec::<&str>::new());
    }

    #[tokio::test]
    async fn a_call_without_an_end_is_killed_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let k = stand_in(dir.path(), "exec sleep 60");
        let e = k.run(&["get", "nodes"], None, Duration::from_millis(300)).await.unwrap_err();
        assert!(matches!(e, KubectlError::TimedOut { .. }), "{e}");
    }

    #[tokio::test]
    async fn a_failure_shows_the_end_of_standard_error() {
        let dir = tempfile::tempdir().unwrap();
        let k = stand_in(dir.path(), "echo noise >&2; echo 'error: no such thing' >&2; exit 3");
        let e = k.run(&["get", "x"], None, Duration::from_secs(5)).await.unwrap_err();
        insta::assert_snapshot!(e, @"kubectl get x (API server of /etc/admin.conf) ended with status 3: noise; error: no such thing");
    }

    #[tokio::test]
    async fn a_missing_program_says_what_to_do() {
        let k = Kubectl::with(Path::new("/nowhere/kubectl"), Path::new("/etc/admin.conf")).unwrap();
        let e = k.run(&["version"], None, Duration::from_secs(5)).await.unwrap_err();
        insta::assert_snapshot!(e, @"cannot start /nowhere/kubectl: No such file or directory (os error 2); install kubectl, or name it in the inventory under kubernetes.kubectl");
    }
}
