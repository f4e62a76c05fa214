//! `acem3 completions`: completion scripts for shells.

use clap::CommandFactory as _;

use super::output::write_stdout;
use crate::cli::args::{Cli, CompletionsArgs};
use crate::support::terminal::exit::Exit;

/// Prints the script of the shell.
pub(super) fn run(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "acem3", &mut script);
    write_stdout(&script)?;
    Ok(Exit::Done)
}
