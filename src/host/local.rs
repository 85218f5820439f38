//! [`Remote`] over network namespaces of this machine, by plain child processes.
//!
//! For tests of what is sent to hosts, and for hosts that are nothing but a namespace. Scripts are wrapped and
//! their output is read exactly as over SSH ([`super::frame`]).

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::frame::{Ending, Mode, Sift, conclude, nonce, wrap};
use super::remote::{BoxFuture, Lines, Outcome, Remote, Script};

/// How long the end of a script may come after its limit: `timeout` first sends SIGTERM, then SIGKILL.
const GRACE: Duration = Duration::from_secs(4);

/// Hosts that are network namespaces of this machine.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    hosts: BTreeMap<String, Option<String>>,
}

impl Namespaces {
    /// No hosts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A host that is the network namespace `/run/netns/NAMESPACE`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>, namespace: impl Into<String>) -> Self {
        self.hosts.insert(host.into(), Some(namespace.into()));
        self
    }

    /// A host that is the place where this process runs.
    #[must_use]
    pub fn here(mut self, host: impl Into<String>) -> Self {
        self.hosts.insert(host.into(), None);
        self
    }

    fn spawn(&self, host: &str) -> Result<Child, String> {
        let namespace = self.hosts.get(host).ok_or_else(|| "there is no such host".to_owned())?;
        let mut command = match namespace {
            Some(name) => {
                let mut c = Command::new("ip");
                c.args(["netns", "exec", name, "/bin/sh", "-s"]);
                c
            }
            None => {
                let mut c = Command::new("/bin/sh");
                c.arg("-s");
                c
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|e| format!("the shell cannot be started: {e}"))
    }

    async fn run_script(&self, host: &str, script: &Script) -> Outcome {
        let started = Instant::now();
        let mut child = match self.spawn(host) {
            Ok(c) => c,
            Err(reason) => return Outcome::Refused { reason },
        };
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::ToItsEnd);
        let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Outcome::Refused { reason: "the shell has no pipes".to_owned() };
        };
        // In a task of its own: a script larger than a pipe is read only as fast as the shell reads it.
        tokio::spawn(async move {
            let _ = stdin.write_all(text.as_bytes()).await;
        });
        let mut out = Sift::new(&nonce, script.cap);
        let mut err = Sift::new(&nonce, script.cap);
        let reading = async {
            let read = async {
                tokio::join!(sift(&mut stdout, &mut out), sift(&mut stderr, &mut err));
            };
            read.await;
        };
        let ending = match tokio::time::timeout(script.limit + GRACE, reading).await {
            Err(_) => Ending::Deadline,
            Ok(()) if out.ended() => Ending::Marked,
            Ok(()) => how_it_ended(&mut child).await,
        };
        // Reaped in the background: a shell that has printed its end mark is as good as gone.
        tokio::spawn(async move { child.wait().await });
        conclude(out, err, ending, started.elapsed(), script.limit)
    }

    async fn stream_script(&self, host: &str, script: &Script) -> Result<Lines, String> {
        let mut child = self.spawn(host)?;
        let nonce = nonce();
        let text = wrap(&script.body, &nonce, script.limit, Mode::WhileHeard);
        let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the shell has no pipes".to_owned());
        };
        stdin.write_all(text.as_bytes()).await.map_err(|e| format!("the shell does not read: {e}"))?;
        let (lines, receiver) = mpsc::channel(super::lines::QUEUE);
        let mut split = super::lines::Split::new(&nonce, script.cap);
        tokio::spawn(async move {
            let mut nothing = [0_u8; 4096];
            while matches!(stderr.read(&mut nothing).await, Ok(n) if n > 0) {}
        });
        tokio::spawn(async move {
            let mut buffer = [0_u8; 16384];
            loop {
                let n = tokio::select! {
                    () = lines.closed() => break,
                    n = stdout.read(&mut buffer) => n.unwrap_or(0),
                };
                if n == 0 {
                    break;
                }
                for line in split.feed(&buffer[..n]) {
                    if lines.send(line).await.is_err() {
                        break;
                    }
                }
                if split.ended() {
                    break;
                }
            }
            // The shell's standard input ends here, and with it the script.
            drop(stdin);
            let _ = child.wait().await;
        });
        Ok(receiver)
    }
}

/// Reads a stream to its end or its end mark.
async fn sift(from: &mut (impl AsyncRead + Unpin), into: &mut Sift) {
    let mut buffer = vec![0_u8; 16384];
    while !into.ended() {
        match from.read(&mut buffer).await {
            Ok(n) if n > 0 => into.feed(&buffer[..n]),
            _ => return,
        }
    }
}

async fn how_it_ended(child: &mut Child) -> Ending {
    use std::os::unix::process::ExitStatusExt;
    match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(Ok(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, Some(signal)) => Ending::Signal(signal_name(signal)),
            (None, None) => Ending::Cut("the shell ended without status".to_owned()),
        },
        _ => Ending::Cut("the shell closed its output and did not end".to_owned()),
    }
}

fn signal_name(signal: i32) -> String {
    super::frame::signal_name(signal).map_or_else(|| signal.to_string(), str::to_owned)
}

impl Remote for Namespaces {
    fn run<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run_script(host, script))
    }

    fn stream<'a>(&'a self, host: &'a str, script: &'a Script) -> BoxFuture<'a, Result<Lines, String>> {
        Box::pin(self.stream_script(host, script))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Namespaces {
        Namespaces::new().here("h")
    }

    #[tokio::test]
    async fn scripts_end_as_over_ssh() {
        let run = async |body: &str, limit| here().run("h", &Script::new(body).limit(limit).cap(9)).await;
        let long = Duration::from_secs(20);
        let said = run("yes | head -c 1000000; echo err >&2; exit 3", long).await;
        let Outcome::Done(done) = said else { panic!("{said:?}") };
        assert_eq!((done.status, done.stdout.as_str(), done.truncated), (3, "y\ny\ny\ny\ny", true));
        let said = run("echo so far; kill -KILL $$", long).await;
        assert!(matches!(&said, Outcome::Signalled { signal, .. } if signal == "KILL"), "{said:?}");
        let said = run("echo so far; exec sleep 1000", Duration::from_secs(1)).await;
        assert!(matches!(&said, Outcome::TimedOut { output, .. } if output.stdout == "so far\n"), "{said:?}");
        let said = run("kill -KILL $(ps -o ppid= -p $PPID); exec sleep 2", long).await;
        assert!(!matches!(said, Outcome::Done(_)), "{said:?}");
        let nobody = here().run("x", &Script::new(":")).await;
        assert_eq!(nobody, Outcome::Refused { reason: "there is no such host".to_owned() });
    }

    #[tokio::test]
    async fn a_dropped_stream_ends_its_script() {
        let script = Script::new("echo $$; exec sleep 1000").limit(Duration::from_secs(120));
        let mut lines = here().stream("h", &script).await.unwrap();
        let stat = format!("/proc/{}/stat", lines.recv().await.unwrap());
        assert!(std::fs::exists(&stat).unwrap());
        drop(lines);
        let end = Instant::now() + Duration::from_secs(30);
        while std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z ")) {
            assert!(Instant::now() < end, "the script is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
