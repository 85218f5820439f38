//! Kinds of objects, and how a history shows which one it is of.

use std::collections::BTreeSet;

use crate::history::calls::Paired;
use crate::history::{OpType, Value};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An object whose every write carries a version.
    Versioned,
    /// A register with read, write and compare-and-set.
    Register,
    /// Registers read and written together.
    Registers,
    /// A key-value store of texts: get, put, append.
    Text,
    /// A set.
    Set,
    /// A queue.
    Queue,
    /// A mutex.
    Lock,
}

/// No kind of object fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchKind {
    /// None has this name.
    #[error("no kind of object is called {0:?}: name one of {all}", all = Kind::names())]
    Name(String),
    /// None has these functions.
    #[error("no kind of object has the functions {0}: name one of {all}", all = Kind::names())]
    Functions(String),
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Versioned, Self::Register, Self::Registers, Self::Text, Self::Set, Self::Queue, Self::Lock];

    /// Its name, for a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Versioned => "versioned",
            Self::Register => "cas-register",
            Self::Registers => "multi-register",
            Self::Text => "kv",
            Self::Set => "set",
            Self::Queue => "queue",
            Self::Lock => "mutex",
        }
    }

    /// What it is, after "as".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Versioned => "objects with versions (exact rule)",
            Self::Register => "registers (search)",
            Self::Registers => "registers read and written together (search)",
            Self::Text => "a key-value store of texts (search, by key)",
            Self::Set => "sets (search)",
            Self::Queue => "queues (search)",
            Self::Lock => "mutexes with owners",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The kind that has all the functions called.
    ///
    /// # Errors
    /// If none has.
    pub fn of(calls: &[Paired<'_>]) -> Result<Self, NoSuchKind> {
        let called: BTreeSet<&str> = calls.iter().map(|call| call.first.f.as_str()).collect();
        let versions = |call: &Paired<'_>| {
            call.last.is_some_and(|last| last.kind == OpType::Ok && last.value.get("version").is_some())
        };
        if calls.iter().any(versions) && Self::Versioned.knows(&called) {
            return Ok(Self::Versioned);
        }
        let lists = |call: &Paired<'_>| {
            call.last.is_some_and(|last| call.first.f == "read" && matches!(last.value, Value::List(_)))
        };
        let set_first = calls.iter().any(lists) || called.contains("add");
        let order = if set_first { [Self::Set, Self::Register] } else { [Self::Register, Self::Set] };
        let rest = [Self::Registers, Self::Text, Self::Queue, Self::Lock, Self::Versioned];
        order
            .into_iter()
            .chain(rest)
            .find(|kind| kind.knows(&called))
            .ok_or_else(|| NoSuchKind::Functions(called.iter().copied().collect::<Vec<_>>().join(", ")))
    }

    fn knows(self, called: &BTreeSet<&str>) -> bool {
        let functions: &[&str] = match self {
            Self::Versioned => &["read", "write", "create", "cas", "delete"],
            Self::Register => &["read", "write", "cas"],
            Self::Registers => &["txn"],
            Self::Text => &["get", "put", "append"],
            Self::Set => &["add", "remove", "read"],
            Self::Queue => &["enqueue", "dequeue"],
            Self::Lock => &["acquire", "release"],
        };
        called.iter().all(|f| functions.contains(f))
    }
}

impl std::str::FromStr for Kind {
    type Err = NoSuchKind;

    fn from_str(name: &str) -> Result<Self, NoSuchKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| NoSuchKind::Name(name.to_owned()))
    }
}
