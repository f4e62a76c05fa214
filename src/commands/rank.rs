//! `acem3 rank`: models compared over all their pairs.

use anyhow::Result;

use super::agree::{bootstrap, read};
use super::{print, tables};
use crate::cli::{RankArgs, TableFormat};
use crate::ranking::ranking;
use crate::terminal::exit::Exit;
use crate::verdicts::ScoreKind;

/// Runs the command.
pub(super) fn run(args: &RankArgs) -> Result<Exit> {
    let kind = ScoreKind::expected_if(args.expected);
    let runs = args
        .records
        .iter()
        .map(|path| read(path, kind, &args.sampling));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let found = ranking(&runs, args.on, bootstrap(&args.sampling))?;
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&found)? + "\n",
        TableFormat::Csv => found.long().csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            tables(&found.lead(), &found.parts(), args.format)
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}
