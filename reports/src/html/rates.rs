//! Clients over time: answers a second for the timeline, and the latency of operations.
//!
//! # Invariants
//! - Columns are at least a second wide where the run is longer than [`FEWEST`] seconds, so a rate is a count.
//! - A refusal (conflict, exists, absent) is an answer; only failures and lost answers are drawn as errors.
//! - Size depends on the number of columns, not of operations.

use std::fmt::Write;

use rackrift_checkers::history::Nanos;

use super::drawing::{Drawing, LAYOUTS, rack};
use crate::escape;
use crate::story::{ClientLane, Done, Sample, Story};
use crate::words;

/// Height of a rate curve.
const AREA: f64 = 34.0;
/// Height of a latency plot.
const PLOT: f64 = 84.0;
/// Most API servers with curves; the table has them all.
const MOST_PLOTS: usize = 8;
/// Fewest and most columns of a curve.
const FEWEST: u64 = 20;
const MOST: u64 = 180;
/// Latencies that get a line of their own, ns.
const LINES: [Nanos; 6] = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];

/// The latency plots, wide first; `None` where no operation ended.
pub(super) fn latency(story: &Story) -> Option<String> {
    let lanes: Vec<&ClientLane> =
        story.clients.iter().filter(|c| !c.samples.is_empty()).take(MOST_PLOTS).collect();
    let all = || lanes.iter().flat_map(|l| &l.samples).map(|s| s.done - s.sent);
    let range = (all().min()?.max(100_000), all().max()?.max(1_000_000));
    let title = format!(
        "Latency of client operations over time through {}, on a logarithmic scale; the table below has the figures.",
        words::counted(lanes.len(), "API server")
    );
    let one = |layout| {
        let mut drawing = Drawing::new(layout, story);
        for lane in &lanes {
            drawing.latencies(lane, range);
        }
        drawing.finish("lat", &title, story, &[])
    };
    Some(LAYOUTS.map(one).concat())
}

impl Drawing {
    /// A curve of answers a second for each API server, with what went wrong in red at its foot.
    pub(super) fn rates(&mut self, lanes: &[ClientLane]) {
        self.title("Clients: lease operations a second");
        let columns = self.columns();
        for lane in lanes.iter().take(MOST_PLOTS) {
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
                "V{base:.1}z\" class=\"area {}\"><title>{}: {} ok, {} refused</title></path>",
                rack(lane.rack),
                escape::html(&lane.name),
                words::count(lane.count(Done::Ok) as u64),
                words::count(lane.count(Done::Refused) as u64)
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
        if lanes.len() > MOST_PLOTS {
            let (x, y) = (self.axis.left, self.y + 4.0);
            let more = words::counted(lanes.len() - MOST_PLOTS, "more curve");
            let _ = write!(
                self.body,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"cap\">{more} not drawn; see the table of clients</text>"
            );
            self.y += 12.0;
        }
    }

    /// Column by column: the span from the fastest to the slowest answer with the median, and each lost answer.
    fn latencies(&mut self, lane: &ClientLane, (low, high): (Nanos, Nanos)) {
        self.title(&lane.name);
        let (left, width, right) = (self.axis.left, self.axis.width, self.axis.right());
        let top = self.y + 4.0;
        let (log_low, log_high) =
            ((low as f64).log10(), (high as f64).log10().max((low as f64).log10() + 0.3));
        let level = |ns: Nanos| {
            let share = ((ns.max(1) as f64).log10() - log_low) / (log_high - log_low);
            top + PLOT * (1.0 - share.clamp(0.0, 1.0))
        };
        for line in LINES.into_iter().filter(|l| (low..=high).contains(l)) {
            let y = level(line);
            let (x, anchor) = if self.layout.above { (left + 1.0, "cap") } else { (left - 8.0, "sub") };
            let _ = write!(
                self.body,
                "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"rule\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" class=\"{anchor}\">{}</text>",
                y + if self.layout.above { -2.0 } else { 4.0 },
                words::length(line)
            );
        }
        let columns = self.columns();
        let step = width / columns as f64;
        let mut cells: Vec<Vec<Nanos>> = vec![Vec::new(); columns];
        let (mut spans, mut medians, mut errors) = (String::new(), String::new(), String::new());
        let mut wrong = vec![0.0_f64; columns];
        for sample in &lane.samples {
            let place = column(sample, self.axis.end, columns);
            let took = sample.done - sample.sent;
            if sample.how.answered() {
                cells[place].push(took);
            } else {
                wrong[place] = wrong[place].max(took as f64);
            }
        }
        for (i, cell) in cells.iter_mut().enumerate() {
            let x = left + step * (i as f64 + 0.5);
            if wrong[i] > 0.0 {
                let _ = write!(errors, "M{:.1} {:.1}l5 5m0 -5l-5 5", x - 2.5, level(wrong[i] as Nanos) - 2.5);
            }
            let (Some(least), Some(most)) = (cell.iter().min().copied(), cell.iter().max().copied()) else {
                continue;
            };
            let middle = cell.len() / 2;
            let median = *cell.select_nth_unstable(middle).1;
            let _ = write!(spans, "M{x:.1} {:.1}V{:.1}", level(most) - 0.8, level(least) + 0.8);
            let _ = write!(medians, "M{:.1} {:.1}h{:.1}", left + step * i as f64, level(median), step);
        }
        let colour = rack(lane.rack);
        let width = (step * 0.7).min(4.0);
        let _ = write!(
            self.body,
            "<path d=\"{spans}\" class=\"lat s{colour}\" stroke-width=\"{width:.1}\"/>\
             <path d=\"{medians}\" class=\"med\"/><path d=\"{errors}\" class=\"err\"/>"
        );
        self.y += PLOT + 18.0;
    }

    fn columns(&self) -> usize {
        let seconds = self.axis.end / 1_000_000_000;
        let fits = (self.axis.width / 3.0) as u64;
        seconds.clamp(FEWEST, MOST).min(fits).max(1) as usize
    }
}

fn column(sample: &Sample, end: Nanos, columns: usize) -> usize {
    let place = u128::from(sample.done) * columns as u128 / u128::from(end);
    place.min(columns as u128 - 1) as usize
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
            let place = column(sample, end, columns);
            if sample.how.answered() {
                ok[place] += second;
            } else {
                bad[place] += second;
            }
        }
        let top = ok.iter().chain(&bad).copied().fold(0.0, f64::max);
        Self { ok, bad, top }
    }
}
