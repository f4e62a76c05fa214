//! The commands, one file each.

mod agree;
mod audit;
mod calibrate;
mod data;
mod encoders;
mod introspect;
mod judge;
mod load_judge;
mod metrics;
mod panel;
mod rank;
mod report;
mod train;

use std::io::{self, Write as _};

use anyhow::Context as _;

use crate::analysis::agreement::TableSection;
use crate::cli::args::{Cli, Command, SourceArgs, TableFormat};
use crate::data::cases::{Lang, SourceKind};
use crate::support::terminal::exit::{ClosedStdout, EngineFailure, Exit};
use crate::support::text::printable;

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

/// Tables below a paragraph, as text or as Markdown.
fn tables(lead: &str, parts: &[TableSection], format: TableFormat) -> String {
    let markdown = format == TableFormat::Markdown;
    let mut text = format!("{lead}\n");
    for part in parts {
        let title = if markdown { "\n## " } else { "\n" };
        text.extend([title, &part.title, "\n\n"]);
        text += &if markdown {
            part.grid.markdown()
        } else {
            part.grid.text()
        };
        if !part.notes.is_empty() {
            text.push('\n');
        }
        for note in &part.notes {
            text.extend([if markdown { "- " } else { "" }, &printable(note), "\n"]);
        }
    }
    text
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
