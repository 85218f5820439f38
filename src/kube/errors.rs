//! What an answer means for the operation it answers: the written table.
//!
//! # Invariants
//! * [`TABLE`] is the whole truth: [`classify`] walks it from the top and takes the first row that fits, and
//!   `docs/errors.md` is printed from it. Its last rows fit everything.
//! * *ok*: it happened. *fail*: it certainly did not happen. *info*: it may have happened, or may yet happen. A read
//!   has no effect, so a read without a usable answer is a *fail*, never an *info*.
//! * A row says *fail* for a write only where the cause excludes that the API server acted on the request.

use std::fmt::Write;

use rackrift_checkers::history::OpType;

use super::Answer;

/// Whether a request changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Read,
    /// It may change an object.
    Change,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It happened.
    Ok,
    /// It certainly did not happen.
    Fail,
    /// It may have happened, or may yet happen.
    Info,
}

/// What a row looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The request was never written.
    NotSent,
    /// A part of it was written, and no whole answer came.
    Broken,
    /// No whole answer came in time.
    Late,
    /// The proxy answers 500 in plain text, `dial …`: it had no connection to the API server.
    Dial,
    /// This HTTP status, with this `reason` in the Status object.
    Reason(u16, &'static str),
    /// This HTTP status.
    Status(u16),
    /// An HTTP status in this range.
    Statuses(u16, u16),
    /// Anything.
    Anything,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    effect: Option<Effect>,
    seen: Seen,
    meaning: Meaning,
    word: &'static str,
    why: &'static str,
}

const fn row(
    effect: Option<Effect>,
    seen: Seen,
    meaning: Meaning,
    word: &'static str,
    why: &'static str,
) -> Row {
    Row { effect, seen, meaning, word, why }
}

use Effect::{Change, Read};
use Meaning::{Fail, Info, Ok as Happened};

/// The table; the first row that fits counts.
const TABLE: &[Row] = &[
    row(
        None,
        Seen::Statuses(200, 201),
        Happened,
        "ok",
        "the whole answer came: the object as it was read or written",
    ),
    row(
        Some(Read),
        Seen::Reason(404, "NotFound"),
        Happened,
        "absent",
        "a read of an object that is not there is an answer: there is none",
    ),
    row(
        Some(Read),
        Seen::Anything,
        Fail,
        "unread",
        "a read changes nothing; without a usable answer it says nothing",
    ),
    row(
        Some(Change),
        Seen::NotSent,
        Fail,
        "not-sent",
        "the proxy's socket refused or closed before a byte of the request was written",
    ),
    row(
        Some(Change),
        Seen::Dial,
        Fail,
        "no-connection",
        "kubectl proxy could not connect to the API server, so it sent nothing (plain text `dial tcp …`)",
    ),
    row(
        Some(Change),
        Seen::Reason(409, "Conflict"),
        Fail,
        "conflict",
        "the resourceVersion or UID given was not the current one",
    ),
    row(Some(Change), Seen::Reason(409, "AlreadyExists"), Fail, "exists", "an object of that name was there"),
    row(
        Some(Change),
        Seen::Reason(404, "NotFound"),
        Fail,
        "absent",
        "no object, or no namespace, of that name was there",
    ),
    row(Some(Change), Seen::Status(400), Fail, "bad-request", "refused before it was looked at"),
    row(Some(Change), Seen::Status(401), Fail, "unauthenticated", "refused before it was looked at"),
    row(
        Some(Change),
        Seen::Status(403),
        Fail,
        "forbidden",
        "refused by authorization or admission, before storage",
    ),
    row(Some(Change), Seen::Status(405), Fail, "bad-method", "refused before it was looked at"),
    row(Some(Change), Seen::Status(413), Fail, "too-large", "refused before it was looked at"),
    row(Some(Change), Seen::Status(415), Fail, "bad-type", "refused before it was looked at"),
    row(Some(Change), Seen::Status(422), Fail, "invalid", "refused by validation, before storage"),
    row(
        Some(Change),
        Seen::Late,
        Info,
        "late",
        "no whole answer before the deadline: the request may still be on its way",
    ),
    row(
        Some(Change),
        Seen::Broken,
        Info,
        "broken",
        "the connection broke after the request was written in part or whole",
    ),
    row(
        Some(Change),
        Seen::Reason(504, "Timeout"),
        Info,
        "server-timeout",
        "the API server gave up waiting; etcd may still apply it",
    ),
    row(
        Some(Change),
        Seen::Status(429),
        Info,
        "too-many",
        "most often refused at the door, but the same status comes from behind it",
    ),
    row(
        Some(Change),
        Seen::Statuses(500, 599),
        Info,
        "server-error",
        "etcd's time-outs and lost leaders come as 5xx, and so does a stream that breaks behind the proxy",
    ),
    row(Some(Change), Seen::Anything, Info, "unknown", "nothing above excludes that it happened"),
];

