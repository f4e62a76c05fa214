//! Runs the command of a command line.

use super::{analysis, annotate, completions, data, judge, man, merge, panel, training, verify};
use crate::cli::args::{Cli, Command};
use crate::support::terminal::exit::Exit;

/// Runs the command of a command line.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Judge(args) => judge::run(args, cli.verbosity),
        Command::Merge(args) => merge::run(args, cli.verbosity),
        Command::Verify(args) => verify::run(args, cli.verbosity),
        Command::Agree(args) => analysis::agree::run(args, cli.verbosity),
        Command::Audit(args) => analysis::audit::run(args, cli.verbosity),
        Command::Rank(args) => analysis::rank::run(args),
        Command::Report(args) => analysis::report::run(args, cli.verbosity),
        Command::Calibrate(args) => analysis::calibrate::run(args, cli.verbosity),
        Command::Metrics(args) => analysis::metrics::run(args, cli.verbosity),
        Command::Annotate(args) => annotate::run(args, cli.verbosity),
        Command::Data(args) => data::run(args, cli.verbosity),
        Command::Train(args) => training::train::run(args, cli.verbosity),
        Command::Encoders(args) => training::encoders::run(args, cli.verbosity),
        Command::Panel(args) => panel::run(args, cli.verbosity),
        Command::Completions(args) => completions::run(*args),
        Command::Man(args) => man::run(args),
    }
}
