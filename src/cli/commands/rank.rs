//! `acem3 rank`: models compared over all their pairs.

use anyhow::Result;

use super::agree::{bootstrap, read};
use super::{print, render_tables};
use crate::analysis::ranking::ranking;
use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::{RankArgs, TableFormat};
use crate::support::terminal::exit::Exit;

/// Runs the command.
pub(super) fn run(args: &RankArgs) -> Result<Exit> {
    let kind = ScoreKind::from_flag(args.expected);
    let runs = args
        .records
        .iter()
        .map(|path| read(path, kind, &args.sampling));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let found = ranking(&runs, args.on, bootstrap(&args.sampling))?;
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&found)? + "\n",
        TableFormat::Csv => found.csv_table().csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            render_tables(&found.intro(), &found.tables(), args.format)
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}
