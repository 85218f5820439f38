//! How a script is wrapped for a host, and how its output is found again.
//!
//! The transport runs `exec /bin/sh -s` and writes the wrapped script to its standard input. The wrapper prints a
//! begin and an end line with a nonce on *both* output streams; only what lies between them is the script's.
//!
//! # Invariants
//! * Noise of login files, banners and background jobs never reaches a caller: it lies outside the marks.
//! * No end mark, no result: the outcome is then unknown, whatever the connection says.
//! * The script's standard input is `/dev/null`: a command in it cannot eat the rest of the script.
//! * A [`Mode::ToItsEnd`] script is not harmed by the loss of the connection: it ignores SIGPIPE, and nothing
//!   but its own time limit stops it. An undo that is half done when the controller dies would be worse than
//!   one that ends unheard.
//!
//! A here-document on descriptor 3, not a function or `sh -c`, because the limit needs a process of its own, a
//! syntax error in the script must not take the end mark with it, and one argument is limited to 128 KiB.

use std::time::Duration;

use super::remote::{Finished, Outcome};

/// What ends a wrapped script, beside its own end and its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: it runs to its end, heard or not.
    ToItsEnd,
    /// The end of its standard input, which comes when the receiver is dropped or the connection dies. The
    /// script's process group gets SIGTERM, and SIGKILL two seconds later.
    WhileHeard,
}

/// The search path of every script: administrators' folders first, because `iptables` and `tc` live there.
pub const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";

/// How much of the noise before the begin mark is kept for a message, bytes.
const NOISE: usize = 1024;

/// A nonce for the marks of one script: 16 hexadecimal digits.
#[must_use]
pub fn nonce() -> String {
    format!("{:016x}", rand::random::<u64>())
}

/// The texts of the begin and of the end mark; the exit status follows the latter after a space.
#[must_use]
pub fn marks(nonce: &str) -> (String, String) {
    (format!("RR-BEGIN {nonce}"), format!("RR-END {nonce}"))
}

/// Wraps a script for `sh -s`.
///
/// The limit is rounded up to whole seconds, which every `timeout` understands; over it the script's process
/// group gets SIGTERM, and SIGKILL two seconds later. `$1` of the outer shell, if given, is `SSH_CONNECTION` as
/// it was before `sudo` took it away.
#[must_use]
pub fn wrap(body: &str, nonce: &str, limit: Duration, mode: Mode) -> String {
    let seconds = limit.as_millis().div_ceil(1000).max(1);
    let newline = if body.ends_with('\n') || body.is_empty() { "" } else { "\n" };
    let (prepare, background, wait) = match mode {
        Mode::ToItsEnd => ("trap '' PIPE", "", "s=$?"),
        // `timeout` passes a SIGTERM on to the process group that it made. Descriptor 4 is the connection: a
        // background job's own standard input is /dev/null.
        Mode::WhileHeard => (
            "exec 4<&0",
            " 4<&- & p=$!",
            "{ cat <&4; kill -TERM $p; } >/dev/null 2>&1 & w=$!\nwait $p; s=$?; kill $w 2>/dev/null",
        ),
    };
    // The braces make the shell read everything before it runs anything: what follows on its standard input is
    // then not part of the script, and `cat` cannot eat what the shell still needs.
    format!(
        "{{\n\
         PATH={PATH}; LC_ALL=C; SSH_CONNECTION=${{SSH_CONNECTION:-$1}}; export PATH LC_ALL SSH_CONNECTION\n\
         {prepare}\n\
         printf 'RR-BEGIN %s\\n' {nonce} >&2; printf 'RR-BEGIN %s\\n' {nonce}\n\
         timeout -k 2 {seconds} /bin/sh /proc/self/fd/3 3<<'RR-BODY-{nonce}' </dev/null{background}\n\
         exec 3<&-\n\
         {body}{newline}\
         RR-BODY-{nonce}\n\
         {wait}\n\
         printf '\\nRR-END %s\\n' {nonce} >&2; printf '\\nRR-END %s %d\\n' {nonce} $s\n\
         exit $s\n\
         }}\n"
    )
}

