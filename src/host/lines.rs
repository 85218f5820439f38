//! A script's standard output, line by line, as it comes.

use super::frame::Sift;

/// How many lines wait for a slow reader before the host itself is made to wait.
pub const QUEUE: usize = 4096;

/// Splits a wrapped script's standard output into lines.
#[derive(Debug)]
pub struct Split {
    sift: Sift,
    rest: Vec<u8>,
    longest: usize,
    /// The line in `rest` is over the limit: its end is dropped.
    cut: bool,
}

impl Split {
    /// For the script with that nonce; a line is cut after `longest` bytes.
    #[must_use]
    pub fn new(nonce: &str, longest: usize) -> Self {
        Self { sift: Sift::new(nonce, usize::MAX), rest: Vec::new(), longest, cut: false }
    }

    /// Takes the next bytes, gives the lines that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.sift.feed(bytes);
        let mut lines = Vec::new();
        for byte in self.sift.take() {
            if byte == b'\n' {
                lines.push(String::from_utf8_lossy(&self.rest).into_owned());
                self.rest.clear();
                self.cut = false;
            } else if self.rest.len() < self.longest {
                self.rest.push(byte);
            } else {
                self.cut = true;
            }
        }
        if self.sift.ended() && !self.rest.is_empty() {
            lines.push(String::from_utf8_lossy(&self.rest).into_owned());
            self.rest.clear();
        }
        lines
    }

    /// Whether the script has begun.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.sift.begun()
    }

    /// Whether the script has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.sift.ended()
    }
}
