//! What all drawings over the axis of time share: frame, grid, shades of the faults, flags, names of lanes.
//!
//! # Invariants
//! - Text is never wider than the room it stands in: it is cut with an ellipsis or left to the tooltip.
//!
//! # Two drawings, not one that shrinks
//! A picture of 1,100 units squeezed into a phone has letters of four pixels. The narrow drawing puts each lane's name
//! above its bar instead; a style sheet shows one of the two.

use std::fmt::Write;

use rackrift_checkers::history::Nanos;

use super::axis::Axis;
use crate::escape;
use crate::story::{RackOf, Story};
use crate::words;

/// A moment that the findings below the timeline refer to.
#[derive(Debug, Clone)]
pub(super) struct Flag {
    /// The finding's number.
    pub(super) number: usize,
    /// When, ns.
    pub(super) at: Nanos,
    /// Name of its style.
    pub(super) style: &'static str,
}

/// Measures of one drawing, in units that are CSS pixels at full size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    pub(super) width: f64,
    /// Where bars begin.
    pub(super) left: f64,
    /// Names above bars instead of before them.
    pub(super) above: bool,
    /// Least distance of ticks.
    apart: f64,
}

/// For wide screens and paper, then for phones.
pub(super) const LAYOUTS: [Layout; 2] = [
    Layout { name: "wide", width: 1100.0, left: 252.0, above: false, apart: 56.0 },
    Layout { name: "narrow", width: 358.0, left: 10.0, above: true, apart: 58.0 },
];

/// Average width of a letter at the bars' font size of 11, and of the names' size 12.
pub(super) const LETTER: f64 = 6.3;
const NAME_LETTER: f64 = 6.7;

/// An SVG in the making.
pub(super) struct Drawing {
    pub(super) layout: Layout,
    pub(super) axis: Axis,
    /// Where the next row begins.
    pub(super) y: f64,
    pub(super) body: String,
}

/// Cuts a text to a width, `None` if not even a few letters fit.
pub(super) fn fit(text: &str, width: f64, letter: f64) -> Option<String> {
    let room = (width / letter).floor().max(0.0) as usize;
    let letters = text.chars().count();
    if letters <= room {
        return Some(text.to_owned());
    }
    (room >= 5).then(|| text.chars().take(room - 1).collect::<String>().trim_end().to_owned() + "…")
}

/// The style of a rack's colour.
pub(super) fn rack(rack: RackOf) -> String {
    rack.map_or("rx".to_owned(), |i| format!("r{}", i % 6))
}

impl Drawing {
    pub(super) fn new(layout: Layout, story: &Story) -> Self {
        let axis = Axis {
            left: layout.left,
            width: layout.width - layout.left - 14.0,
            end: story.end,
            zero: story.zero,
        };
        Self { layout, axis, y: 46.0, body: String::new() }
    }

    /// The whole SVG; `id` tells it from the page's other drawings, `title` is what it shows, in words.
    pub(super) fn finish(self, id: &str, title: &str, story: &Story, flags: &[Flag]) -> String {
        let Layout { name, width, .. } = self.layout;
        let height = self.y + 10.0;
        let mut out = String::with_capacity(self.body.len() + 8_000);
        let _ = write!(
            out,
            "<svg class=\"tl {name}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-labelledby=\"{id}-{name}\" data-left=\"{:.1}\" data-right=\"{:.1}\" data-end=\"{}\" \
             data-zero=\"{}\"><title id=\"{id}-{name}\">{}</title>",
            self.axis.left,
            self.axis.right(),
            self.axis.end,
            self.axis.zero,
            escape::html(title),
        );
        self.ground(&mut out, story, height);
        out.push_str(&self.body);
        self.flags(&mut out, flags, height);
        out.push_str("</svg>");
        out
    }

