//! Violations in words: who did what when, what it was told, and what that contradicts.

use super::gather::{Key, Told};
use super::interval;
use crate::engine::versioned::{Act, Operation, Rule, Violation};
use crate::explain::words::{length, moment};
use crate::history::{At, OpType, Value};
use crate::verdict::{Exhibit, Witness};

/// Who did an operation.
pub(super) fn doer(key: &Key<'_>, op: usize) -> String {
    match key.told[op] {
        Told::Client { first, .. } => match &first.client {
            Some(client) => format!("client {client}"),
            None => format!("process {}", first.process),
        },
        Told::Observer { seen, .. } => format!("observer {}", seen.via),
    }
}

/// The proof of a violation.
pub(super) fn witness(lease: &str, key: &Key<'_>, v: &Violation) -> Witness {
    let exhibits = std::iter::once(v.culprit).chain(v.against.iter().copied()).map(|op| exhibit(key, op));
    Witness {
        rule: v.rule.word().to_owned(),
        sentence: sentence(lease, key, v),
        exhibits: exhibits.collect(),
        margin: v.margin,
        // All times are of one clock, the recorder's: no clock error can excuse anything.
        excused_by: None,
        at: Some(At::exactly(v.known_at)),
    }
}

fn exhibit(key: &Key<'_>, op: usize) -> Exhibit {
    let (inv, ret) = interval(&key.ops[op]);
    let line = match key.told[op] {
        Told::Client { line, .. } | Told::Observer { line, .. } => line,
    };
    Exhibit {
        who: doer(key, op),
        what: did(key, op),
        from: At::exactly(inv),
        to: ret.map(At::exactly),
        line: Some(line),
    }
}

/// The version that an operation showed, with the holder: `version 42 (held by m1-1)`.
fn shown(key: &Key<'_>, op: usize) -> String {
    let act = key.ops[op].act;
    let version = match act {
        Act::Read { version }
        | Act::Write { version }
        | Act::Cas { version, .. }
        | Act::Create { version }
        | Act::Delete { version: Some(version), .. } => format!("version {version}"),
        Act::Absent => return "no lease at all".to_owned(),
        Act::Exists => return "that it exists".to_owned(),
        Act::Conflict { expected } => return format!("a conflict on version {expected}"),
        _ => "a version it never learned".to_owned(),
    };
    match holder(key, op) {
        Some("") => format!("{version} (held by nobody)"),
        Some(holder) => format!("{version} (held by {holder})"),
        None => version,
    }
}

fn holder<'a>(key: &Key<'a>, op: usize) -> Option<&'a str> {
    match key.told[op] {
        Told::Client { first, last, .. } => {
            let shown = last.filter(|last| last.kind == OpType::Ok).unwrap_or(first);
            shown.value.get("holder").and_then(Value::as_str)
        }
        Told::Observer { seen, .. } => Some(&seen.holder),
    }
}

/// What an operation was, in the past tense: `read version 42 (held by m1-1)`.
fn did(key: &Key<'_>, op: usize) -> String {
    if let Told::Observer { .. } = key.told[op] {
        return format!("showed {}", shown(key, op));
    }
    match key.ops[op].act {
        Act::Read { .. } => format!("read {}", shown(key, op)),
        Act::Absent => "was told that there is no such lease".to_owned(),
        Act::Write { .. } => format!("wrote {}", shown(key, op)),
        Act::Cas { expected, .. } => format!("replaced version {expected} by {}", shown(key, op)),
        Act::Create { .. } => format!("created {}", shown(key, op)),
        Act::Delete { .. } => format!("deleted it, {}", shown(key, op)),
        Act::Conflict { expected } => format!("was refused a write over version {expected}"),
        Act::Exists => "was refused a create, since it existed".to_owned(),
        Act::Failed => "tried a write that certainly failed".to_owned(),
        Act::MaybeWrite => "wrote, outcome unknown".to_owned(),
        Act::MaybeCas { expected } => format!("would replace version {expected}, outcome unknown"),
        Act::MaybeCreate => "would create it, outcome unknown".to_owned(),
        Act::MaybeDelete { .. } => "would delete it, outcome unknown".to_owned(),
    }
}

