//! The timeline as SVG, drawn once for wide screens and paper and once for phones.
//!
//! # Invariants
//! - Text is never wider than the room it stands in: it is cut with an ellipsis or left to the tooltip.
//! - Two texts of a row never overlap: a bar's label uses only the part that no later bar covers.
//! - Its size depends on lanes, not on the length of the history: lanes are capped by the story.
//!
//! # Two drawings, not one that shrinks
//! A picture of 1,100 units squeezed into a phone has letters of four pixels. The narrow drawing puts each lane's name
//! above its bar instead; a style sheet shows one of the two.

use std::fmt::Write;

use rackrift_checkers::history::Nanos;

use super::axis::Axis;
use crate::escape;
use crate::story::{ClientLane, Done, Glyph, Group, Lane, Look, RackOf, Span, Story, Window};
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
struct Layout {
    name: &'static str,
    width: f64,
    /// Where bars begin.
    left: f64,
    /// Names above bars instead of before them.
    above: bool,
    /// Least distance of ticks.
    apart: f64,
}

const WIDE: Layout = Layout { name: "wide", width: 1100.0, left: 226.0, above: false, apart: 56.0 };
const NARROW: Layout = Layout { name: "narrow", width: 358.0, left: 10.0, above: true, apart: 58.0 };

/// Height of a bar.
const BAR: f64 = 16.0;
/// Space between two bars.
const GAP: f64 = 6.0;
/// Height of a client lane.
const AREA: f64 = 34.0;
/// Average width of a letter at the bars' font size of 11, of the names' size 12, and of bold text.
const LETTER: f64 = 6.3;
const NAME_LETTER: f64 = 6.9;
/// Most columns of a rate curve.
const BUCKETS: usize = 180;

/// Both drawings, wide first.
pub(super) fn draw(story: &Story, flags: &[Flag]) -> String {
    let mut out = Drawing::new(WIDE, story).finish(story, flags);
    out.push_str(&Drawing::new(NARROW, story).finish(story, flags));
    out
}

struct Drawing {
    layout: Layout,
    axis: Axis,
    y: f64,
    body: String,
}

/// Cuts a text to a width, `None` if not even a few letters fit.
fn fit(text: &str, width: f64, letter: f64) -> Option<String> {
    let room = (width / letter).floor().max(0.0) as usize;
    let letters = text.chars().count();
    if letters <= room {
        return Some(text.to_owned());
    }
    (room >= 5).then(|| text.chars().take(room - 1).collect::<String>().trim_end().to_owned() + "…")
}

fn rack(rack: RackOf) -> String {
    rack.map_or("rx".to_owned(), |i| format!("r{}", i % 6))
}

impl Drawing {
    fn new(layout: Layout, story: &Story) -> Self {
        let axis = Axis {
            left: layout.left,
            width: layout.width - layout.left - 14.0,
            end: story.end,
            zero: story.zero,
        };
        Self { layout, axis, y: 46.0, body: String::new() }
    }

