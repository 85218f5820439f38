//! Racks, their hosts, and what was cut between them, as SVG.
//!
//! # Invariants
//! - A line between two racks is drawn as cut only in the directions whose every planned edge a probe saw cut.
//! - Racks are drawn one below the other: the picture is as readable on a phone as on paper.

use std::collections::BTreeMap;
use std::fmt::Write;

use rackrift_checkers::facts::Facts;

use crate::escape;
use crate::story::{Racks, Story};
use crate::words;

/// Most racks and most hosts of a rack that are drawn.
const MOST_RACKS: usize = 8;
const MOST_HOSTS: usize = 24;
const WIDTH: f64 = 358.0;

/// Planned, observed and healed edges of one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    planned: usize,
    seen: usize,
    healed: usize,
}

/// One direction between two racks, for the table beside the picture.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    /// `a → b`.
    pub(super) name: String,
    /// Edges that were to be cut.
    pub(super) planned: usize,
    /// ... that a probe saw cut.
    pub(super) seen: usize,
    /// ... that a probe saw healed.
    pub(super) healed: usize,
}

/// The picture and its words.
#[derive(Debug, Clone)]
pub(super) struct Topology {
    /// SVG.
    pub(super) svg: String,
    /// The same as rows.
    pub(super) directions: Vec<Direction>,
}

/// Draws the racks; `None` where the facts name none.
pub(super) fn draw(facts: &Facts, story: &Story) -> Option<Topology> {
    if facts.racks.is_empty() {
        return None;
    }
    let racks = Racks::new(facts);
    let mut cuts: BTreeMap<(usize, usize), Cut> = BTreeMap::new();
    for edge in story.faults.iter().flat_map(|f| &f.edges) {
        let (Some(from), Some(to)) = (racks.of(&edge.from), racks.of(&edge.to)) else { continue };
        let cut = cuts.entry((from, to)).or_default();
        cut.planned += 1;
        cut.seen += usize::from(edge.observed.is_some());
        cut.healed += usize::from(edge.healed.is_some());
    }
    let name = |i: usize| facts.racks.get(i).map_or("?", |r| r.name.as_str());
    let directions = cuts.iter().map(|((from, to), cut)| Direction {
        name: if from == to {
            format!("within {}", name(*from))
        } else {
            format!("{} → {}", name(*from), name(*to))
        },
        planned: cut.planned,
        seen: cut.seen,
        healed: cut.healed,
    });
    Some(Topology { svg: picture(facts, &cuts), directions: directions.collect() })
}

struct Placed {
    top: f64,
    bottom: f64,
}

fn picture(facts: &Facts, cuts: &BTreeMap<(usize, usize), Cut>) -> String {
    let shown = facts.racks.len().min(MOST_RACKS);
    // Pairs that are not neighbours run down the right side, each in a channel of its own.
    let far: Vec<(usize, usize)> = pairs(cuts).filter(|(a, b)| b - a > 1 && *b < shown).collect();
    let right = WIDTH - 8.0 - 26.0 * far.len() as f64;
    let mut body = String::new();
    let mut places: Vec<Placed> = Vec::new();
    let mut y = 6.0;
    for (i, rack) in facts.racks.iter().take(MOST_RACKS).enumerate() {
        let top = y;
        let mut inner = String::new();
        let name = escape::html(&rack.name.chars().take(40).collect::<String>());
        let _ = write!(
            inner,
            "<text x=\"18\" y=\"{:.1}\" class=\"rackname t{}\">rack {name}</text>",
            y + 18.0,
            i % 6
        );
        y += 28.0;
        let mut x = 18.0;
        for (host, roles) in rack.hosts.iter().take(MOST_HOSTS) {
            let host_name: String = host.chars().take(18).collect();
            let role: String = roles.join(", ").chars().take(22).collect();
            let letters = (host_name.chars().count() as f64 * 7.4).max(role.chars().count() as f64 * 5.6);
            let w = (letters + 16.0).max(46.0);
            if x + w > right - 8.0 && x > 18.0 {
                x = 18.0;
                y += 40.0;
            }
            let _ = write!(
                inner,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"34\" rx=\"4\" class=\"host\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"hostname\">{}</text>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"role\">{}</text>",
                x + w / 2.0,
                y + 15.0,
                escape::html(&host_name),
                x + w / 2.0,
                y + 28.0,
                escape::html(&role),
            );
            x += w + 6.0;
        }
        if rack.hosts.len() > MOST_HOSTS {
            let _ = write!(
                inner,
                "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"cap\">+ {}</text>",
                y + 20.0,
                rack.hosts.len() - MOST_HOSTS
            );
        }
        y += 44.0;
        let _ = write!(
            body,
            "<rect x=\"8\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"8\" class=\"rack b{}\"/>{inner}",
            right - 8.0,
            y - top,
            i % 6
        );
        places.push(Placed { top, bottom: y });
        y += 44.0;
    }
    for i in 1..shown {
        let cut = [get(cuts, i - 1, i), get(cuts, i, i - 1)];
        neighbours(&mut body, facts, i, cut, places[i - 1].bottom, places[i].top, right);
    }
    for (channel, (a, b)) in far.iter().enumerate() {
        let x = right + 14.0 + 26.0 * channel as f64;
        let cut = [get(cuts, *a, *b), get(cuts, *b, *a)];
        beside(
            &mut body,
            cut,
            (places[*a].top + places[*a].bottom) / 2.0,
            (places[*b].top + places[*b].bottom) / 2.0,
            right,
            x,
        );
    }
    let height = y - 36.0;
    format!(
        "<svg class=\"topo\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-labelledby=\"topo-t\"><title id=\"topo-t\">{}</title>{body}</svg>",
        escape::html(&told(facts, cuts))
    )
}