/// An answer with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// What it means.
    pub meaning: Meaning,
    /// The table's word.
    pub word: &'static str,
    /// What was seen: a status with the server's message, or the system's word.
    pub detail: String,
}

impl Class {
    /// How a history writes the meaning.
    #[must_use]
    pub const fn op_type(&self) -> OpType {
        match self.meaning {
            Meaning::Ok => OpType::Ok,
            Meaning::Fail => OpType::Fail,
            Meaning::Info => OpType::Info,
        }
    }

    /// The `error` of a history line: the word, then the detail where the word does not say it all.
    #[must_use]
    pub fn text(&self) -> String {
        match self.word {
            "conflict" | "exists" | "absent" => self.word.to_owned(),
            word => format!("{word}: {}", self.detail),
        }
    }
}

/// What this answer to such a request means.
#[must_use]
pub fn classify(effect: Effect, answer: &Answer) -> Class {
    let facts = Facts::of(answer);
    // The last row of the table fits everything; the fallback says the same, so that no row means no claim.
    let (meaning, word) = TABLE
        .iter()
        .find(|r| r.effect.is_none_or(|e| e == effect) && facts.fit(r.seen))
        .map_or((Meaning::Info, "unknown"), |r| (r.meaning, r.word));
    Class { meaning, word, detail: facts.detail }
}

/// What the rows look at, drawn from an answer once.
struct Facts {
    kind: Seen,
    status: u16,
    reason: String,
    detail: String,
}

/// The parts of a Kubernetes Status object that count.
#[derive(serde::Deserialize)]
struct Status {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

/// Longest detail that is kept, characters.
const DETAIL: usize = 200;

impl Facts {
    fn of(answer: &Answer) -> Self {
        let none = |kind, detail| Self { kind, status: 0, reason: String::new(), detail };
        match answer {
            Answer::NotSent { cause } => none(Seen::NotSent, cause.clone()),
            Answer::Broken { cause } => none(Seen::Broken, cause.clone()),
            Answer::Late { after } => none(Seen::Late, format!("no answer in {:.1} s", after.as_secs_f64())),
            Answer::Came { status: status @ 200..=299, .. } => Self {
                kind: Seen::Status(*status),
                status: *status,
                reason: String::new(),
                detail: status.to_string(),
            },
            Answer::Came { status, body } => {
                let parsed = serde_json::from_slice::<Status>(body).ok();
                let plain = String::from_utf8_lossy(body);
                let plain = plain.trim();
                let dial = parsed.is_none() && *status == 500 && plain.starts_with("dial ");
                let said = parsed.as_ref().map_or(plain, |s| s.message.as_str());
                let said: String = said.chars().take(DETAIL).collect();
                Self {
                    kind: if dial { Seen::Dial } else { Seen::Status(*status) },
                    status: *status,
                    reason: parsed.map(|s| s.reason).unwrap_or_default(),
                    detail: format!("{status} {said}"),
                }
            }
        }
    }

