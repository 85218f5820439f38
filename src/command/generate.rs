//! `rackrift generate`: what is made from the program's own definitions, so that it can't disagree with them.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Failure, anomalies};
use crate::cli::{self, Cli, Generated};
use crate::fault::kind::catalogue;
use crate::inventory::file::InventoryFile;
use crate::run::cuts;
use crate::run::scenario::{Scenario, Suite};

/// Prints a shell's completions, the man page or a history; `files` writes the tree's generated files below `.`.
///
/// # Errors
/// If there is no such thing, or it can't be written.
pub fn generate(args: &cli::Generate, out: &mut dyn Write) -> Result<(), Failure> {
    match (&args.made, &args.what) {
        (Some(Generated::History(history)), _) => anomalies::history(history, out),
        (None, Some(what)) => named(what, out),
        (None, None) => Err(Failure::usage("name what to generate")),
    }
}

fn named(what: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let written = match what {
        "man" => clap_mangen::Man::new(Cli::command()).render(out),
        "files" => return files(Path::new(".")),
        shell => {
            let shell: Shell = shell.parse().map_err(|_| {
                Failure::usage(format!(
                    "`{shell}` cannot be generated; there are history, man, files, bash, zsh, fish, elvish, powershell"
                ))
            })?;
            // By way of a buffer: clap_complete panics if nobody reads on.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "rackrift", &mut text);
            out.write_all(&text)
        }
    };
    written.map_err(|e| Failure::harness(format!("failed to write to standard output: {e}")))
}

/// The page on faults with its tables as the catalogues have them.
fn with_tables(page: &str) -> String {
    let tables = [("shapes", cuts::shapes()), ("packets", cuts::packets()), ("kinds", catalogue::table())];
    tables.iter().fold(page.to_owned(), |page, (name, table)| {
        let begin = format!("<!-- {name}: written by `rackrift generate files` -->\n");
        let end = format!("<!-- end of {name} -->\n");
        match (page.split_once(&begin), page.split_once(&end)) {
            (Some((before, _)), Some((_, after))) => format!("{before}{begin}{table}{end}{after}"),
            _ => page,
        }
    })
}

/// The generated files of the source tree: path and content.
///
/// # Errors
/// If one can't be rendered.
pub fn generated() -> Result<Vec<(&'static str, String)>, Failure> {
    fn json<T: schemars::JsonSchema>() -> Result<String, Failure> {
        let mut text = serde_json::to_string_pretty(&schemars::schema_for!(T)).map_err(Failure::harness)?;
        text.push('\n');
        Ok(text)
    }
    Ok(vec![
        ("inventories/inventory.schema.json", json::<InventoryFile>()?),
        ("inventories/two-rack.yaml", crate::lab::example_inventory().map_err(Failure::harness)?),
        ("workloads/scenario.schema.json", json::<Scenario>()?),
        ("workloads/suite.schema.json", json::<Suite>()?),
        ("docs/verdict.schema.json", json::<rackrift_checkers::verdict::RunVerdict>()?),
        ("docs/run.schema.json", json::<rackrift_checkers::facts::Facts>()?),
        ("docs/anomalies.md", anomalies::document()?),
        ("docs/faults.md", with_tables(include_str!("../../docs/faults.md"))),
    ])
}

fn files(root: &Path) -> Result<(), Failure> {
    for (path, text) in generated()? {
        std::fs::write(root.join(path), text)
            .map_err(|e| Failure::harness(format!("failed to write {path}: {e}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_what_is_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (path, text) in generated().unwrap() {
            let on_disk = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            assert!(on_disk == text, "{path} is stale: run `cargo run -- generate files`");
        }
    }

    #[test]
    fn completions_and_man_page_name_every_verb() {
        for what in ["man", "bash", "zsh", "fish"] {
            let mut out = Vec::new();
            named(what, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            for verb in
                ["demo", "lab", "preflight", "plan", "run", "heal", "status", "check", "report", "list"]
            {
                assert!(text.contains(verb), "{what}: {verb}");
            }
        }
        assert!(named("tcsh", &mut Vec::new()).is_err());
    }
}
