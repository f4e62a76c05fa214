//! `acem3 agree`: agreement between a judge and human labels.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::agree_bounds::{check_junit_file, finish_bounds, records_names};
use super::agree_correctness::agree_on_correctness;
use super::run_notices::RunNotices;
use super::verdict_input::{DistinctRuns, read_distinct_verdicts, read_labels, read_verdicts};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, StatisticBound, compare_judges, compute_agreement,
};
use crate::analysis::audit::ThresholdResult;
use crate::analysis::correctness::GradedRun;
use crate::analysis::verdicts::Verdicts;
use crate::cli::args::{AgreeArgs, BoundValue, TableFormat};
use crate::cli::commands::junit::with_junit;
use crate::cli::commands::output::write_stdout;
use crate::data::labels::ScoreTarget;
use crate::judging::run::run_state::RunState;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;

/// The JSON output.
#[derive(Serialize)]
struct AgreementOutput<'a> {
    #[serde(flatten)]
    agreement: &'a Agreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a JudgeComparison>,
    #[serde(rename = "limits", skip_serializing_if = "<[ThresholdResult]>::is_empty")]
    bounds: &'a [ThresholdResult],
}

/// Runs the command.
pub(crate) fn run(args: &AgreeArgs, verbosity: Verbosity) -> Result<Exit> {
    let junit = check_junit_file(args)?;
    with_junit(junit.as_ref(), "acem3 agree", records_names(args), |junit| {
        if args.records.first().is_some_and(|path| GradedRun::is_graded(path)) {
            agree_on_correctness(args, junit)
        } else {
            agree_on_pairs(args, verbosity, junit)
        }
    })
}

/// Compares verdicts on pairs with labels.
fn agree_on_pairs(args: &AgreeArgs, verbosity: Verbosity, junit: Option<&OutFile>) -> Result<Exit> {
    let DistinctRuns { runs, notes } =
        read_distinct_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let mut states: Vec<RunState> = runs.iter().map(|run| run.run.clone()).collect();
    let mut verdicts = Verdicts::join(runs)?;
    let targets: Vec<ScoreTarget> = args.target.iter().map(|target| target.resolved()).collect();
    targets.iter().try_for_each(|target| verdicts.check_target(*target))?;
    let mut other = match &args.against {
        Some(path) => Some(read_verdicts(path, args.scores, &args.bootstrap)?),
        None => None,
    };
    states.extend(other.iter().map(|verdicts| verdicts.run.clone()));
    let notices = RunNotices::new(states, args.run)?.with_notes(notes);
    if args.round {
        verdicts.round_scores();
        other.iter_mut().for_each(Verdicts::round_scores);
    }
    let units = read_labels(&verdicts, &args.labels, verbosity)?;
    let bootstrap = args.bootstrap.to_bootstrap();
    let config = AgreementConfig { bootstrap, targets, group_by: args.group_by.clone() };
    let labels = args.labels.path.as_ref().map(|path| path.display().to_string());
    let result = compute_agreement(&verdicts, &units, labels, &config)?;
    let comparison = match (&args.against, &other, result.sections.first()) {
        (Some(path), Some(other), Some(section)) => {
            if other.judge == verdicts.judge && !verbosity.quiet {
                print_lines(&format!(
                    "--against {}: verdicts of the same judge ({}); differences are between runs \
                     of one judge",
                    path.display(),
                    verdicts.name
                ));
            }
            let target = section.target;
            let labelled = units.targets.get(&target);
            labelled
                .map(|labelled| compare_judges([&verdicts, other], labelled, target, bootstrap))
                .transpose()?
        }
        _ => None,
    };
    let bounds = evaluate_bounds(args, &result)?;
    let text = match args.format {
        TableFormat::Json => {
            let output = AgreementOutput {
                agreement: &result,
                against: comparison.as_ref(),
                bounds: &bounds,
            };
            notices.to_json(&output)?
        }
        TableFormat::Csv => result.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let mut tables = result.tables();
            tables.extend(comparison.as_ref().map(JudgeComparison::table));
            let lines = bounds.iter().map(ThresholdResult::to_line);
            let intro: Vec<String> = std::iter::once(result.intro()).chain(lines).collect();
            notices.render(&intro.join("\n"), &tables, args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    let properties = vec![("source", records_names(args)), ("judge", verdicts.name.clone())];
    finish_bounds(junit, properties, &bounds)
}

/// Compares the agreement on the first target with the bounds.
fn evaluate_bounds(args: &AgreeArgs, agreement: &Agreement) -> Result<Vec<ThresholdResult>> {
    let of_pairs = |bound: &BoundValue| {
        bound.pairs.context(
            "--min, --max: closed, open, sensitivity, specificity, agreement and auc are statistics of the \
             form correctness\n\
             hint: name a statistic of the JSON output, for example accuracy or kappa",
        )
    };
    let minima = args.min.iter().map(|bound| of_pairs(bound).map(StatisticBound::Min));
    let maxima = args.max.iter().map(|bound| of_pairs(bound).map(StatisticBound::Max));
    let first = agreement.sections.first();
    minima.chain(maxima).map(|bound| Ok(bound?.evaluate(first))).collect()
}
