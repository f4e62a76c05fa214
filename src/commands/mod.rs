//! The commands, one file each.

mod data;
mod judge;
mod train;

use std::path::{Path, PathBuf};

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Does what the command line asks for.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Judge(args) => judge::run(args, cli.verbosity),
        Command::Data(args) => data::run(args, cli.verbosity),
        Command::Train(args) => train::run(args),
    }
}

/// The folder of a source, from which its files are named.
fn root(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().map(Path::to_owned).unwrap_or_default()
}
