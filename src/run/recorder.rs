//! The recorder: the history of a run, on disk as it happens.
//!
//! # Invariants
//! * One origin for the whole run: every time in the history is `Recorder::now` of one recorder.
//! * An operation's invocation is in the file (written, not fsynced) before [`Recorder::invoke`] returns, so
//!   before its request can be sent: a controller killed by SIGKILL loses no operation that could have happened.
//! * Operations get index and time under one lock, so the order of lines, of indices and of times agree.
//! * A write that fails is never silent: the first error is kept, [`Recorder::failed`] is cancelled so that the
//!   run can stop, no further invocation is let through, and [`Recorder::close`] returns it.
//!
//! One `write(2)` a line under a lock, not a writer thread with a queue, because an invocation must wait for its
//! line anyway: handing it to a thread and back costs two context switches, the write into the page cache a few
//! microseconds, and a queue needs memory and loses its content when the process is killed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{SecondsFormat, Utc};
use rackrift_checkers::history::{Entry, Header, Nanos, Note, Op, OpType, Value, jsonl};
use tokio_util::sync::CancellationToken;

/// Why a history could not be written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecorderError {
    /// The file could not be made.
    #[error("cannot create the history {path}: {reason}")]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's word.
        reason: String,
    },
    /// A line could not be written; the history ends before it.
    #[error(
        "cannot write the history {path} ({lines} lines are in it): {reason}; free space there and run again"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Whole lines written before.
        lines: u64,
        /// The system's word.
        reason: String,
    },
}

/// An operation as a client gives it to the recorder, which adds index and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The logical process.
    pub process: u64,
    /// What was asked.
    pub f: &'static str,
    /// The object.
    pub key: String,
    /// The client.
    pub client: String,
    /// Argument or result.
    pub value: Value,
    /// A word of the error table, then free text.
    pub error: Option<String>,
}

/// What is in a closed history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Lines, with the header.
    pub lines: u64,
    /// Lines of operations: invocations and completions.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Writes the history; a clone writes to the same file.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    origin: Instant,
    started: String,
    path: PathBuf,
    failed: CancellationToken,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
struct Sink {
    file: File,
    line: Vec<u8>,
    written: Written,
    error: Option<RecorderError>,
}

