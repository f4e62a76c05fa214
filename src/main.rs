//! The `acem3` command.

use std::process::ExitCode;

use acem3::cli::args::Cli;
use acem3::cli::commands;
use acem3::support::device::threads;
use acem3::support::terminal::exit;
use clap::Parser;

fn main() -> ExitCode {
    threads::set_thread_count();
    exit::finish(commands::run(&Cli::parse()))
}