/// When an operation began and ended: `(12.401 s to 12.409 s)`.
fn span(op: &Operation) -> String {
    match interval(op) {
        (inv, Some(ret)) => format!("({} to {})", moment(inv), moment(ret)),
        (inv, None) => format!("(from {})", moment(inv)),
    }
}

fn sentence(lease: &str, key: &Key<'_>, v: &Violation) -> String {
    let ops = &key.ops;
    let c = v.culprit;
    let (who, what, op) = (doer(key, c), did(key, c), &ops[c]);
    let margin = v.margin.map_or_else(String::new, length);
    let other = |i: usize| v.against.get(i).map(|&o| (doer(key, o), o));
    let each = || {
        let of = |&o: &usize| format!("{} {} {}", doer(key, o), did(key, o), span(&ops[o]));
        v.against.iter().map(of).collect::<Vec<_>>().join(", and ")
    };
    match (v.rule, other(0)) {
        (Rule::StaleRead, Some((by, o))) => format!(
            "Stale read: {who} started a read of {lease} at {} and got {}, {margin} after {by} had already been told \
             {}.",
            moment(op.inv),
            shown(key, c),
            shown(key, o)
        ),
        (Rule::VersionWentBack, Some((by, o))) => format!(
            "Version went back: {who} started a write of {lease} at {} and made {}, {margin} after {by} had already \
             been told {}.",
            moment(op.inv),
            shown(key, c),
            shown(key, o)
        ),
        (Rule::VersionWentBack, None) => {
            format!("Version went back: {who} {what} of {lease} {}, a lower one.", span(op))
        }
        (Rule::FutureRead, Some((by, o))) => format!(
            "Read from the future: {who} {what} of {lease} at {}, {margin} before {by} began to write it at {}.",
            moment(op.ret),
            moment(ops[o].inv)
        ),
        (Rule::DuplicateVersion, Some((by, o))) => format!(
            "Two writers of one version of {lease}: {by} {} {}, and {who} {what} {}.",
            did(key, o),
            span(&ops[o]),
            span(op)
        ),
        (Rule::WrongContent, _) => {
            format!("Wrong content: {who} {what} of {lease} {}, but {}.", span(op), each())
        }
        (Rule::ThinAir, _) => format!(
            "Out of thin air: {who} {what} of {lease} {}, which no operation of the history wrote.",
            span(op)
        ),
        (Rule::LostUpdate, Some(_)) => {
            format!("Lost update: {who} {what} of {lease} {}, but {} in between.", span(op), each())
        }
        (Rule::CreatedTwice, Some(_)) => {
            format!("Created twice: {who} {what} of {lease} {}, though it existed: {}.", span(op), each())
        }
        (Rule::FailedWriteVisible, Some((by, o))) => format!(
            "A failed write became visible: {who} {what} of {lease} {}, the content of a write by {by} {} that had \
             certainly failed.",
            span(op),
            span(&ops[o])
        ),
        (Rule::ConflictWithoutCause, Some(_)) => format!(
            "Conflict without cause: {who} {what} of {lease} {}, but that was the version during all that time: {}.",
            span(op),
            each()
        ),
        (Rule::AbsentWithoutCause, Some(_)) => format!(
            "Absent without cause: {who} {what} ({lease}) {}, but it was there during all that time: {}.",
            span(op),
            each()
        ),
        (Rule::ExistsWithoutCause, Some(_)) => format!(
            "Exists without cause: {who} {what} ({lease}) {}, but it was not there during all that time: {}.",
            span(op),
            each()
        ),
        (rule, _) => format!("{}: {who} {what} of {lease} {}.", rule.word(), span(op)),
    }
}
