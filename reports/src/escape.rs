//! Makes text that came from a host, a file or a person safe to show.
//!
//! # Invariants
//! - No output of this crate holds a control character, or a character that turns the reading direction, that
//!   came from its input: they are shown as visible signs, so nothing is hidden and nothing is lost in silence.
//! - HTML text and attribute values share one escape; it is also right inside SVG.
//!
//! # Whole structures, not fields
//! [`cleaned`] walks a structure as JSON and cleans each string of it, instead of cleaning where a field is
//! shown: a field that is added later cannot be forgotten.

use std::fmt::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Characters kept of one string; what a host says may be megabytes.
const LONGEST: usize = 2_000;

/// Puts a visible sign in place of each control character and each direction mark.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// [`visible`] text, cut after [`LONGEST`] characters, saying how many more there were.
pub(crate) fn tame(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => visible(text),
        Some((end, _)) => {
            format!("{} … ({} more characters)", visible(&text[..end]), text[end..].chars().count())
        }
    }
}

/// A copy with every string [`tame`]d.
pub(crate) fn cleaned<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let mut json = serde_json::to_value(value).expect("because run.json's types have no fallible serializer");
    walk(&mut json);
    serde_json::from_value(json).expect("because only the text of strings was changed")
}

fn walk(value: &mut Value) {
    match value {
        Value::String(text) => *text = tame(text),
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(fields) => fields.values_mut().for_each(walk),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Text for an HTML or SVG element or attribute value.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in tame(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The escape of every `{{ … }}` in a template: [`html`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markup;

impl askama::filters::Escaper for Markup {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> std::fmt::Result {
        dest.write_str(&html(string))
    }
}

/// Text for a markdown paragraph or table cell: nothing in it starts markup, a link or a new cell.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in tame(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A markdown code span: its fence is longer than any run of backticks inside. `|` is escaped for tables.
pub(crate) fn code(text: &str) -> String {
    let text = tame(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Lower-case letters, digits and single hyphens, for anchors; never empty.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(80) {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "x".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_signs() {
        assert_eq!(visible("a\x1b[31mb\nc\u{202e}d"), "a␛[31mb␊c⟨U+202E⟩d");
    }

    #[test]
    fn long_text_says_what_is_missing() {
        assert!(tame(&"x".repeat(LONGEST + 7)).ends_with("… (7 more characters)"));
    }

    #[test]
    fn code_spans_survive_backticks_and_bars() {
        assert_eq!(code("a``b|c"), "```a``b\\|c```");
        assert_eq!(code("`"), "`` ` ``");
    }

    #[test]
    fn slugs_are_never_empty() {
        assert_eq!(slug("lease-takeover/kube-scheduler"), "lease-takeover-kube-scheduler");
        assert_eq!(slug("…"), "x");
    }
}