impl Recorder {
    /// Creates the history of run `run` at `path`, which must not exist, and writes its header. The run's origin
    /// is now.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn create(path: &Path, run: &str) -> Result<Self, RecorderError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|e| RecorderError::Create { path: path.to_owned(), reason: e.to_string() })?;
        let origin = Instant::now();
        let started = Utc::now().to_rfc3339_opts(SecondsFormat::Nanos, true);
        let recorder = Self {
            shared: Arc::new(Shared {
                origin,
                started: started.clone(),
                path: path.to_owned(),
                failed: CancellationToken::new(),
                sink: Mutex::new(Sink {
                    file,
                    line: Vec::with_capacity(1024),
                    written: Written { lines: 0, ops: 0, bytes: 0 },
                    error: None,
                }),
            }),
        };
        let header = Header { rackrift_history: jsonl::FORMAT, origin: started, run: run.to_owned() };
        recorder.put(&mut recorder.lock(), |text| jsonl::push_header(text, &header))?;
        Ok(recorder)
    }

    /// Nanoseconds since the run's origin.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.at(Instant::now())
    }

    /// That moment in nanoseconds since the run's origin; 0 for a moment before it.
    #[must_use]
    pub fn at(&self, moment: Instant) -> Nanos {
        Nanos::try_from(moment.saturating_duration_since(self.shared.origin).as_nanos()).unwrap_or(Nanos::MAX)
    }

    /// Wall-clock time of the origin, RFC 3339, as the header has it.
    #[must_use]
    pub fn started(&self) -> &str {
        &self.shared.started
    }

    /// Writes the invocation of an operation and returns its time. Only then may the request be sent.
    ///
    /// # Errors
    /// If the line is not in the file: the request must not be sent.
    pub fn invoke(&self, step: Step) -> Result<Nanos, RecorderError> {
        self.put_op(OpType::Invoke, step)
    }

    /// Writes how an operation ended. An error is kept (see [`Recorder::failed`]): the operation has happened.
    pub fn complete(&self, kind: OpType, step: Step) -> Nanos {
        self.put_op(kind, step).unwrap_or_else(|_| self.now())
    }

    /// Writes any other line. The time in it is the caller's; an error is kept (see [`Recorder::failed`]). An
    /// operation given here gets index and time as by [`Recorder::invoke`].
    pub fn record(&self, entry: Entry) {
        let mut sink = self.lock();
        let entry = match entry {
            Entry::Op(op) => Entry::Op(Op { index: sink.written.ops, time: self.now(), ..op }),
            other => other,
        };
        let is_op = matches!(entry, Entry::Op(_));
        if self.put(&mut sink, |text| jsonl::push_entry(text, &entry)).is_ok() && is_op {
            sink.written.ops += 1;
        }
    }

    /// Writes a note for a reader, with the time of now.
    pub fn note(&self, text: impl Into<String>) {
        self.record(Entry::Note(Note { time: self.now(), text: text.into() }));
    }

    /// Cancelled at the first line that could not be written.
    #[must_use]
    pub fn failed(&self) -> CancellationToken {
        self.shared.failed.clone()
    }

    /// Makes the history durable and says what is in it. Lines written through clones later are still written.
    ///
    /// # Errors
    /// The first write error of the whole run, or that of the final fsync.
    pub fn close(&self) -> Result<Written, RecorderError> {
        let mut sink = self.lock();
        if let Err(e) = sink.file.sync_all() {
            self.keep(&mut sink, &e);
        }
        sink.error.clone().map_or(Ok(sink.written), Err)
    }

    fn put_op(&self, kind: OpType, step: Step) -> Result<Nanos, RecorderError> {
        let mut sink = self.lock();
        // Taken under the lock: an invocation's time is before its request, a completion's after its answer,
        // and neither can be overtaken by a line with a smaller index.
        let time = self.now();
        let op = Op {
            index: sink.written.ops,
            time,
            process: step.process,
            kind,
            f: step.f.to_owned(),
            key: Some(step.key),
            client: Some(step.client),
            value: step.value,
            error: step.error,
        };
        self.put(&mut sink, |text| jsonl::push_entry(text, &Entry::Op(op)))?;
        sink.written.ops += 1;
        Ok(time)
    }

    fn put(&self, sink: &mut Sink, push: impl FnOnce(&mut Vec<u8>)) -> Result<(), RecorderError> {
        if let Some(e) = &sink.error {
            return Err(e.clone());
        }
        let mut text = std::mem::take(&mut sink.line);
        text.clear();
        push(&mut text);
        let done = sink.file.write_all(&text);
        let size = text.len() as u64;
        sink.line = text;
        match done {
            Ok(()) => {
                sink.written.lines += 1;
                sink.written.bytes += size;
                Ok(())
            }
            Err(e) => Err(self.keep(sink, &e)),
        }
    }

    fn keep(&self, sink: &mut Sink, error: &std::io::Error) -> RecorderError {
        let error = RecorderError::Write {
            path: self.shared.path.clone(),
            lines: sink.written.lines,
            reason: error.to_string(),
        };
        self.shared.failed.cancel();
        sink.error.get_or_insert(error).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Sink> {
        // A panic while the lock was held leaves at worst a line without its counter: still a history.
        self.shared.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(process: u64, f: &'static str) -> Step {
        Step {
            process,
            f,
            key: "rackrift/lease-0".into(),
            client: "m1-1".into(),
            value: Value::Nil,
            error: None,
        }
    }

    #[test]
    fn an_invocation_is_on_disk_when_invoke_returns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let r = Recorder::create(&path, "r1").unwrap();
        let time = r.invoke(step(3, "read")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let header: Header = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!((header.run.as_str(), header.origin.as_str()), ("r1", r.started()));
        let Entry::Op(op) = serde_json::from_str(lines.next().unwrap()).unwrap() else { panic!("an op") };
        assert_eq!((op.index, op.time, op.process, op.kind), (0, time, 3, OpType::Invoke));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn indices_and_times_of_operations_follow_the_order_of_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let r = Recorder::create(&path, "r1").unwrap();
        std::thread::scope(|s| {
            for process in 0..4 {
                let r = r.clone();
                s.spawn(move || {
                    for _ in 0..100 {
                        r.invoke(step(process, "read")).unwrap();
                        r.note("between");
                        r.complete(OpType::Ok, step(process, "read"));
                    }
                });
            }
        });
        let written = r.close().unwrap();
        assert_eq!((written.ops, written.lines), (800, 1201));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.len() as u64, written.bytes);
        let (mut index, mut time) = (0, 0);
        for line in text.lines().skip(1) {
            if let Entry::Op(op) = serde_json::from_str(line).unwrap() {
                assert_eq!(op.index, index);
                assert!(op.time >= time, "line {line}");
                (index, time) = (index + 1, op.time);
            }
        }
        assert_eq!(index, 800);
    }

    #[test]
    fn an_existing_history_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        std::fs::write(&path, "old").unwrap();
        assert!(matches!(Recorder::create(&path, "r1"), Err(RecorderError::Create { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn a_full_disk_stops_the_run_and_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let r = Recorder::create(&dir.path().join("history.jsonl"), "r1").unwrap();
        // /dev/full answers every write with "no space left on device".
        r.lock().file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        assert!(!r.failed().is_cancelled());
        r.note("lost");
        assert!(r.failed().is_cancelled());
        r.lock().file = tempfile::tempfile().unwrap();
        let refused = r.invoke(step(0, "read")).unwrap_err();
        assert!(refused.to_string().contains("1 lines are in it"), "{refused}");
        assert!(r.close().is_err());
    }
}
