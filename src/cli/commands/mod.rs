//! The commands, one file each.

mod agree;
mod audit;
mod calibrate;
mod completions;
mod data;
mod encoders;
mod introspect;
mod judge;
mod load_judge;
mod man;
mod metrics;
mod panel;
mod rank;
mod report;
mod train;

use std::io::{self, Write as _};

use anyhow::Context as _;

use crate::cli::args::{Cli, Command, SourceArgs, TableFormat};
use crate::data::cases::{Lang, SourceKind};
use crate::support::tables::{TableSection, TableStyle, render};
use crate::support::terminal::exit::{ClosedStdout, EngineFailure, Exit};

/// Does what the command line asks for.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Judge(args) => judge::run(args, cli.verbosity),
        Command::Agree(args) => agree::run(args, cli.verbosity),
        Command::Audit(args) => audit::run(args, cli.verbosity),
        Command::Rank(args) => rank::run(args),
        Command::Report(args) => report::run(args, cli.verbosity),
        Command::Calibrate(args) => calibrate::run(args, cli.verbosity),
        Command::Data(args) => data::run(args, cli.verbosity),
        Command::Encoders(args) => encoders::run(args, cli.verbosity),
        Command::Metrics(args) => metrics::run(args, cli.verbosity),
        Command::Train(args) => train::run(args, cli.verbosity),
        Command::Panel(args) => panel::run(args, cli.verbosity),
        Command::Completions(args) => completions::run(*args),
        Command::Man(args) => man::run(args),
    }
}

/// Writes a result to stdout.
fn print(text: &(impl AsRef<[u8]> + ?Sized)) -> anyhow::Result<()> {
    let mut out = io::stdout();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ClosedStdout.into()),
        written => written.context(EngineFailure(
            "cannot write to stdout\n\
             hint: files that were written are whole; the same command prints this again"
                .to_owned(),
        )),
    }
}

/// Returns a paragraph and tables in the format that was asked for; CSV and JSON are written elsewhere.
fn render_tables(intro: &str, tables: &[TableSection], format: TableFormat) -> String {
    render(intro, tables, table_style(format))
}

/// Returns how tables are laid out in a format for reading.
fn table_style(format: TableFormat) -> TableStyle {
    match format {
        TableFormat::Markdown => TableStyle::Markdown,
        TableFormat::Text | TableFormat::Csv | TableFormat::Json => TableStyle::terminal(),
    }
}

/// What is said of flags that this kind of source has no use for.
fn unheeded(args: &SourceArgs, kind: SourceKind) -> Vec<String> {
    let path = args.path.display();
    let mut notes = Vec::new();
    let has_splits = !matches!(kind, SourceKind::Cases | SourceKind::Questions);
    if let Some(split) = args
        .split
        .as_ref()
        .filter(|_| !has_splits || !args.path.is_dir())
    {
        notes.push(format!(
            "--split {split} is not heeded: {path} has no splits"
        ));
    }
    if args.lang.is_some_and(|lang| lang != Lang::All) && kind != SourceKind::Slake {
        notes.push(format!(
            "--lang is not heeded: {path} does not tell languages apart"
        ));
    }
    notes
}