/// Finds a script's output in one of its streams, as it comes in.
#[derive(Debug)]
pub struct Sift {
    begin: Vec<u8>,
    end: Vec<u8>,
    /// Bytes that may still be part of a mark.
    held: Vec<u8>,
    place: Place,
    noise: Vec<u8>,
    kept: Vec<u8>,
    cap: usize,
    truncated: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    /// In the end mark's line.
    Ending,
    /// What stood behind the nonce in the end mark's line.
    After(String),
}

impl Sift {
    /// For one stream of the script with that nonce; keeps at most `cap` bytes, the first ones.
    #[must_use]
    pub fn new(nonce: &str, cap: usize) -> Self {
        let (begin, end) = marks(nonce);
        Self {
            begin: format!("{begin}\n").into_bytes(),
            end: format!("\n{end}").into_bytes(),
            held: Vec::new(),
            place: Place::Before,
            noise: Vec::new(),
            kept: Vec::new(),
            cap,
            truncated: false,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        loop {
            match self.place {
                Place::Before => {
                    let Some(at) = find(&self.held, &self.begin) else {
                        let safe = self.held.len().saturating_sub(self.begin.len() - 1);
                        let noise: Vec<u8> = self.held.drain(..safe).collect();
                        self.hear(&noise);
                        return;
                    };
                    let noise: Vec<u8> = self.held.drain(..at + self.begin.len()).take(at).collect();
                    self.hear(&noise);
                    self.place = Place::Inside;
                }
                Place::Inside => {
                    let found = find(&self.held, &self.end);
                    let safe = found.unwrap_or_else(|| self.held.len().saturating_sub(self.end.len() - 1));
                    let room = self.cap.saturating_sub(self.kept.len()).min(safe);
                    self.truncated |= room < safe;
                    self.kept.extend_from_slice(&self.held[..room]);
                    self.held.drain(..safe);
                    if found.is_none() {
                        return;
                    }
                    self.held.drain(..self.end.len());
                    self.place = Place::Ending;
                }
                Place::Ending => {
                    let Some(at) = self.held.iter().position(|b| *b == b'\n') else { return };
                    let rest = String::from_utf8_lossy(&self.held[..at]).trim().to_owned();
                    self.held.clear();
                    self.place = Place::After(rest);
                }
                Place::After(_) => {
                    self.held.clear();
                    return;
                }
            }
        }
    }

    fn hear(&mut self, noise: &[u8]) {
        let room = NOISE.saturating_sub(self.noise.len()).min(noise.len());
        self.noise.extend_from_slice(&noise[..room]);
    }

    /// Whether the begin mark was seen.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.place != Place::Before
    }

    /// Whether the end mark was seen.
    #[must_use]
    pub fn ended(&self) -> bool {
        matches!(self.place, Place::After(_))
    }

