//! `acem3 man`: man pages of all commands.

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::args::{Cli, ManArgs};
use crate::support::files::folder::create_folder;
use crate::support::terminal::exit::Exit;

/// Writes `acem3.1`, and a page such as `acem3-judge.1` for each command.
pub(super) fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    create_folder(&args.out)?;
    clap_mangen::generate_to(Cli::command(), &args.out)
        .with_context(|| format!("{}: cannot write the man pages", args.out.display()))?;
    Ok(Exit::Done)
}