    fn finish(mut self, story: &Story, flags: &[Flag]) -> String {
        for group in &story.groups {
            self.group(group);
        }
        if !story.clients.is_empty() {
            self.clients(&story.clients);
        }
        let Layout { name, width, .. } = self.layout;
        let height = self.y + 10.0;
        let mut out = String::with_capacity(self.body.len() + 8_000);
        let _ = write!(
            out,
            "<svg class=\"tl {name}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-labelledby=\"tl-{name}-t\" data-left=\"{:.1}\" data-right=\"{:.1}\" data-end=\"{}\" \
             data-zero=\"{}\"><title id=\"tl-{name}-t\">{}</title>",
            self.axis.left,
            self.axis.right(),
            self.axis.end,
            self.axis.zero,
            escape::html(&summary(story)),
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

    fn moment(&self, t: Nanos) -> String {
        words::moment(t, self.axis.zero)
    }

    /// Left end and width of a bar, wide enough to be seen.
    fn bar(&self, from: Nanos, to: Nanos) -> (f64, f64) {
        let x = self.axis.x(from);
        let w = (self.axis.x(to) - x).max(1.5);
        (x.min(self.axis.right() - w), w)
    }

    fn title(&mut self, title: &str) {
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
    fn names(&mut self, name: &str, note: &str, middle: f64) {
        let (start, end) =
            if self.layout.above { (10.0, self.axis.right()) } else { (18.0, self.layout.left - 8.0) };
        if self.layout.above && name.is_empty() && note.is_empty() {
            return;
        }
        let y = if self.layout.above { self.y + 10.0 } else { self.y + middle + 4.0 };
        let room = end - start;
        let wide = |text: &str, letter: f64| text.chars().count() as f64 * letter;
        let note_width = wide(note, LETTER);
        let keeps_note = !note.is_empty() && wide(name, NAME_LETTER) + note_width + 8.0 <= room;
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

    fn group(&mut self, group: &Group) {
        self.title(&group.title);
        let mut tops: Vec<f64> = Vec::with_capacity(group.lanes.len());
        for (place, lane) in group.lanes.iter().enumerate() {
            self.names(&lane.name, &lane.note, BAR / 2.0);
            tops.push(self.y);
            self.lane(lane);
            self.y += BAR + GAP;
            if !lane.caption.is_empty() {
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

    fn clients(&mut self, lanes: &[ClientLane]) {
        self.title("Clients: lease operations a second");
        let columns = BUCKETS.min((self.axis.width / 3.0) as usize).max(1);
        for lane in lanes {
            let rate = Rate::of(lane, self.axis.end, columns);
            let note = format!("at most {} a second", words::count(rate.top.ceil() as u64));
            self.names(&lane.name, &note, AREA / 2.0);
            let base = self.y + AREA;
            let (left, width) = (self.axis.left, self.axis.width);
            let step = width / columns as f64;
            let _ = write!(
                self.body,
                "<path d=\"M{left:.1} {base:.1}h{width:.1}\" class=\"base\"/><path d=\"M{left:.1} {base:.1}"
            );
            let high = |n: f64| base - AREA * (n / rate.top.max(1e-9)).min(1.0);
            for (i, n) in rate.ok.iter().enumerate() {
                let _ = write!(self.body, "V{:.1}H{:.1}", high(*n), left + step * (i + 1) as f64);
            }
            let _ = write!(
                self.body,
                "V{base:.1}z\" class=\"area {}\"><title>{}: {} ok</title></path>",
                rack(lane.rack),
                escape::html(&lane.name),
                words::count(lane.count(Done::Ok) as u64)
            );
            let mut errors = String::new();
            for (i, n) in rate.bad.iter().enumerate().filter(|(_, n)| **n > 0.0) {
                let top = high(*n).min(base - 2.0);
                let _ =
                    write!(errors, "M{:.1} {base:.1}V{top:.1}h{step:.1}V{base:.1}z", left + step * i as f64);
            }
            if !errors.is_empty() {
                let (fail, info) = (lane.count(Done::Fail), lane.count(Done::Info));
                let _ = write!(
                    self.body,
                    "<path d=\"{errors}\" class=\"errs\"><title>{} failed, {} unknown</title></path>",
                    words::count(fail as u64),
                    words::count(info as u64)
                );
            }
            self.y += AREA + 8.0;
        }
    }
}

/// Rates of a client lane by column, operations a second.
struct Rate {
    ok: Vec<f64>,
    bad: Vec<f64>,
    top: f64,
}

impl Rate {
    fn of(lane: &ClientLane, end: Nanos, columns: usize) -> Self {
        let mut ok = vec![0.0; columns];
        let mut bad = vec![0.0; columns];
        let second = 1e9 * columns as f64 / end as f64;
        for sample in &lane.samples {
            let place = (u128::from(sample.done) * columns as u128 / u128::from(end)).min(columns as u128 - 1)
                as usize;
            if sample.how == Done::Ok {
                ok[place] += second;
            } else {
                bad[place] += second;
            }
        }
        let top = ok.iter().chain(&bad).copied().fold(0.0, f64::max);
        Self { ok, bad, top }
    }
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
