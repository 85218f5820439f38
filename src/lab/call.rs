//! Runs other programs, each with a time limit.
//!
//! # Invariants
//! * A program that does not end in time is killed with its children (it has a process group of its own, so that no
//!   grandchild can keep our pipes open), and that is said.
//! * What a failed program wrote last is in the error.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::site::Site;

/// How a program failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("`{program}` could not be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("`{call}` did not end within {} s and was killed{}", limit.as_secs(), last(output))]
    Late { call: String, limit: Duration, output: String },
    #[error("`{call}` ended with {status}{}", last(output))]
    Status { call: String, status: ExitStatus, output: String },
}

/// The last lines of what a program wrote, for one message.
fn last(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(8)..].iter().fold(String::new(), |mut text, line| {
        let _ = write!(text, "\n  | {line}");
        text
    })
}

/// A program to run.
#[derive(Debug)]
pub(super) struct Call {
    command: Command,
    text: String,
    limit: Duration,
    input: Option<String>,
}

impl Call {
    /// `program` with its arguments, with 30 s to end.
    pub(super) fn new<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = program.as_ref();
        let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        let mut text = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
        for a in &args {
            let _ = write!(text, " {}", a.to_string_lossy());
        }
        let mut command = Command::new(program);
        command.args(args);
        Self { command, text, limit: Duration::from_secs(30), input: None }
    }

    /// The same program, in a lab's network namespace.
    pub(super) fn inside<A: AsRef<OsStr>>(
        site: &Site,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut all =
            vec![OsString::from(format!("--net={}", site.namespace_path())), program.as_ref().to_owned()];
        all.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        Self::new("nsenter", all)
    }

    /// A POSIX sh script in a lab's network namespace; it stops at the first error.
    pub(super) fn script_inside(site: &Site, script: impl Into<String>) -> Self {
        Self::inside(site, "sh", ["-e", "-s"]).input(script)
    }

    /// A long-running program that dies with us, with all its children and mounts, however we end: it is the first
    /// process of a process namespace of its own, and its mounts are its own.
    pub(super) fn tied<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let wrap = "--pdeathsig KILL unshare --pid --fork --kill-child --mount-proc --";
        let mut all: Vec<OsString> = wrap.split(' ').map(OsString::from).collect();
        all.push(program.as_ref().to_owned());
        all.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        Self::new("setpriv", all)
    }

    /// The same with further arguments.
    pub(super) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        for a in args {
            let _ = write!(self.text, " {a}");
        }
        self
    }

    /// The same with another limit.
    pub(super) const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same with a text on standard input.
    pub(super) fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// The same with a variable in its environment.
    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same in another working folder.
    pub(super) fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it to its end and returns its standard output.
    pub(super) fn run(self) -> Result<String, CallError> {
        self.run_with(|_| ())
    }

    /// The same, and hands over each line of standard error as it comes.
    pub(super) fn run_with(mut self, mut line: impl FnMut(&str) + Send) -> Result<String, CallError> {
        let start = Instant::now();
        self.command.process_group(0);
        self.command.env("LC_ALL", "C").stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = self.command.spawn().map_err(|source| CallError::Start {
            program: self.command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let body = self.input.take();
        let (status, out, err) = std::thread::scope(|scope| {
            let out = scope.spawn(move || {
                let mut text = Vec::new();
                if let Some(mut pipe) = stdout {
                    // A pipe that breaks has ended: what came before is kept.
                    let _ = pipe.read_to_end(&mut text);
                }
                String::from_utf8_lossy(&text).into_owned()
            });
            let err = scope.spawn(move || {
                let mut text = String::new();
                if let Some(pipe) = stderr {
                    for one in std::io::BufRead::lines(std::io::BufReader::new(pipe)).map_while(Result::ok) {
                        line(&one);
                        text.push_str(&one);
                        text.push('\n');
                    }
                }
                text
            });
            if let (Some(mut pipe), Some(body)) = (input, body) {
                // A program that ends without reading its input says by its status whether that was wrong.
                let _ = pipe.write_all(body.as_bytes());
            }
            let mut pause = Duration::from_millis(1);
            let status = loop {
                match child.try_wait() {
                    Ok(Some(status)) => break Some(status),
                    Ok(None) if start.elapsed() < self.limit => std::thread::sleep(pause),
                    _ => {
                        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                            let _ = kill_process_group(group, Signal::KILL);
                        }
                        let _ = child.wait();
                        break None;
                    }
                }
                pause = (pause * 2).min(Duration::from_millis(20));
            };
            (status, out.join().unwrap_or_default(), err.join().unwrap_or_default())
        });
        match status {
            Some(status) if status.success() => Ok(out),
            Some(status) => Err(CallError::Status { call: self.text, status, output: err + &out }),
            None => Err(CallError::Late { call: self.text, limit: self.limit, output: err + &out }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_input_and_folder() {
        let out = Call::new("sh", ["-c", "cat; pwd; echo $NAME"])
            .input("in\n")
            .folder(Path::new("/"))
            .env("NAME", "x")
            .run();
        assert_eq!(out.ok().as_deref(), Some("in\n/\nx\n"));
    }

    #[test]
    fn a_failure_shows_status_and_last_lines() {
        let e = Call::new("sh", ["-c", "echo no such thing >&2; exit 3"]).run().err();
        insta::assert_snapshot!(e.map(|e| e.to_string()).unwrap_or_default());
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let e = Call::new("sleep", ["600"]).limit(Duration::from_millis(50)).run().err();
        assert!(matches!(e, Some(CallError::Late { .. })), "{e:?}");
    }

    #[test]
    fn an_absent_program_is_named() {
        let e = Call::new("no-such-program", ["x"]).run().err();
        assert!(e.is_some_and(|e| e.to_string().contains("`no-such-program` could not be started")));
    }
}
