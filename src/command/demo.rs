//! `rackrift demo`: the lab, the short suite, the report.

use std::sync::Arc;

use super::dispatch::inside;
use super::{Failure, Voice, lab, run};
use crate::cli;
use crate::exit::Exit;

/// Brings the lab up, runs the suite `demo` on it, and takes the lab down unless asked to keep it.
///
/// # Errors
/// If the lab can't be brought up; whatever came up is taken down.
pub fn demo(args: &cli::Demo) -> Result<Exit, Failure> {
    let voice = Arc::new(Voice::new());
    let was_up = lab::for_demo(args.yes, args.components.clone(), &voice)?;
    let suite = cli::Run {
        lab: cli::OnLab { inventory: None },
        what: "demo".to_owned(),
        runs: args.runs.clone(),
        seed: None,
        without_faults: false,
        only: None,
    };
    let file = lab::inventory()?;
    let done = inside(&file, async |lab| run::run(&suite, &lab, voice).await);
    // A lab that was there before the demo is somebody's.
    if !args.keep && !was_up {
        lab::after_demo()?;
    }
    done
}
