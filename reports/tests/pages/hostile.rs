//! Whatever stands in a run, no report lets it act: as markup, as a control sequence, as a link.

use crate::markup;
use crate::support::{Run, sample};
use proptest::prelude::*;
use rackrift_checkers::history::{At, Entry};
use rackrift_checkers::verdict::{Answer, CheckResult, Class, Exhibit, Verdict, Witness};
use rackrift_reports::{SuiteEntry, html, junit, markdown, suite_html, suite_markdown, terminal};

/// What somebody who controls a host's name, a log line or a lease's holder would try.
const NASTY: [&str; 16] = [
    "<zz>",
    "</title><zz>",
    "\"zz=\"",
    "' zz='",
    "]]><zz/>",
    "--><zz>",
    "&lt;zz&gt;",
    "\u{1b}[31mzz\u{1b}]0;zz\u{7}",
    "\r\nzz\n# zz",
    "\u{202e}zz\u{2066}",
    "|zz|`zz`",
    "[zz](javascript:zz)",
    "<!--zz",
    "\u{0}\u{fffe}\u{ffff}",
    "字\u{301}👩‍👩‍👧zz",
    "{{ zz }}{% zz %}",
];

fn nasty() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![prop::sample::select(&NASTY[..]).prop_map(str::to_owned), ".{0,6}"],
        0..4,
    )
    .prop_map(|parts| parts.concat())
}

/// The sample with nasty text in every kind of place; what must stay joined (host names, ids) changes alike.
fn spoilt(words: &[String]) -> Run {
    let mut run = sample();
    let mut next = words.iter().cycle().cloned();
    let mut word = || next.next().unwrap_or_default();
    let (host, client, lease) = (format!("m1{}", word()), word(), word());
    run.entries.truncate(900);
    let facts = &mut run.facts;
    for text in [&mut facts.run, &mut facts.scenario, &mut facts.purpose, &mut facts.started, &mut facts.lab]
    {
        *text = word();
    }
    facts.cut_short = Some(word());
    facts.versions.push((word(), word()));
    facts.racks[0].name = word();
    facts.racks[0].hosts[0] = (host.clone(), vec![word()]);
    facts.leases[0].component = lease.clone();
    facts.faults[0].summary = word();
    facts.faults[0].kind = word();
    facts.pods[0].identity = word();
    facts.pods[0].owner_kind = word();
    facts.clients[0].client.clone_from(&client);
    facts.clients[0].host.clone_from(&host);
    facts.hosts[0].host.clone_from(&host);
    facts.hosts[0].clean = Some(word());
    facts.hosts[0].rules_before = word();
    facts.hosts[0].dead_man = word();
    for entry in &mut run.entries {
        match entry {
            Entry::Op(op) => op.client = Some(client.clone()),
            Entry::Lease(seen) => {
                seen.holder = word();
                seen.via = word();
            }
            Entry::Belief(belief) => {
                belief.component.clone_from(&lease);
                belief.host.clone_from(&host);
                belief.line = word();
            }
            Entry::Pod(pod) => {
                pod.identity = word();
                pod.uid = word();
                pod.name = word();
            }
            Entry::Node(node) => {
                node.node = word();
                node.taints = vec![word()];
            }
            Entry::Fault(mark) => mark.fault = word(),
            Entry::Note(note) => note.text = word(),
            Entry::Clock(_) => {}
        }
    }
    let at = At { lo: 1, hi: 2 };
    let exhibit = Exhibit { who: word(), what: word(), from: at, to: Some(at), line: Some(7) };
    let witness = Witness {
        rule: word(),
        sentence: word(),
        exhibits: vec![exhibit],
        margin: Some(3),
        excused_by: Some(4),
        at: Some(at),
    };
    for (verdict, class) in [(Verdict::Fail, Class::Promised), (Verdict::Pass, Class::NotPromised)] {
        run.verdict.checks.push(CheckResult {
            id: word(),
            title: word(),
            class,
            verdict,
            bound: word(),
            measured: word(),
            sentence: word(),
            checked: word(),
            evidence: word(),
            witnesses: vec![witness.clone()],
            value: Some(5),
        });
    }
    let checks = run.verdict.checks.iter().map(|c| c.id.clone()).collect();
    run.verdict.answers.push(Answer { question: word(), answer: word(), checks });
    run
}

fn controls(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && *c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// Markdown without its code spans, in which nothing acts.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('\\') {
            // An escaped character, whatever it is, does not act.
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(i, _)| i);
            rest = &rest[end..];
            continue;
        }
        let fence = rest.len() - rest.trim_start_matches('`').len();
        let inner = &rest[fence..];
        let mut from = 0;
        let close = loop {
            let Some(next) = inner[from..].find('`').map(|i| from + i) else { break None };
            let run = inner[next..].len() - inner[next..].trim_start_matches('`').len();
            if run == fence {
                break Some(next + run);
            }
            from = next + run;
        };
        rest = match close {
            Some(end) => &inner[end..],
            None => {
                out.push_str(&rest[..fence]);
                inner
            }
        };
    }
    out.push_str(rest);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_acts(words in prop::collection::vec(nasty(), 7..29)) {
        let run = spoilt(&words);
        let Run { facts, verdict, entries } = &run;
        let suite = [SuiteEntry { facts, verdict, folder: &facts.run }];
        let page = html(facts, verdict, entries);
        for markup in [&page, &suite_html(&suite)] {
            let elements = markup::read(markup).map_err(TestCaseError::fail)?;
            prop_assert!(elements.iter().all(|e| e.name != "zz"));
            for link in elements.iter().filter_map(|e| e.get("href").or(e.get("src"))) {
                prop_assert!(link.starts_with('#') || link.starts_with("./") || link == "data:,", "{link}");
            }
        }
        let xml = junit(facts, verdict);
        prop_assert!(!xml.contains("<zz"), "{xml}");
        for text in [&xml, &markdown(facts, verdict, entries), &suite_markdown(&suite)] {
            prop_assert_eq!(controls(text), None);
        }
        for text in [markdown(facts, verdict, entries), suite_markdown(&suite)] {
            let text = without_code(&text);
            prop_assert!(!text.contains("<zz") && !text.contains("](javascript"), "{text}");
        }
        for width in [60, 100] {
            let text = terminal(facts, verdict, entries, width, false);
            prop_assert_eq!(controls(&text), None);
            for line in text.lines() {
                prop_assert!(tabled::grid::util::string::get_string_width(line) <= width, "{line}");
            }
        }
    }
}
