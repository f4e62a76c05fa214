//! `acem3 rank`: models ranked over all their pairs.

use anyhow::Result;

use super::verdict_input::read_verdicts;
use crate::analysis::ranking::ranking;
use crate::cli::args::{RankArgs, TableFormat};
use crate::cli::commands::output::{print, render_tables};
use crate::support::terminal::exit::Exit;

/// Runs the command.
pub(crate) fn run(args: &RankArgs) -> Result<Exit> {
    let runs = args
        .records
        .iter()
        .map(|path| read_verdicts(path, args.scores, &args.bootstrap));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let found = ranking(&runs, args.target, args.bootstrap.bootstrap())?;
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
