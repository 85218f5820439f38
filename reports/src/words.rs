//! The words of the reports: verdicts, classes, lengths of time and moments.
//!
//! # Invariants
//! - A verdict is always a sign *and* a word; colour only repeats them.
//! - Every length of time in every report is written by [`length`], every moment by [`moment`].

use chrono::DateTime;
use rackrift_checkers::facts::Facts;
use rackrift_checkers::history::Nanos;
use rackrift_checkers::verdict::{CheckResult, Class, Verdict};

/// How a verdict looks: a sign of one column, a word, and a name for styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    /// One column wide.
    pub(crate) sign: &'static str,
    /// What a person reads.
    pub(crate) word: &'static str,
    /// Name of its style.
    pub(crate) style: &'static str,
}

const fn word(sign: &'static str, word: &'static str, style: &'static str) -> Word {
    Word { sign, word, style }
}

/// The word of one check. What is not promised and was looked at is `measured`, not `pass`.
pub(crate) fn of_check(check: &CheckResult) -> Word {
    match (check.class, check.verdict) {
        (Class::NotPromised, Verdict::Pass) => word("≈", "measured", "meas"),
        (_, Verdict::Pass) => word("✓", "pass", "pass"),
        (_, Verdict::Fail) => word("✗", "fail", "fail"),
        (_, Verdict::Unknown) => word("?", "unknown", "unkn"),
        (_, Verdict::Invalid) => word("⊘", "invalid", "unkn"),
        (_, Verdict::Error) => word("!", "error", "fail"),
        (_, Verdict::Skipped) => word("○", "skipped", "skip"),
    }
}

/// The word of a whole run.
pub(crate) fn of_run(verdict: Verdict) -> Word {
    match verdict {
        Verdict::Pass => word("✓", "passed", "pass"),
        Verdict::Fail => word("✗", "failed", "fail"),
        Verdict::Unknown => word("?", "undecided", "unkn"),
        Verdict::Invalid => word("⊘", "invalid", "unkn"),
        Verdict::Error => word("!", "error", "fail"),
        Verdict::Skipped => word("○", "nothing checked", "skip"),
    }
}

/// What a verdict of a run means, for a reader who sees the word for the first time.
pub(crate) fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "Everything that was checked held.",
        Verdict::Fail => "At least one check was broken; its witness is below.",
        Verdict::Unknown => "At least one check could not be decided; what was missing is said below.",
        Verdict::Invalid => {
            "The run proves nothing: the fault did not bite, or what a check needs did not happen."
        }
        Verdict::Error => "A checker itself failed; the history is kept and can be checked again.",
        Verdict::Skipped => "No check could be applied in this lab.",
    }
}

/// How much is promised, in a word or two.
pub(crate) fn class(class: Class) -> &'static str {
    match class {
        Class::Promised => "promised",
        Class::FromCode => "from code",
        Class::NotPromised => "not promised",
        Class::Evidence => "harness",
    }
}

/// What a class means, as a sentence.
pub(crate) fn class_meaning(class: Class) -> &'static str {
    match class {
        Class::Promised => "documented by Kubernetes or etcd: a breach is a failure",
        Class::FromCode => "follows from the code and the flags in force: a breach is a failure",
        Class::NotPromised => "nobody promises it: measured, never a failure",
        Class::Evidence => "about the run itself: did the fault bite, is the evidence there",
    }
}

/// Why nobody promises what a check of class [`Class::NotPromised`] measured, by the check's id.
pub(crate) fn why_not_promised(id: &str) -> &'static str {
    let family = id.split('/').next().unwrap_or(id);
    match family {
        "duplicate-pods" => {
            "A controller replaces a pod as soon as the old one is marked for deletion. A node that cannot be \
             reached does not hear of it and runs the old one on, so more copies than wanted may run until the \
             racks hear each other again. Only a StatefulSet waits for the old pod's end."
        }
        "stale-reads" | "cache-staleness" => {
            "A read with resourceVersion=0 is answered from an API server's cache. A cut-off API server goes on \
             answering from it; only consistent reads are promised to be current."
        }
        f if f.starts_with("belief") || f.contains("overlap") => {
            "Leader election keeps the record exclusive, not what each process believes: nothing fences a leader \
             that is paused or late to notice."
        }
        _ => "No document and no code promises a bound here; the value is kept for comparison between runs.",
    }
}

/// A length of time: `0.4 ms`, `340 ms`, `20.3 s`, `2 min 35 s`, `1 h 4 min`.
pub(crate) fn length(ns: Nanos) -> String {
    let ms = ns as f64 / 1e6;
    let s = ns as f64 / 1e9;
    if ns == 0 {
        "0 s".to_owned()
    } else if ms < 9.95 {
        format!("{ms:.1} ms")
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else if s < 119.95 {
        format!("{s:.1} s")
    } else if s < 3_600.0 {
        let whole = s.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    } else {
        let whole = (s / 60.0).round() as u64;
        format!("{} h {} min", whole / 60, whole % 60)
    }
}

/// Like [`length`] but in seconds whatever the size, for bounds that are compared: `15.0 s`.
pub(crate) fn seconds(ns: Nanos) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A moment relative to `zero`, with a real minus sign: `+20.3 s`, `−0.25 s`; two places close to zero.
pub(crate) fn moment(at: Nanos, zero: Nanos) -> String {
    let s = (i128::from(at) - i128::from(zero)) as f64 / 1e9;
    let sign = if s < 0.0 { '−' } else { '+' };
    let s = s.abs();
    if s < 1.0 {
        format!("{sign}{s:.2} s")
    } else if s < 3_600.0 {
        format!("{sign}{s:.1} s")
    } else {
        format!("{sign}{:.0} min", s / 60.0)
    }
}

/// A count with thousands set apart by commas: `12,345`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// A count and its noun: `1 host`, `2 hosts`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(n as u64), if n == 1 { "" } else { "s" })
}

