//! One key of a key-value store: a text with get, put and append.

use crate::engine::search::{Effect, Model};

/// A text, empty at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text;

/// An operation on a text, with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TextOp {
    /// A read that was answered with this text.
    Get(String),
    /// A write.
    Put(String),
    /// Adds at the end.
    Append(String),
}

impl Model for Text {
    type State = String;
    type Op = TextOp;

    fn start(&self) -> String {
        String::new()
    }

    fn step(&self, state: &String, op: &TextOp) -> Result<String, String> {
        match op {
            TextOp::Get(text) if text == state => Ok(state.clone()),
            TextOp::Get(text) => Err(format!("cannot get {text:?}, the text is {state:?}")),
            TextOp::Put(text) => Ok(text.clone()),
            TextOp::Append(more) => Ok(format!("{state}{more}")),
        }
    }

    fn effect(&self, op: &TextOp) -> Effect {
        match op {
            TextOp::Get(_) => Effect::ReadOnly,
            TextOp::Put(_) => Effect::Overwrites,
            TextOp::Append(_) => Effect::Any,
        }
    }
}

impl std::fmt::Display for TextOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Get(text) => write!(f, "get {text:?}"),
            Self::Put(text) => write!(f, "put {text:?}"),
            Self::Append(text) => write!(f, "append {text:?}"),
        }
    }
}
