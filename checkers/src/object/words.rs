//! A violation found by search or sweep, in words.

use crate::engine::NEVER;
use crate::engine::mutex;
use crate::engine::search::{Call, Effect, Exhausted, Limit, Model, Stuck};
use crate::history::At;
use crate::history::calls::Paired;
use crate::verdict::{Exhibit, Witness};

/// Open operations shown beside the culprit.
const OPEN_SHOWN: usize = 6;

/// Where the operations of an engine come from.
pub(super) struct Told<'a> {
    pub(super) key: &'a str,
    pub(super) calls: &'a [Paired<'a>],
    /// By operation of the engine: its place among `calls`.
    pub(super) at: &'a [usize],
    pub(super) lines: &'a [u32],
}

impl Told<'_> {
    fn call(&self, op: u32) -> &Paired<'_> {
        &self.calls[self.at[op as usize]]
    }

    fn who(&self, op: u32) -> String {
        let first = self.call(op).first;
        match &first.client {
            Some(client) => format!("client {client}"),
            None => format!("process {}", first.process),
        }
    }

    fn line(&self, op: u32) -> Option<u64> {
        self.lines.get(self.call(op).at).copied().map(u64::from)
    }

    /// ` (line 12)`.
    fn place(&self, op: u32) -> String {
        self.line(op).map_or_else(String::new, |line| format!(" (line {line})"))
    }

    fn object(&self) -> String {
        if self.key.is_empty() { "the object".to_owned() } else { self.key.to_owned() }
    }

    fn exhibit(&self, op: u32, what: String) -> Exhibit {
        let call = self.call(op);
        Exhibit {
            who: self.who(op),
            what,
            from: At::exactly(call.inv),
            to: (call.ret != NEVER).then(|| At::exactly(call.ret)),
            line: self.line(op),
        }
    }

    /// A mutex held twice, given back by another, or refused while it was free.
    pub(super) fn mutex(&self, v: &mutex::Violation) -> Witness {
        let (culprit, against) = (v.culprit, v.against);
        let (rule, sentence) = match (v.rule, against) {
            (mutex::Rule::TwoHolders, Some(holder)) => (
                "two-holders",
                format!(
                    "Two holders of {}: {} acquired it{} while {} definitely held it{}.",
                    self.object(),
                    self.who(culprit),
                    self.place(culprit),
                    self.who(holder),
                    self.place(holder)
                ),
            ),
            (mutex::Rule::NotHeld, _) | (mutex::Rule::TwoHolders, None) => (
                "released-unheld",
                format!(
                    "{} released {}{} without holding it.",
                    self.who(culprit),
                    self.object(),
                    self.place(culprit)
                ),
            ),
            (mutex::Rule::RefusedWhileFree, _) => (
                "refused-while-free",
                format!(
                    "{} was refused {}{} while nobody can have held it.",
                    self.who(culprit),
                    self.object(),
                    self.place(culprit)
                ),
            ),
        };
        let shown = std::iter::once(culprit).chain(against);
        Witness {
            rule: rule.to_owned(),
            sentence,
            exhibits: shown.map(|op| self.exhibit(op, self.call(op).first.f.clone())).collect(),
            margin: v.margin,
            excused_by: None,
            at: Some(At::exactly(self.call(culprit).inv)),
        }
    }
}

/// Where a search stuck: the operation that fits nowhere, why it does not fit after the last good order, who changed
/// the object last in it, and what was open beside it.
pub(super) fn stuck<M: Model>(told: &Told<'_>, model: &M, calls: &[Call<M::Op>], found: &Stuck) -> Witness
where
    M::Op: std::fmt::Display,
{
    let culprit = found.culprit;
    let call = &calls[culprit as usize];
    let mut state = model.start();
    let mut last_change = None;
    for &op in &found.before {
        let of = &calls[op as usize].op;
        if model.effect(of) != Effect::ReadOnly {
            last_change = Some(op);
        }
        if let Ok(next) = model.step(&state, of) {
            state = next;
        }
    }
    let why = model.step(&state, &call.op).err().unwrap_or_else(|| "it must not come last".to_owned());
    let open: Vec<u32> = (0u32..)
        .zip(calls)
        .filter(|(i, c)| *i != culprit && c.inv <= call.ret && c.ret >= call.ret)
        .filter(|(i, c)| !found.before.contains(i) && model.effect(&c.op) != Effect::ReadOnly)
        .map(|(i, _)| i)
        .collect();
    let after = match last_change {
        Some(op) => format!("after {} did {}{}", told.who(op), calls[op as usize].op, told.place(op)),
        None => "at the start".to_owned(),
    };
    let others = match open.len() {
        0 => "Nothing else was open that could have changed it.".to_owned(),
        1 => "The one other operation open then that could have changed it does not help.".to_owned(),
        n => format!("No order of the {n} other operations open then that could have changed it helps."),
    };
    let sentence = format!(
        "Not linearizable: {} did {} on {}{}, which fits nowhere: {after}, {why}. {others}",
        told.who(culprit),
        call.op,
        told.object(),
        told.place(culprit)
    );
    let mut exhibits = vec![told.exhibit(culprit, call.op.to_string())];
    exhibits.extend(
        last_change
            .into_iter()
            .chain(open.into_iter().take(OPEN_SHOWN))
            .map(|op| told.exhibit(op, calls[op as usize].op.to_string())),
    );
    Witness {
        rule: "not-linearizable".to_owned(),
        sentence,
        exhibits,
        margin: None,
        excused_by: None,
        at: Some(At::exactly(call.ret)),
    }
}

/// How far a search came.
pub(super) fn exhausted(key: &str, found: &Exhausted) -> String {
    let limit = match found.limit {
        Limit::Steps => "its limit of steps",
        Limit::Bytes => "its limit of memory",
        Limit::Stopped => "its limit of time",
    };
    let of = if key.is_empty() { String::new() } else { format!(" of {key}") };
    format!(
        "Undecided: the search{of} reached {limit} after {} steps, at operation {} of {} in the order of their returns.",
        found.steps, found.reached, found.of
    )
}
