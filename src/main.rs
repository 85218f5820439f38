//! `rackrift`: cut racks apart, and say with evidence who led and which pods ran twice.

use std::io::Write as _;

use clap::Parser as _;
use rackrift::cli::{Cli, Verb};
use rackrift::command;
use rackrift::exit::Exit;

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let ended = match &cli.verb {
        Verb::Lab(verb) => command::lab::run(verb, &mut std::io::stdout().lock()),
        _ => Ok(Exit::Nothing),
    };
    let exit = ended.unwrap_or_else(|f| {
        let _ = writeln!(std::io::stderr().lock(), "rackrift: {f}");
        f.exit
    });
    std::process::ExitCode::from(exit.code())
}
