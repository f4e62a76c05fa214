//! `acem3 rank`: ranking of models over all their pairs.

use anyhow::{Result, bail};

use super::graded_input::read_distinct_grades;
use super::run_notices::RunNotices;
use super::verdict_input::{DistinctRuns, read_distinct_verdicts};
use crate::analysis::correctness::{AccuracyReport, GradedRun};
use crate::analysis::ranking::rank_models;
use crate::cli::args::{RankArgs, TableFormat};
use crate::cli::commands::output::write_stdout;
use crate::data::labels::ScoreTarget;
use crate::support::terminal::exit::Exit;

/// Runs the command.
pub(crate) fn run(args: &RankArgs) -> Result<Exit> {
    if args.records.first().is_some_and(|path| GradedRun::is_graded(path)) {
        return rank_by_accuracy(args);
    }
    let DistinctRuns { runs, notes } =
        read_distinct_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let target = args.target.resolved();
    runs.iter().try_for_each(|run| run.check_target(target))?;
    let notices = RunNotices::new(runs.iter().map(|run| run.run.clone()), args.run)?;
    let notices = notices.with_notes(notes);
    let ranking_result = rank_models(&runs, target, args.bootstrap.to_bootstrap())?;
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

/// Ranks models by the proportion of their responses that the judge takes for correct.
fn rank_by_accuracy(args: &RankArgs) -> Result<Exit> {
    if args.target != ScoreTarget::Final {
        bail!(
            "--target {}: verdicts of the form correctness have no criteria\n\
             hint: omit --target",
            args.target.key()
        );
    }
    let DistinctRuns { mut runs, notes } = read_distinct_grades(&args.records)?;
    runs.sort_by_key(|run| run.run.first_shard());
    let notices = RunNotices::new(runs.iter().map(|run| run.run.clone()), args.run)?;
    let notices = notices.with_notes(notes);
    let report = AccuracyReport::new(&runs, args.bootstrap.to_bootstrap())?;
    let text = match args.format {
        TableFormat::Json => notices.to_json(&report)?,
        TableFormat::Csv => report.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            notices.render(&report.intro(), &report.tables(), args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}