    /// Shades of the faults, grid and tick labels.
    fn ground(&self, out: &mut String, story: &Story, height: f64) {
        for (from, to) in story.shades() {
            let (x, w) = self.bar(from, to);
            let h = height - 36.0;
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" y=\"32\" width=\"{w:.1}\" height=\"{h:.1}\" class=\"shade\"/>"
            );
        }
        let ticks = self.axis.ticks(self.layout.apart, story.zero_name);
        let zero = self.axis.x(story.zero);
        for (t, label) in ticks {
            let x = self.axis.x(t);
            let is_zero = t == story.zero;
            let class = if is_zero { "grid zero" } else { "grid" };
            let _ = write!(out, "<path d=\"M{x:.1} 32V{:.1}\" class=\"{class}\"/>", height - 4.0);
            let half = label.chars().count() as f64 * LETTER / 2.0;
            let at = x.clamp(half + 2.0, self.layout.width - half - 2.0);
            // The first and last label are pushed inwards and may then meet the label of zero.
            if is_zero || (at - zero).abs() > half + 4.0 * LETTER / 2.0 + 6.0 {
                let class = if is_zero { "axis zero" } else { "axis" };
                let _ = write!(out, "<text x=\"{at:.1}\" y=\"26\" class=\"{class}\">{label}</text>");
            }
        }
    }

    /// Numbered flags of the findings; those that would lie on another are moved aside.
    fn flags(&self, out: &mut String, flags: &[Flag], height: f64) {
        let mut flags: Vec<&Flag> = flags.iter().collect();
        flags.sort_by_key(|f| (f.at, f.number));
        let mut free = 0.0_f64;
        for flag in flags {
            let x = self.axis.x(flag.at);
            let text = flag.number.to_string();
            let half = 4.0 + text.len() as f64 * 3.4;
            let at = x.max(free + half).min(self.layout.width - half - 1.0);
            if at < free + half {
                continue;
            }
            free = at + half + 2.0;
            let Flag { number, style, .. } = flag;
            let _ = write!(
                out,
                "<g id=\"flag-{}-{number}\" class=\"flag {style}\"><path d=\"M{at:.1} 12L{x:.1} 32V{:.1}\"/>\
                 <rect x=\"{:.1}\" y=\"0.5\" width=\"{:.1}\" height=\"12\" rx=\"3\"/>\
                 <text x=\"{at:.1}\" y=\"10\">{text}</text><title>finding {number} at {}</title></g>",
                self.layout.name,
                height - 4.0,
                at - half,
                half * 2.0,
                self.moment(flag.at),
            );
        }
    }

    /// A moment in words.
    pub(super) fn moment(&self, t: Nanos) -> String {
        words::moment(t, self.axis.zero)
    }

    /// Left end and width of a bar, wide enough to be seen.
    pub(super) fn bar(&self, from: Nanos, to: Nanos) -> (f64, f64) {
        let x = self.axis.x(from);
        let w = (self.axis.x(to) - x).max(1.5);
        (x.min(self.axis.right() - w), w)
    }

    /// A heading over the lanes that follow.
    pub(super) fn title(&mut self, title: &str) {
        let y = self.y;
        let width = self.layout.width;
        let _ = write!(self.body, "<path d=\"M0 {:.1}H{width:.0}\" class=\"rule\"/>", y - 6.0);
        if let Some(title) = fit(title, width - 20.0, 7.4) {
            let title = escape::html(&title);
            let _ = write!(self.body, "<text x=\"8\" y=\"{:.1}\" class=\"grp\">{title}</text>", y + 8.0);
        }
        self.y += 16.0;
    }

    /// A lane's name and note, before or above it; returns with `y` at the top of the bar.
    pub(super) fn names(&mut self, name: &str, note: &str, middle: f64) {
        let (start, end) =
            if self.layout.above { (10.0, self.axis.right()) } else { (18.0, self.layout.left - 8.0) };
        if self.layout.above && name.is_empty() && note.is_empty() {
            return;
        }
        let y = if self.layout.above { self.y + 10.0 } else { self.y + middle + 4.0 };
        let room = end - start;
        let wide = |text: &str, letter: f64| text.chars().count() as f64 * letter;
        let note_width = wide(note, LETTER);
        let keeps_note = !note.is_empty() && wide(name, NAME_LETTER) + note_width + 14.0 <= room;
        if let Some(shown) = fit(name, room, NAME_LETTER).filter(|s| !s.is_empty()) {
            let (shown, full) = (escape::html(&shown), escape::html(name));
            let _ = write!(
                self.body,
                "<text x=\"{start:.1}\" y=\"{y:.1}\" class=\"lab\">{shown}<title>{full} {}</title></text>",
                escape::html(note)
            );
        }
        if keeps_note {
            let note = escape::html(note);
            let _ = write!(self.body, "<text x=\"{end:.1}\" y=\"{y:.1}\" class=\"sub\">{note}</text>");
        }
        if self.layout.above {
            self.y += 14.0;
        }
    }
}
