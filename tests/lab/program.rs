//! The program under test, run as its users run it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Says what is being tried, for whoever watches.
pub(crate) fn step(what: &str) {
    eprintln!("--- {what}");
}

/// The program, with a folder for its runs.
pub(crate) struct Program {
    folder: tempfile::TempDir,
}

/// How a call ended.
pub(crate) struct Ended {
    call: String,
    pub(crate) exit: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder that lives as long as the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// The lab's inventory, as the program says where it is.
    pub(crate) fn inventory(&self) -> PathBuf {
        let status = self.run(&["lab", "status"], 60);
        status.expect_exit(0);
        let line = status.out.lines().find_map(|l| l.trim().strip_prefix("inventory")).unwrap_or_default();
        PathBuf::from(line.trim_start_matches([':', ' ']).trim())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackrift"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("NO_COLOR", "1");
        command
    }

    /// Starts it and comes back at once.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs it to its end, at most so many seconds.
    pub(crate) fn run(&self, args: &[&str], limit_s: u64) -> Ended {
        let mut child = self.command(args).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        // Read on threads of their own: a full pipe would stop the program.
        let out = std::thread::spawn(move || text(&mut out));
        let err = std::thread::spawn(move || text(&mut err));
        let end = Instant::now() + Duration::from_secs(limit_s);
        let exit = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if Instant::now() > end {
                child.kill().unwrap();
                child.wait().unwrap();
                let (out, err) = (out.join().unwrap(), err.join().unwrap());
                panic!("rackrift {} did not end within {limit_s} s\n{out}{err}", args.join(" "));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        Ended {
            call: format!("rackrift {}", args.join(" ")),
            exit,
            out: out.join().unwrap(),
            err: err.join().unwrap(),
        }
    }
}

fn text(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect_exit(&self, code: i32) -> &Self {
        assert_eq!(self.exit, Some(code), "{}\n{}\n{}", self.call, self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn expect_says(&self, words: &[&str]) -> &Self {
        let said = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(said.contains(word), "{} does not say `{word}`:\n{said}", self.call);
        }
        self
    }
}
