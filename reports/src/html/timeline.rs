//! The timeline as SVG: lanes of faults, leases, nodes, pods and clients on one axis.
//!
//! # Invariants
//! - Two texts of a row never overlap: a bar's label uses only the part that no later bar covers.
//! - Its size depends on lanes, not on the length of the history: lanes are capped by the story.
//!

use std::fmt::Write;

use super::drawing::{Drawing, Flag, LAYOUTS, LETTER, fit, rack};
use crate::escape;
use crate::story::{Glyph, Group, Lane, Look, Span, Story, Window};
use crate::words;

/// Height of a bar.
const BAR: f64 = 16.0;
/// Space between two bars.
const GAP: f64 = 6.0;

/// Both drawings, wide first.
pub(super) fn draw(story: &Story, flags: &[Flag]) -> String {
    let title = summary(story);
    let one = |layout| {
        let mut drawing = Drawing::new(layout, story);
        for group in &story.groups {
            drawing.group(group);
        }
        if !story.clients.is_empty() {
            drawing.rates(&story.clients);
        }
        drawing.finish("tl", &title, story, flags)
    };
    LAYOUTS.map(one).concat()
}

impl Drawing {
    fn group(&mut self, group: &Group) {
        self.title(&group.title);
        let mut tops: Vec<f64> = Vec::with_capacity(group.lanes.len());
        for (place, lane) in group.lanes.iter().enumerate() {
            self.names(&lane.name, &lane.note, BAR / 2.0);
            tops.push(self.y);
            self.lane(lane);
            self.y += BAR + GAP;
            if !lane.caption.is_empty() && !self.layout.above && !is_silent(lane) {
                let room = self.axis.width;
                if let Some(caption) = fit(&lane.caption, room, 5.9) {
                    let (x, y) = (self.axis.left, self.y + 6.0);
                    let caption = escape::html(&caption);
                    let _ =
                        write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"cap\">{caption}</text>");
                }
                self.y += 12.0;
            }
            let ending: Vec<&Window> = group.windows.iter().filter(|w| w.lanes.1 == place).collect();
            if !ending.is_empty() {
                self.windows(&ending, &tops);
            }
        }
        for words in &group.dropped {
            let (x, y) = (self.axis.left, self.y + 6.0);
            let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"cap\">{words}</text>");
            self.y += 14.0;
        }
        self.y += 10.0;
    }

    /// Windows that end at the lane just drawn: frames, and below them as many labels as have room.
    fn windows(&mut self, windows: &[&Window], tops: &[f64]) {
        let bottom = self.y - GAP + 3.0;
        let mut ends = [f64::MIN, f64::MIN];
        let mut used = 0;
        for window in windows {
            let top = tops[window.lanes.0] - 3.0;
            let (x, w) = self.bar(window.from, window.to);
            let label = escape::html(&window.label);
            let _ = write!(
                self.body,
                "<g class=\"dup\"><rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{w:.1}\" height=\"{:.1}\"/>\
                 <title>{label}: {} to {}</title></g>",
                bottom - top,
                self.moment(window.from),
                self.moment(window.to)
            );
            let half = window.label.chars().count() as f64 * 6.6 / 2.0;
            let middle =
                (x + w / 2.0).clamp(self.layout.left.max(2.0) + half, self.layout.width - half - 2.0);
            if let Some(row) = ends.iter().position(|end| middle - half > end + 6.0) {
                ends[row] = middle + half;
                used = used.max(row + 1);
                let y = self.y + 9.0 + row as f64 * 13.0;
                let _ =
                    write!(self.body, "<text x=\"{middle:.1}\" y=\"{y:.1}\" class=\"dupt\">{label}</text>");
            }
        }
        self.y += 13.0 * used as f64 + 4.0;
    }

    fn lane(&mut self, lane: &Lane) {
        let (y, left, width) = (self.y, self.axis.left, self.axis.width);
        let _ = write!(
            self.body,
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" class=\"track\"/>"
        );
        if is_silent(lane) {
            let (x, y) = (left + 5.0, y + BAR - 4.0);
            let words = if lane.caption.is_empty() { "nothing heard" } else { lane.caption.as_str() };
            let words = escape::html(&fit(words, width - 10.0, 5.9).unwrap_or_default());
            let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"cap\">{words}</text>");
        }
        let mut spans: Vec<&Span> = lane.spans.iter().collect();
        spans.sort_by_key(|s| (layer(s.look), s.from));
        let boxes: Vec<(f64, f64)> = spans.iter().map(|s| self.bar(s.from, s.to)).collect();
        for (place, span) in spans.iter().enumerate() {
            let (x, w) = boxes[place];
            self.span(span, x, w);
            let over =
                spans[place + 1..].iter().zip(&boxes[place + 1..]).filter(|(s, _)| s.look != Look::Outline);
            if span.look != Look::Outline {
                let (from, room) = widest(x, w, over.map(|(_, b)| *b));
                self.label(span, from, room);
            }
        }
        for mark in &lane.marks {
            let x = self.axis.x(mark.at);
            let (top, low, mid) = (y - 3.0, y + BAR + 3.0, y + BAR / 2.0);
            let shape = match mark.glyph {
                Glyph::Step => format!("<path d=\"M{x:.1} {top:.1}V{low:.1}\" class=\"step\"/>"),
                Glyph::Stop => format!("<path d=\"M{x:.1} {top:.1}V{low:.1}\" class=\"stop\"/>"),
                Glyph::Start => {
                    format!("<path d=\"M{x:.1} {top:.1}V{low:.1}l4 -3l-4 -3\" class=\"start\"/>")
                }
                Glyph::Missing => {
                    format!("<circle cx=\"{x:.1}\" cy=\"{mid:.1}\" r=\"4\" class=\"missing\"/>")
                }
                Glyph::Lost => {
                    format!("<path d=\"M{x:.1} {top:.1}l4 8l-4 8l-4 -8z\" class=\"lost\"/>")
                }
            };
            let tip = escape::html(&mark.tip);
            let _ = write!(self.body, "<g>{shape}<title>{tip} at {}</title></g>", self.moment(mark.at));
        }
    }

    fn span(&mut self, span: &Span, x: f64, w: f64) {
        let (mut y, mut h) = (self.y, BAR);
        let class = match span.look {
            Look::Holds(r) => format!("bar {}", rack(r)),
            Look::Stale(r) => format!("stale s{}", rack(r)),
            Look::Weak(r) => format!("weak {}", rack(r)),
            Look::Tries => "tries".to_owned(),
            Look::Tail => "tail".to_owned(),
            Look::Good => "good".to_owned(),
            Look::Bad => "bad".to_owned(),
            Look::Fault => "fault".to_owned(),
            Look::Asked => "asked".to_owned(),
            Look::Outline => {
                (y, h) = (self.y - 2.0, BAR + 4.0);
                "outline".to_owned()
            }
        };
        let tip = escape::html(if span.tip.is_empty() { &span.label } else { &span.tip });
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"2\" class=\"{class}\">\
             <title>{tip} · {} to {} ({})</title></rect>",
            self.moment(span.from),
            self.moment(span.to),
            words::length(span.to.saturating_sub(span.from)),
        );
    }

    fn label(&mut self, span: &Span, x: f64, room: f64) {
        let Some(label) = fit(&span.label, room - 9.0, LETTER).filter(|l| !l.is_empty()) else { return };
        let filled = match span.look {
            Look::Holds(_) | Look::Good | Look::Fault => "in",
            _ => "in dark",
        };
        let (x, y) = (x + 5.0, self.y + BAR - 4.0);
        let label = escape::html(&label);
        let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{filled}\">{label}</text>");
    }
}

