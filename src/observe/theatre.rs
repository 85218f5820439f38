//! A host that plays its lines, for the tests of observers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rackrift_checkers::history::Entry;
use tokio::sync::mpsc;

use crate::host::remote::{BoxFuture, Lines, Outcome, Remote, Script};
use crate::run::recorder::Recorder;

/// Plays one act a stream, in order, and then stays silent; each run of a script gets the next answer.
#[derive(Debug)]
pub(super) struct Theatre {
    acts: Mutex<Vec<Vec<String>>>,
    answers: Mutex<Vec<Outcome>>,
    asked: Mutex<Vec<String>>,
    silent: Mutex<Vec<mpsc::Sender<String>>>,
}

impl Theatre {
    pub(super) fn new(acts: Vec<Vec<&str>>) -> Arc<Self> {
        let acts = acts.into_iter().rev().map(|act| act.into_iter().map(str::to_owned).collect()).collect();
        Arc::new(Self {
            acts: Mutex::new(acts),
            answers: Mutex::default(),
            asked: Mutex::default(),
            silent: Mutex::default(),
        })
    }

    pub(super) fn answering(answers: Vec<Outcome>) -> Arc<Self> {
        let theatre = Self::new(Vec::new());
        *theatre.answers.lock().unwrap() = answers.into_iter().rev().collect();
        theatre
    }

    /// The scripts in the order in which they came.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until all acts were played and the observer waits for another.
    pub(super) async fn all_played(&self) {
        while self.silent.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Remote for Theatre {
    fn run<'a>(&'a self, _: &'a str, script: &'a Script) -> BoxFuture<'a, Outcome> {
        self.asked.lock().unwrap().push(script.body.clone());
        let answer = self.answers.lock().unwrap().pop();
        Box::pin(async move { answer.unwrap_or(Outcome::Refused { reason: "the play is over".to_owned() }) })
    }

    fn stream<'a>(&'a self, _: &'a str, script: &'a Script) -> BoxFuture<'a, Result<Lines, String>> {
        self.asked.lock().unwrap().push(script.body.clone());
        Box::pin(async move {
            let act = self.acts.lock().unwrap().pop();
            let (to, lines) = mpsc::channel(1000);
            match act {
                None => self.silent.lock().unwrap().push(to),
                Some(act) => {
                    for line in act {
                        to.send(line).await.map_err(|e| e.to_string())?;
                    }
                }
            }
            Ok(lines)
        })
    }
}

/// A recorder, its file, and the folder that lasts as long as the test.
pub(super) fn recorder() -> (Recorder, PathBuf, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.jsonl");
    (Recorder::create(&path, "r1").unwrap(), path, dir)
}

/// The lines of a history.
pub(super) fn entries(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|l| serde_json::from_str(l).unwrap()).collect()
}