    /// The exit status in the end mark.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        match &self.place {
            Place::After(rest) => rest.parse().ok(),
            _ => None,
        }
    }

    /// The last line of what came before the begin mark: why another program answered, most likely.
    fn last_noise(&self) -> Option<String> {
        let mut all = self.noise.clone();
        if !self.begun() {
            all.extend_from_slice(&self.held);
        }
        let text = String::from_utf8_lossy(&all).into_owned();
        text.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned)
    }

    fn text(mut self) -> (String, bool) {
        if self.place == Place::Inside {
            let room = self.cap.saturating_sub(self.kept.len()).min(self.held.len());
            self.truncated |= room < self.held.len();
            self.kept.extend_from_slice(&self.held[..room]);
        }
        (String::from_utf8_lossy(&self.kept).into_owned(), self.truncated)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    // A mark begins with a rare byte, so skipping to it is much faster than comparing windows.
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = haystack.get(from..)?.iter().position(|b| *b == first) {
        if haystack[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// What the transport saw at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The end marks came on both streams.
    Marked,
    /// The shell ended with this status.
    Exit(i32),
    /// The shell was killed by this signal, without `SIG`.
    Signal(String),
    /// The connection ended with neither.
    Cut(String),
    /// The time limit passed.
    Deadline,
}

/// Signals that end a script from outside; a status of 128 and one of them is read as that signal, as shells do.
const SIGNALS: [(i32, &str); 7] =
    [(1, "HUP"), (2, "INT"), (3, "QUIT"), (6, "ABRT"), (9, "KILL"), (11, "SEGV"), (15, "TERM")];

/// A signal's name without `SIG`, if it is one of those that end scripts from outside.
#[must_use]
pub fn signal_name(number: i32) -> Option<&'static str> {
    SIGNALS.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}

/// The outcome of a script.
///
/// A status of `timeout`'s own (124; 137 and 143 if the script did not go by itself) counts as a time-out only if
/// the limit has really passed, so that a script may use these numbers.
#[must_use]
pub fn conclude(out: Sift, err: Sift, ending: Ending, elapsed: Duration, limit: Duration) -> Outcome {
    let status = out.status();
    let begun = out.begun() || err.begun();
    let noise = err.last_noise().or_else(|| out.last_noise());
    let (stdout, out_cut) = out.text();
    let (stderr, err_cut) = err.text();
    let mut output = Finished { status: status.unwrap_or(-1), stdout, stderr, truncated: out_cut || err_cut };
    if let Some(s) = status {
        if elapsed >= limit && matches!(s, 124 | 137 | 143) {
            output.status = -1;
            return Outcome::TimedOut { after: limit, output };
        }
        return match signal_name(s - 128) {
            Some(name) => Outcome::Signalled { signal: name.to_owned(), output },
            None => Outcome::Done(output),
        };
    }
    match ending {
        Ending::Deadline => Outcome::TimedOut { after: limit, output },
        Ending::Signal(signal) if begun => Outcome::Signalled { signal, output },
        Ending::Exit(s) if !begun => Outcome::Refused { reason: not_our_shell(s, noise.as_deref()) },
        Ending::Exit(s) => {
            Outcome::Lost { reason: format!("the shell ended with status {s}, without end mark") }
        }
        Ending::Signal(s) => {
            Outcome::Lost { reason: format!("the shell was killed by SIG{s} before it answered") }
        }
        Ending::Cut(reason) => Outcome::Lost { reason },
        Ending::Marked => Outcome::Lost { reason: "the end mark bears no status".to_owned() },
    }
}

/// Why another program than our shell answered, and what to do.
fn not_our_shell(status: i32, noise: Option<&str>) -> String {
    let said = noise.unwrap_or("no message");
    let hint = if said.contains("password is required") || said.contains("not in the sudoers") {
        "let the user run /bin/sh without a password: USER ALL=(root) NOPASSWD: /bin/sh"
    } else if said.contains("must have a tty") {
        "take the requirement of a terminal from sudoers: Defaults:USER !requiretty"
    } else if said.contains("sudo") && said.contains("not found") {
        "install sudo, or log in as root and set `sudo: false`"
    } else {
        "the login shell must be able to run `exec /bin/sh -s`, and no forced command may stand in its way"
    };
    format!("the script was not started (status {status}: {said}); {hint}")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// What a shell prints for a script; `input` comes after it.
    fn run(shell: &[&str], body: &str, input: &str) -> (Vec<u8>, Vec<u8>) {
        let text = wrap(body, "00ff", Duration::from_secs(20), Mode::ToItsEnd) + input;
        let mut child = Command::new(shell[0])
            .args(&shell[1..])
            .arg("-s")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.stdout, output.stderr)
    }

    fn outcome((stdout, stderr): (Vec<u8>, Vec<u8>), step: usize) -> Outcome {
        let mut sifts = [Sift::new("00ff", 1 << 20), Sift::new("00ff", 1 << 20)];
        for (sift, bytes) in sifts.iter_mut().zip([stdout, stderr]) {
            bytes.chunks(step).for_each(|c| sift.feed(c));
        }
        let [out, err] = sifts;
        conclude(out, err, Ending::Marked, Duration::ZERO, Duration::from_secs(20))
    }

    fn done(status: i32, stdout: &str, stderr: &str) -> Outcome {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        Outcome::Done(Finished { status, stdout, stderr, truncated: false })
    }

    #[test]
    fn every_shell_says_the_same() {
        let body = "echo \"$PATH\" | cut -c 1-9\necho err >&2\ncat\nprintf \"no 'end\"\nexit 7";
        for shell in [&["/bin/sh"][..], &["dash"], &["bash"], &["busybox", "sh"]] {
            if Command::new(shell[0]).args(&shell[1..]).args(["-c", ":"]).output().is_err() {
                continue;
            }
            let said = outcome(run(shell, body, "echo not the script's\n"), 5);
            assert_eq!(said, done(7, "/usr/sbin\nno 'end", "err\n"), "{shell:?}");
        }
    }

    #[test]
    fn a_script_that_is_no_shell_script_has_a_status_too() {
        let said = outcome(run(&["/bin/sh"], "echo 'open\nif then", ""), 64);
        let Outcome::Done(end) = &said else { panic!("{said:?}") };
        assert!(end.status != 0 && !end.stderr.is_empty(), "{end:?}");
    }

    #[test]
    fn a_script_s_own_124_is_not_a_time_out() {
        assert_eq!(outcome(run(&["/bin/sh"], "exit 124", ""), 64), done(124, "", ""));
        let sift = || {
            let mut sift = Sift::new("00ff", 9);
            sift.feed(b"RR-BEGIN 00ff\n\nRR-END 00ff 124\n");
            sift
        };
        let limit = Duration::from_secs(1);
        let said = conclude(sift(), sift(), Ending::Marked, limit, limit);
        assert!(matches!(said, Outcome::TimedOut { .. }), "{said:?}");
    }

    #[test]
    fn without_end_mark_there_is_no_result() {
        let mut half = Sift::new("00ff", 99);
        half.feed(b"RR-BEGIN 00ff\nfirst\n\nRR-END 00f");
        let silent = || Sift::new("00ff", 99);
        let limit = Duration::from_secs(1);
        let ends = |out: Sift, ending| conclude(out, silent(), ending, Duration::ZERO, limit);
        let mut begun = silent();
        begun.feed(b"RR-BEGIN 00ff\n");
        let mut said = vec![
            ends(half, Ending::Deadline),
            ends(begun, Ending::Exit(0)),
            ends(silent(), Ending::Cut("the connection broke".to_owned())),
            ends(silent(), Ending::Signal("KILL".to_owned())),
            ends(silent(), Ending::Exit(255)),
        ];
        let mut torn = silent();
        torn.feed(b"RR-BEGIN 00ff\n\nRR-END 00ff x\n");
        said.push(ends(torn, Ending::Marked));
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Whatever a script prints, through a real shell and cut anywhere, comes back as it was.
        #[test]
        fn output_comes_back_as_it_was(text in "[ -~\n]{0,200}", step in 1_usize..40, status in 0..=99) {
            let body = format!("cat <<'RR-TEXT'\n{text}\nRR-TEXT\nexit {status}");
            prop_assume!(!text.lines().any(|l| l == "RR-TEXT"));
            let said = outcome(run(&["/bin/sh"], &body, ""), step);
            prop_assert_eq!(said, done(status, &format!("{text}\n"), ""));
        }

        /// Noise round it does not matter; at most `cap` bytes are kept.
        #[test]
        fn noise_is_left_out(
            before in "[a-zR\n-]{0,60}", text in "[a-zR\n-]{0,60}", after in "[a-z\n]{0,20}",
            step in 1_usize..30, cap in 0_usize..80,
        ) {
            let mut sift = Sift::new("00ff", cap);
            let all = format!("{before}RR-BEGIN 00ff\n{text}\nRR-END 00ff 0\n{after}");
            all.as_bytes().chunks(step).for_each(|c| sift.feed(c));
            prop_assert!(sift.begun() && sift.ended());
            prop_assert_eq!(sift.status(), Some(0));
            let (kept, truncated) = sift.text();
            prop_assert_eq!(&kept, &text[..text.len().min(cap)]);
            prop_assert_eq!(truncated, cap < text.len());
        }
    }
}