fn pairs(cuts: &BTreeMap<(usize, usize), Cut>) -> impl Iterator<Item = (usize, usize)> {
    let mut pairs: Vec<(usize, usize)> =
        cuts.keys().filter(|(a, b)| a != b).map(|(a, b)| (*a.min(b), *a.max(b))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter()
}

fn get(cuts: &BTreeMap<(usize, usize), Cut>, from: usize, to: usize) -> Cut {
    cuts.get(&(from, to)).copied().unwrap_or_default()
}

/// How a pair of directions looks, and its sign.
fn look([down, up]: [Cut; 2]) -> &'static str {
    let bites = |c: Cut| c.planned > 0 && c.seen == c.planned;
    match (bites(down), bites(up)) {
        (true, true) => "cut",
        (false, false) if down.planned + up.planned == 0 => "link",
        (false, false) => "miss",
        _ => "half",
    }
}

fn neighbours(out: &mut String, facts: &Facts, i: usize, cut: [Cut; 2], top: f64, bottom: f64, right: f64) {
    let x = 40.0;
    let middle = (top + bottom) / 2.0;
    let class = look(cut);
    let _ = write!(out, "<path d=\"M{x} {top:.1}V{bottom:.1}\" class=\"{class}\"/>");
    if class != "link" {
        let _ = write!(out, "<path d=\"M{:.1} {:.1}l12 -8m-12 8\" class=\"slash\"/>", x - 6.0, middle + 4.0);
    }
    let (a, b) = (&facts.racks[i - 1].name, &facts.racks[i].name);
    let words = [phrase(a, b, cut[0]), phrase(b, a, cut[1])];
    let said: Vec<&String> = words.iter().flatten().collect();
    if said.is_empty() {
        let _ = write!(out, "<text x=\"56\" y=\"{:.1}\" class=\"cap\">not cut</text>", middle + 4.0);
    }
    for (line, text) in said.iter().enumerate() {
        let y = middle + if said.len() == 1 { 4.0 } else { -3.0 + 14.0 * line as f64 };
        let text: String = text.chars().take(((right - 60.0) / 6.0) as usize).collect();
        let _ = write!(out, "<text x=\"56\" y=\"{y:.1}\" class=\"cap cutt\">{}</text>", escape::html(&text));
    }
}

fn phrase(from: &str, to: &str, cut: Cut) -> Option<String> {
    (cut.planned > 0).then(|| format!("{from} → {to}: {} of {} edges cut", cut.seen, cut.planned))
}

fn beside(out: &mut String, cut: [Cut; 2], from: f64, to: f64, left: f64, x: f64) {
    let class = look(cut);
    let middle = (from + to) / 2.0;
    let (seen, planned) = (cut[0].seen + cut[1].seen, cut[0].planned + cut[1].planned);
    let _ = write!(
        out,
        "<path d=\"M{left:.1} {from:.1}H{x:.1}V{to:.1}H{left:.1}\" class=\"{class}\"/>\
         <path d=\"M{:.1} {:.1}l12 -8\" class=\"slash\"/>\
         <text transform=\"translate({:.1} {middle:.1}) rotate(90)\" class=\"cap cutt mid\">{seen} of {planned} cut</text>",
        x - 6.0,
        middle - 36.0,
        x + 4.0
    );
}

fn told(facts: &Facts, cuts: &BTreeMap<(usize, usize), Cut>) -> String {
    let racks: Vec<String> = facts
        .racks
        .iter()
        .take(MOST_RACKS)
        .map(|r| format!("rack {} with {}", r.name, words::counted(r.hosts.len(), "host")))
        .collect();
    let planned: usize = cuts.values().map(|c| c.planned).sum();
    let seen: usize = cuts.values().map(|c| c.seen).sum();
    format!("Topology: {}. {seen} of {planned} directed edges were seen cut.", racks.join(", "))
}
