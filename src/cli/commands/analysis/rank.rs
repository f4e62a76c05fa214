//! `acem3 rank`: ranking of models over all their pairs.

use anyhow::Result;

use super::run_notices::RunNotices;
use super::verdict_input::{DistinctRuns, read_distinct_verdicts};
use crate::analysis::ranking::rank_models;
use crate::cli::args::{RankArgs, TableFormat};
use crate::cli::commands::output::write_stdout;
use crate::support::terminal::exit::Exit;

/// Runs the command.
pub(crate) fn run(args: &RankArgs) -> Result<Exit> {
    let DistinctRuns { runs, notes } =
        read_distinct_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let notices = RunNotices::new(runs.iter().map(|run| run.run.clone()), args.run)?;
    let notices = notices.with_notes(notes);
    let ranking_result = rank_models(&runs, args.target, args.bootstrap.to_bootstrap())?;
    let text = match args.format {
        TableFormat::Json => notices.to_json(&ranking_result)?,
        TableFormat::Csv => ranking_result.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            notices.render(&ranking_result.intro(), &ranking_result.tables(), args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}
