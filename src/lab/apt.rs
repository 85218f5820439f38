//! Finds a Debian mirror in the machine's own apt sources: this program names no host.

use std::fs;
use std::path::Path;

/// A mirror of Debian that the machine's apt uses, for `suite`, or for another suite of Debian if none is for that.
pub(super) fn mirror(folder: &Path, suite: &str) -> Option<String> {
    let mut files = vec![folder.join("sources.list")];
    let more = fs::read_dir(folder.join("sources.list.d")).into_iter().flatten().flatten();
    let mut more: Vec<_> = more.map(|e| e.path()).collect();
    more.sort();
    files.extend(more);
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|e| e.to_str()) {
            Some("list") => sources.extend(one_line(&text)),
            Some("sources") => sources.extend(deb822(&text)),
            _ => {}
        }
    }
    choose(&sources, suite)
}

/// A source of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    uri: String,
    suite: String,
    components: Vec<String>,
}

/// The mirror to take: one that has `suite` and `main`, else one that has any plain suite of Debian's own archive
/// (a mirror holds all releases). Archives beside it, as for security updates, lack most packages.
fn choose(sources: &[Source], suite: &str) -> Option<String> {
    let usable = |s: &&Source| {
        s.components.iter().any(|c| c == "main")
            && (s.uri.starts_with("http") || s.uri.starts_with("file:") || s.uri.starts_with("mirror"))
    };
    let exact = sources.iter().filter(usable).find(|s| s.suite == suite);
    let names = ["bullseye", "bookworm", "trixie", "stable", "testing", "sid", "unstable"];
    let other = || {
        let debian = |s: &&Source| names.contains(&s.suite.as_str()) && s.uri.contains("debian");
        sources.iter().filter(usable).find(debian)
    };
    exact.or_else(other).map(|s| s.uri.trim_end_matches('/').to_owned())
}

/// sources.list(5), one-line style: `deb [options] uri suite components`.
fn one_line(text: &str) -> Vec<Source> {
    let parse = |line: &str| {
        let line = line.split('#').next()?.trim();
        let rest = line.strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace().map(str::to_owned);
        Some(Source { uri: words.next()?, suite: words.next()?, components: words.collect() })
    };
    text.lines().filter_map(parse).collect()
}

/// sources.list(5), deb822 style: stanzas of fields, each source the product of its URIs and suites.
fn deb822(text: &str) -> Vec<Source> {
    let mut all = Vec::new();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with('#')).collect();
    for stanza in lines.split(|l| l.trim().is_empty()) {
        let words = |name: &str| -> Vec<String> {
            let mut inside = false;
            let mut found = Vec::new();
            for line in stanza {
                let value = match line.split_once(':') {
                    Some((field, value)) if !line.starts_with([' ', '\t']) => {
                        inside = field.eq_ignore_ascii_case(name);
                        value
                    }
                    _ => line,
                };
                if inside {
                    found.extend(value.split_whitespace().map(str::to_owned));
                }
            }
            found
        };
        let off = words("Enabled").first().is_some_and(|w| w == "no");
        if off || !words("Types").iter().any(|t| t == "deb") {
            continue;
        }
        for uri in words("URIs") {
            for suite in words("Suites") {
                all.push(Source { uri: uri.clone(), suite, components: words("Components") });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "Types: deb deb-src\n# a comment\nURIs: http://mirror.example/debian-security\nSuites: \
                          bookworm-security\nComponents: main\n\nTypes: deb\nURIs: http://mirror.example/debian/\n\
                          Suites: bookworm\n bookworm-updates\nComponents: main contrib\nSigned-By: /k.gpg\n\n\
                          Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\n";

    #[test]
    fn deb822_stanzas() {
        let all = deb822(DEB822);
        let seen: Vec<String> = all.iter().map(|s| format!("{} {}", s.uri, s.suite)).collect();
        assert_eq!(
            seen,
            [
                "http://mirror.example/debian-security bookworm-security",
                "http://mirror.example/debian/ bookworm",
                "http://mirror.example/debian/ bookworm-updates"
            ]
        );
        assert_eq!(choose(&all, "bookworm").as_deref(), Some("http://mirror.example/debian"));
    }

    #[test]
    fn one_line_sources() {
        let text = "# deb http://no.example/debian bookworm main\n\
                    deb-src http://src.example/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main # ours\n\
                    deb http://other.example/tools stable main\n";
        let all = one_line(text);
        assert_eq!(all.len(), 2);
        assert_eq!(choose(&all, "bookworm").as_deref(), Some("http://mirror.example/debian"));
    }

    #[test]
    fn another_release_of_debian_has_the_same_mirror() {
        let all = one_line(
            "deb http://tools.example/x trixie main\ndeb http://mirror.example/debian trixie main\n",
        );
        assert_eq!(choose(&all, "bookworm").as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(choose(&one_line("deb cdrom:[x] bookworm main"), "bookworm"), None);
    }
}