    fn fit(&self, seen: Seen) -> bool {
        match seen {
            Seen::Anything => true,
            Seen::NotSent | Seen::Broken | Seen::Late | Seen::Dial => self.kind == seen,
            Seen::Reason(status, reason) => self.status == status && self.reason == reason,
            Seen::Status(status) => self.status == status,
            Seen::Statuses(from, to) => (from..=to).contains(&self.status),
        }
    }
}

/// The table as markdown.
#[must_use]
pub fn table() -> String {
    let mut text = String::from("| request | what was seen | means | word | why |\n|---|---|---|---|---|\n");
    for r in TABLE {
        let request = match r.effect {
            None => "any",
            Some(Effect::Read) => "read",
            Some(Effect::Change) => "change",
        };
        let seen = match r.seen {
            Seen::NotSent => "not sent".to_owned(),
            Seen::Broken => "sent, connection broke".to_owned(),
            Seen::Late => "no whole answer in time".to_owned(),
            Seen::Dial => "500, plain text `dial …`".to_owned(),
            Seen::Reason(status, reason) => format!("{status} {reason}"),
            Seen::Status(status) => status.to_string(),
            Seen::Statuses(from, to) => format!("{from}–{to}"),
            Seen::Anything => "anything else".to_owned(),
        };
        let meaning = match r.meaning {
            Meaning::Ok => "ok",
            Meaning::Fail => "fail",
            Meaning::Info => "info",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {request} | {seen} | **{meaning}** | `{}` | {} |", r.word, r.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Bytes;
    use proptest::prelude::*;
    use std::time::Duration;

    fn came(status: u16, body: &'static str) -> Answer {
        Answer::Came { status, body: Bytes::from_static(body.as_bytes()) }
    }

    fn word(effect: Effect, answer: &Answer) -> (Meaning, &'static str) {
        let c = classify(effect, answer);
        (c.meaning, c.word)
    }

    // Bodies as a real 1.34.4 API server and kubectl proxy sent them.
    const CONFLICT: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on leases.coordination.k8s.io \"x\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"x","group":"coordination.k8s.io","kind":"leases"},"code":409}"#;
    const TIMEOUT: &str = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    const REFUSED: &str = "dial tcp 198.18.0.14:6443: connect: connection refused\n";
    const STREAM: &str = "stream error: stream ID 29; INTERNAL_ERROR; received from peer\n";
    const MISSING: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"leases.coordination.k8s.io \"nope\" not found","reason":"NotFound","code":404}"#;

    #[test]
    fn real_answers_to_a_write() {
        assert_eq!(word(Change, &came(409, CONFLICT)), (Fail, "conflict"));
        assert_eq!(word(Change, &came(504, TIMEOUT)), (Info, "server-timeout"));
        assert_eq!(word(Change, &came(500, REFUSED)), (Fail, "no-connection"));
        assert_eq!(word(Change, &came(500, STREAM)), (Info, "server-error"));
        assert_eq!(word(Change, &came(404, MISSING)), (Fail, "absent"));
        assert_eq!(word(Change, &Answer::Late { after: Duration::from_secs(3) }), (Info, "late"));
        assert_eq!(word(Change, &Answer::NotSent { cause: "refused".into() }), (Fail, "not-sent"));
    }

    #[test]
    fn a_status_object_that_mentions_dial_is_the_api_servers_own() {
        // The API server dialled etcd, so the request did reach it: only the proxy's plain text is definite.
        let body = r#"{"status":"Failure","message":"dial tcp 198.18.1.31:2379: connect: connection refused","code":500}"#;
        assert_eq!(word(Change, &came(500, body)), (Info, "server-error"));
    }

    #[test]
    fn a_404_without_a_status_object_says_nothing_about_the_object() {
        assert_eq!(word(Read, &came(404, "404 page not found")), (Fail, "unread"));
        assert_eq!(word(Change, &came(404, "404 page not found")), (Info, "unknown"));
        assert_eq!(word(Read, &came(404, MISSING)), (Happened, "absent"));
    }

    #[test]
    fn the_errors_line_is_the_word_and_then_what_was_seen() {
        assert_eq!(classify(Change, &came(409, CONFLICT)).text(), "conflict");
        insta::assert_snapshot!(classify(Change, &came(500, STREAM)).text(), @"server-error: 500 stream error: stream ID 29; INTERNAL_ERROR; received from peer");
        insta::assert_snapshot!(classify(Change, &came(504, TIMEOUT)).text(), @"server-timeout: 504 Timeout: request did not complete within the allotted timeout");
    }

    #[test]
    fn the_last_row_fits_a_write_and_a_read_alike() {
        assert_eq!(TABLE.last().map(|r| (r.seen, r.meaning)), Some((Seen::Anything, Info)));
    }

    proptest! {
        #[test]
        fn no_answer_makes_a_read_unknown_or_panics(status in 0_u16..1000, body: Vec<u8>) {
            let answer = Answer::Came { status, body: Bytes::from(body) };
            prop_assert_ne!(classify(Read, &answer).meaning, Info);
            let _ = classify(Change, &answer).text();
        }

        #[test]
        fn a_5xx_on_a_write_is_never_definite_unless_the_proxy_did_not_connect(status in 500_u16..600, text in "[a-c].*") {
            let answer = Answer::Came { status, body: Bytes::from(text) };
            prop_assert_eq!(classify(Change, &answer).meaning, Info);
        }
    }

    /// Written anew with `INSTA_UPDATE=always`, as the snapshots are.
    #[test]
    fn the_document_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/errors.md");
        let text = format!(
            "# What an answer means\n\nHow a client operation ends in the history: **ok**, it happened; **fail**, it certainly did not; **info**, it may have happened or may yet happen.\nThe first row that fits counts. The word begins the line's `error`. Printed from `src/kube/errors.rs`; a test compares the two.\n\n{}\nA compare-and-set names the object's UID beside its resourceVersion: a PUT of a Lease that is not there *creates* it, whatever resourceVersion it names (seen on 1.34.4), and only a UID makes that a conflict.\n",
            table()
        );
        if std::env::var("INSTA_UPDATE").is_ok_and(|v| v == "always") {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "run with INSTA_UPDATE=always");
    }
}
