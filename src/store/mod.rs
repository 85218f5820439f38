//! Run directories: what a run leaves behind, and how it is found again.
//!
//! # Invariants
//! * The history is on disk before anything is judged: a report that fails never costs a verdict, a checker
//!   that fails never costs a history.
//! * A file is written whole or not at all (written beside, synced, renamed).

use std::io::Write;
use std::path::{Path, PathBuf};

use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::jsonl::{self, History};
use rackrift_checkers::history::{Entry, Header};
use rackrift_checkers::verdict::RunVerdict;

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// Why a run's folder could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("failed to {what} {path}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The content is not what it should be.
    #[error("{path}:{line}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// 1-based; 0 for the whole file.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

/// A history as read back: a last line cut off by a killed run is left out and said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The first line.
    pub header: Header,
    /// The other lines.
    pub entries: Vec<Entry>,
    /// What was left out, if anything.
    pub note: Option<String>,
}

impl RunDir {
    /// Makes the folder `<runs>/<UTC stamp>-<scenario>-<seed>` and points `<runs>/latest` at it.
    ///
    /// # Errors
    /// [`StoreError::Io`], also if it exists.
    pub fn create(
        runs: &Path,
        scenario: &str,
        seed: u64,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Result<Self, StoreError> {
        let name = format!("{}-{scenario}-{:06x}", now.format("%Y-%m-%dT%H-%M-%SZ"), seed & 0xff_ffff);
        let path = runs.join(&name);
        std::fs::create_dir_all(runs).map_err(io("make", runs))?;
        std::fs::create_dir(&path).map_err(io("make", &path))?;
        let hosts = path.join("hosts");
        std::fs::create_dir(&hosts).map_err(io("make", &hosts))?;
        let dir = Self { path };
        dir.point_latest(runs, &name);
        Ok(dir)
    }

    /// An existing run's folder.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is no `run.json` in it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let facts = path.join("run.json");
        std::fs::metadata(&facts).map_err(io("find", &facts))?;
        Ok(Self { path: path.to_owned() })
    }

    /// A moved `latest` is a convenience: that it could not be moved must not stop a run.
    fn point_latest(&self, runs: &Path, name: &str) {
        let staged = runs.join(format!(".latest-{name}"));
        if std::os::unix::fs::symlink(name, &staged).is_ok() {
            let moved = std::fs::rename(&staged, runs.join("latest"));
            if moved.is_err() {
                let _ = std::fs::remove_file(&staged);
            }
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the folder's name.
    #[must_use]
    pub fn id(&self) -> String {
        let absolute = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        absolute.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    /// A file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of what was collected from a host; made if absent.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn host(&self, host: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join("hosts").join(host);
        std::fs::create_dir_all(&path).map_err(io("make", &path))?;
        Ok(path)
    }

    /// Writes a file whole.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        let mut staged = tempfile::NamedTempFile::new_in(folder).map_err(io("write in", folder))?;
        staged.write_all(content).map_err(io("write", &path))?;
        staged.as_file().sync_all().map_err(io("sync", &path))?;
        staged.persist(&path).map_err(|e| io("write", &path)(e.error))?;
        Ok(path)
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_facts(&self, facts: &Facts) -> Result<PathBuf, StoreError> {
        self.write("run.json", &json(facts, &self.file("run.json"))?)
    }

    /// Writes `verdict.json`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_verdict(&self, verdict: &RunVerdict) -> Result<PathBuf, StoreError> {
        self.write("verdict.json", &json(verdict, &self.file("verdict.json"))?)
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn facts(&self) -> Result<Facts, StoreError> {
        self.read_json("run.json")
    }

    /// Reads `verdict.json`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn verdict(&self) -> Result<RunVerdict, StoreError> {
        self.read_json("verdict.json")
    }

    /// Reads the history. A last line that a killed run left half written is left out, and said.
    ///
    /// # Errors
    /// [`StoreError`], with the line.
    pub fn history(&self) -> Result<Recorded, StoreError> {
        let path = self.file("history.jsonl");
        let bytes = std::fs::read(&path).map_err(io("read", &path))?;
        let History { header, entries, notes } = jsonl::read(&bytes).map_err(|e| StoreError::Malformed {
            line: e.line,
            message: e.to_string(),
            path: path.clone(),
        })?;
        let note = (!notes.is_empty()).then(|| format!("{}: {}", path.display(), notes.join("; ")));
        Ok(Recorded { header, entries, note })
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, StoreError> {
        let path = self.file(name);
        let text = std::fs::read(&path).map_err(io("read", &path))?;
        serde_json::from_slice(&text).map_err(|e| StoreError::Malformed {
            line: e.line(),
            message: e.to_string(),
            path,
        })
    }
}

fn json<T: serde::Serialize>(value: &T, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| StoreError::Malformed {
        path: path.to_owned(),
        line: 0,
        message: e.to_string(),
    })?;
    text.push(b'\n');
    Ok(text)
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> StoreError + use<'a> {
    move |error| StoreError::Io { what, path: path.to_owned(), error }
}
