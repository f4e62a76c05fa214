//! The `acem3` command.

use std::process::ExitCode;

use acem3::cli::Cli;
use acem3::{commands, exit};
use clap::Parser;

fn main() -> ExitCode {
    exit::finish(commands::run(&Cli::parse()))
}
