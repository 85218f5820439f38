//! The scenarios and suites that come with the program, and those of the user.

use std::path::Path;

use include_dir::{Dir, include_dir};

use super::scenario::{Scenario, Suite};
use crate::yaml;

static WORKLOADS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/workloads");

/// What a name or file stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The suite's id, or the scenario's if it is a single one.
    pub name: String,
    /// Its scenarios in order, each with its text as written.
    pub scenarios: Vec<(Scenario, String)>,
}

/// Why a scenario or suite could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Neither embedded nor a file.
    #[error("there is no scenario, suite or file `{name}`; embedded are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file can't be read, or is not a scenario or suite.
    #[error(transparent)]
    Flawed(#[from] yaml::Flaw),
}

/// All embedded scenarios and suites: `(kind, name, what it is for)`.
#[must_use]
pub fn embedded() -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    for (kind, folder) in [("suite", "suites"), ("scenario", "scenarios")] {
        for (name, text) in files(folder) {
            let about = match kind {
                "suite" => parse::<Suite>(text, name).map(|s| s.about),
                _ => parse::<Scenario>(text, name).map(|s| s.proves),
            };
            found.push((kind, name.to_owned(), about.unwrap_or_else(|e| e.to_string())));
        }
    }
    found
}

/// Resolves an embedded name or a file to its scenarios.
///
/// # Errors
/// See [`LibraryError`].
pub fn choose(name: &str) -> Result<Chosen, LibraryError> {
    if let Some(text) = embedded_text("suites", name) {
        return suite(name, text, None);
    }
    if let Some(text) = embedded_text("scenarios", name) {
        return single(name, text);
    }
    let path = Path::new(name);
    if !path.is_file() {
        let known: Vec<String> = embedded().into_iter().map(|(_, n, _)| n).collect();
        return Err(LibraryError::Unknown { name: name.to_owned(), known: known.join(", ") });
    }
    let text = yaml::read(path)?;
    if text.lines().any(|l| l.starts_with("suite:")) {
        suite(name, &text, path.parent())
    } else {
        single(name, &text)
    }
}

fn single(origin: &str, text: &str) -> Result<Chosen, LibraryError> {
    let scenario: Scenario = parse(text, origin)?;
    Ok(Chosen { name: scenario.scenario.clone(), scenarios: vec![(scenario, text.to_owned())] })
}

fn suite(origin: &str, text: &str, folder: Option<&Path>) -> Result<Chosen, LibraryError> {
    let suite: Suite = parse(text, origin)?;
    let mut scenarios = Vec::new();
    for name in &suite.scenarios {
        let file = folder.map(|f| f.join(name)).filter(|f| f.is_file());
        let chosen = match (file, embedded_text("scenarios", name)) {
            (Some(file), _) => single(&file.display().to_string(), &yaml::read(&file)?)?,
            (None, Some(text)) => single(name, text)?,
            (None, None) => {
                let known: Vec<&str> = files("scenarios").map(|(n, _)| n).collect();
                return Err(LibraryError::Unknown { name: name.clone(), known: known.join(", ") });
            }
        };
        scenarios.extend(chosen.scenarios);
    }
    Ok(Chosen { name: suite.suite, scenarios })
}

fn parse<T: serde::de::DeserializeOwned>(text: &str, origin: &str) -> Result<T, LibraryError> {
    Ok(yaml::Source { origin, text }.parse()?)
}

fn files(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    WORKLOADS.get_dir(folder).into_iter().flat_map(Dir::files).filter_map(|f| {
        let name = f.path().file_stem()?.to_str()?;
        Some((name, f.contents_utf8()?))
    })
}

fn embedded_text(folder: &str, name: &str) -> Option<&'static str> {
    files(folder).find(|(n, _)| *n == name).map(|(_, t)| t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_embedded_is_valid_and_nothing_is_left_out() {
        for (folder, kind) in [("scenarios", "scenario"), ("suites", "suite")] {
            let on_disk =
                std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads").join(folder))
                    .unwrap()
                    .count();
            let names: Vec<String> =
                embedded().into_iter().filter(|(k, _, _)| *k == kind).map(|(_, n, _)| n).collect();
            assert_eq!(names.len(), on_disk, "{folder}");
            for name in names {
                choose(&name).unwrap();
            }
        }
    }

    #[test]
    fn errors_name_line_column_and_the_known_names() {
        insta::assert_snapshot!(choose("rack-spilt").unwrap_err());
        let text =
            "scenario: x\nproves: a\ncannot-prove: b\nworkloads: {pods: true}\nbaseline: 15\nsettle: 1s\n";
        insta::assert_snapshot!(single("x.yaml", text).unwrap_err());
        let text =
            "scenario: x\nproves: a\ncannot-prove: b\nworkload: {pods: true}\nbaseline: 15s\nsettle: 1s\n";
        insta::assert_snapshot!(single("x.yaml", text).unwrap_err());
    }
}