/// Whether nobody who counts said anything: the lane would be an empty strip.
fn is_silent(lane: &Lane) -> bool {
    lane.marks.is_empty() && lane.spans.iter().all(|s| s.look == Look::Outline)
}

/// Weak evidence lies below strong evidence, outlines lie on top.
fn layer(look: Look) -> u8 {
    match look {
        Look::Weak(_) => 0,
        Look::Outline => 2,
        _ => 1,
    }
}

/// The widest part of a bar that none of the others covers: its left end and width.
fn widest(x: f64, w: f64, others: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let mut covered: Vec<(f64, f64)> = others.filter(|(ox, ow)| *ox < x + w && ox + ow > x).collect();
    covered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best = (x, 0.0);
    let mut at = x;
    for (ox, ow) in covered.into_iter().chain([(x + w, 0.0)]) {
        if ox - at > best.1 {
            best = (at, ox - at);
        }
        at = at.max(ox + ow);
    }
    best
}

/// What the picture shows, in a sentence, for readers who do not see it.
pub(super) fn summary(story: &Story) -> String {
    let lanes: usize = story.groups.iter().map(|g| g.lanes.len()).sum();
    let groups: Vec<&str> = story.groups.iter().map(|g| g.title.as_str()).collect();
    let zero = match story.zero_name {
        "start" => "the start of the run".to_owned(),
        what => format!("the moment the {what} was in force"),
    };
    format!(
        "Timeline of {}: {}{}. Times count from {zero}. The same as a table is below.",
        words::counted(lanes + story.clients.len(), "lane"),
        groups.join(", "),
        if story.clients.is_empty() { "" } else { ", clients' rates" },
    )
}