/// An RFC 3339 moment as `2026-11-30 21:20 UTC`; as it is, if it is none.
pub(crate) fn wall(rfc3339: &str) -> String {
    DateTime::parse_from_rfc3339(rfc3339)
        .map_or_else(|_| rfc3339.to_owned(), |t| t.to_utc().format("%Y-%m-%d %H:%M UTC").to_string())
}

/// A sentence this short stays with the one before it: alone it has lost what it speaks of.
const SHORT: usize = 60;

/// The sentences of an answer, each with its full stop.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut out: Vec<&str> = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        let end = text[at..].find(". ").map_or(text.len(), |i| at + i + 1);
        let next = text[end..].find(". ").map_or(text.len(), |i| end + i + 1);
        // The following sentence, if there is one, stays here when it is short.
        if end < text.len() && text[end..next].trim().chars().count() < SHORT {
            at = end + 1;
            continue;
        }
        out.push(text[from..end].trim());
        from = end;
        at = end + 1;
    }
    out.retain(|s| !s.is_empty());
    out
}

/// How to do it again: what for, and the command.
pub(crate) fn again(facts: &Facts) -> [(&'static str, String); 3] {
    let Facts { run, scenario, seed, .. } = facts;
    [
        ("run it again with the same seed", format!("rackrift run {scenario} --seed {seed}")),
        ("judge the saved run again", format!("rackrift check runs/{run}")),
        ("write these reports again", format!("rackrift report runs/{run}")),
    ]
}

/// Splits a sentence into plain pieces and lengths of time, which a report shows in bold.
pub(crate) fn lengths(sentence: &str) -> Vec<(bool, String)> {
    let words: Vec<&str> = sentence.split_inclusive(' ').collect();
    let mut out: Vec<(bool, String)> = Vec::new();
    let mut push = |bold: bool, text: &str| match out.last_mut() {
        Some((b, t)) if *b == bold => t.push_str(text),
        _ => out.push((bold, text.to_owned())),
    };
    let mut i = 0;
    while i < words.len() {
        let number = words[i].trim_end();
        let unit = words.get(i + 1).map_or("", |w| w.trim_end());
        let bare = unit.trim_end_matches(['.', ',', ';', ':', ')', '(']);
        let is_number = is_number(number);
        // `15.0 to 23.8 s` is one length.
        if is_number && unit == "to" && is_length(words.get(i + 2), words.get(i + 3)) {
            push(true, words[i]);
            push(true, words[i + 1]);
            i += 2;
        } else if is_number && matches!(bare, "s" | "ms" | "min" | "h") {
            push(true, &format!("{number} {bare}"));
            push(false, &words[i + 1][bare.len()..]);
            i += 2;
        } else {
            push(false, words[i]);
            i += 1;
        }
    }
    out
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

fn is_length(number: Option<&&str>, unit: Option<&&str>) -> bool {
    let unit = unit.map_or("", |u| u.trim_end().trim_end_matches(['.', ',', ';', ':', ')', '(']));
    number.is_some_and(|n| is_number(n.trim_end())) && matches!(unit, "s" | "ms" | "min" | "h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_sizes() {
        let shown: Vec<String> =
            [0, 400_000, 340_000_000, 20_300_000_000, 155_000_000_000, 3_840_000_000_000]
                .map(length)
                .to_vec();
        assert_eq!(shown, ["0 s", "0.4 ms", "340 ms", "20.3 s", "2 min 35 s", "1 h 4 min"]);
    }

    #[test]
    fn moments_before_and_after() {
        assert_eq!(moment(19_750_000_000, 20_000_000_000), "−0.25 s");
        assert_eq!(moment(u64::MAX, 0), "+307445735 min");
        assert_eq!(moment(40_000_000_000, 20_000_000_000), "+20.0 s");
    }

    #[test]
    fn lengths_are_found_in_a_sentence() {
        let pieces = lengths("It moved 20.3 s after, in 7 steps.");
        assert_eq!(
            pieces,
            [
                (false, "It moved ".to_owned()),
                (true, "20.3 s".to_owned()),
                (false, " after, in 7 steps.".to_owned())
            ]
        );
    }

    #[test]
    fn lengths_lose_nothing() {
        for text in ["", " ", "1 to 2 s", "1 to", "1 to 2", "5", "5 s", "5 s.", "a  5  s b ", "1.2 ms, 3 s"] {
            let joined: String = lengths(text).into_iter().map(|(_, t)| t).collect();
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn sentences_keep_numbers_whole() {
        let long = "Nobody led twice, which is what the flags in force promise to everybody who waits.";
        assert_eq!(sentences(&format!("It took 1.5 s. {long}")), ["It took 1.5 s.", long]);
        assert_eq!(sentences("It took 1.5 s. Not promised."), ["It took 1.5 s. Not promised."]);
        assert_eq!(sentences(&format!("A. B. {long} C. D")), ["A. B.", &format!("{long} C. D")]);
        assert!(sentences(" ").is_empty());
        for text in ["é. ü. ", ". . .", "a. ", "."] {
            assert!(!sentences(text).concat().is_empty());
        }
    }

    #[test]
    fn thousands() {
        assert_eq!([1, 999, 1_000, 1_234_567].map(count), ["1", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn wall_clock_or_what_was_there() {
        assert_eq!(wall("2026-11-30T21:20:07Z"), "2026-11-30 21:20 UTC");
        assert_eq!(wall("yesterday"), "yesterday");
    }
}
