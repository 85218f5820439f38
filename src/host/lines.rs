//! A script's standard output, line by line, as it comes.
//!
//! # Invariants
//! * A line is handed out when its newline has come, not when more output follows: a watch may be silent for long
//!   after what it saw. Only an empty line waits, because the end mark's own line begins with one.

use super::frame::{Sift, marks};

/// How many lines wait for a slow reader before the host itself is made to wait.
pub const QUEUE: usize = 4096;

/// Splits a wrapped script's standard output into lines.
#[derive(Debug)]
pub struct Split {
    /// Hears the same bytes, for a conclusion on a script that did not begin.
    sift: Sift,
    begin: String,
    end: String,
    place: Place,
    line: Vec<u8>,
    longest: usize,
    /// Empty lines that may or may not be the script's.
    empty: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    After,
}

impl Split {
    /// For the script with that nonce; a line's end beyond `longest` bytes is dropped.
    #[must_use]
    pub fn new(nonce: &str, longest: usize) -> Self {
        let (begin, end) = marks(nonce);
        Self {
            sift: Sift::new(nonce, 0),
            longest: longest.max(end.len() + 8),
            begin,
            end,
            place: Place::Before,
            line: Vec::new(),
            empty: 0,
        }
    }

    /// Takes the next bytes, gives the lines that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        if self.place == Place::Before {
            self.sift.feed(bytes);
        }
        let mut lines = Vec::new();
        for byte in bytes {
            if self.place == Place::After {
                break;
            }
            if *byte == b'\n' {
                self.complete(&mut lines);
                self.line.clear();
            } else if self.line.len() < self.longest {
                self.line.push(*byte);
            }
        }
        lines
    }

    fn complete(&mut self, lines: &mut Vec<String>) {
        if self.place == Place::Before {
            // Noise may stand before the mark in its line.
            if self.line.ends_with(self.begin.as_bytes()) {
                self.place = Place::Inside;
            }
            return;
        }
        if self.line.is_empty() {
            self.empty += 1;
            return;
        }
        let ended = self.line.starts_with(self.end.as_bytes());
        // The mark is printed with a newline before it, in case the script's last line had none.
        let own = usize::from(ended).min(self.empty);
        lines.extend(std::iter::repeat_n(String::new(), self.empty - own));
        self.empty = 0;
        if ended {
            self.place = Place::After;
        } else {
            lines.push(String::from_utf8_lossy(&self.line).into_owned());
        }
    }

    /// Whether the script has begun.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.place != Place::Before
    }

    /// What was found, for a conclusion on why a script did not begin.
    #[must_use]
    pub fn into_sift(self) -> Sift {
        self.sift
    }

    /// Whether the script has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.place == Place::After
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the wrapper prints round a script's output.
    fn wrapped(noise: &str, output: &str) -> String {
        format!("{noise}RR-BEGIN 00ff\n{output}\nRR-END 00ff 0\nafter\n")
    }

    #[test]
    fn a_line_does_not_wait_for_the_next() {
        let mut split = Split::new("00ff", 1000);
        assert!(split.feed(b"Welcome\nRR-BEGIN 00").is_empty());
        assert!(split.feed(b"ff\n").is_empty() && split.begun());
        assert_eq!(split.feed(b"a\nb\nc"), ["a", "b"]);
        assert_eq!(split.feed(b"\n"), ["c"]);
        assert!(split.feed(b"\n").is_empty(), "this may be the mark's");
        assert_eq!(split.feed(b"d\n"), ["", "d"]);
        assert!(split.feed(b"\nRR-END 00ff 0\n").is_empty() && split.ended());
    }

    #[test]
    fn a_long_line_is_cut() {
        let mut split = Split::new("00ff", 40);
        let lines = split.feed(wrapped("", &format!("{}\nnext\n", "x".repeat(99))).as_bytes());
        assert_eq!(lines, ["x".repeat(40), "next".to_owned()]);
    }

    proptest! {
        #[test]
        fn lines_come_back_however_they_are_cut(
            noise in "[a-z\n]{0,9}",
            lines in prop::collection::vec("[a-z ]{0,3}", 0..9),
            ended in any::<bool>(),
            step in 1_usize..20,
        ) {
            let mut lines = lines;
            if !ended && lines.last().is_some_and(String::is_empty) {
                lines.push("x".to_owned());
            }
            let mut output = lines.join("\n");
            if ended && !lines.is_empty() {
                output.push('\n');
            }
            let mut split = Split::new("00ff", 1000);
            let mut found = Vec::new();
            for bytes in wrapped(&noise, &output).as_bytes().chunks(step) {
                found.extend(split.feed(bytes));
            }
            prop_assert!(split.ended());
            prop_assert_eq!(found, lines);
        }
    }
}
