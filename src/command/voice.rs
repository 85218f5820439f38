//! What is said while something runs: a line that moves on a terminal, one plain line a change otherwise.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::run::tell::Tell;

/// Speaks on standard error; standard output is for results.
#[derive(Debug)]
pub struct Voice {
    started: Instant,
    bar: Option<ProgressBar>,
    last: Mutex<String>,
}

impl Voice {
    /// A voice for this process: moving on a terminal, plain otherwise or under `NO_COLOR`/`CI`.
    #[must_use]
    pub fn new() -> Self {
        let moving = std::io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let bar = moving.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { started: Instant::now(), bar, last: Mutex::new(String::new()) }
    }

    /// Takes the moving line away.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// A closed pipe is no reason to stop a run.
    fn line(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}

impl Tell for Voice {
    fn say(&self, text: &str) {
        let line = format!("{:>6.1} s  {text}", self.started.elapsed().as_secs_f64());
        match &self.bar {
            Some(bar) => bar.suspend(|| self.line(&line)),
            None => self.line(&line),
        }
    }

    fn now(&self, what: &str, left: Option<Duration>) {
        let left = left.map_or_else(String::new, |d| format!(" · about {} s left", d.as_secs()));
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{:>4.0} s  {what}{left}", self.started.elapsed().as_secs_f64()));
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last != what {
            what.clone_into(&mut last);
            self.line(&format!("{:>6.1} s  {what}{left}", self.started.elapsed().as_secs_f64()));
        }
    }
}

impl Default for Voice {
    fn default() -> Self {
        Self::new()
    }
}
