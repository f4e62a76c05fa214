//! `acem3 agree`: agreement between a judge and human labels.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

use super::run_notices::RunNotices;
use super::verdict_input::{
    DistinctRuns, distinct_paths, read_distinct_verdicts, read_labels, read_verdicts, records_file,
};
use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, StatisticBound, compare_judges, compute_agreement,
};
use crate::analysis::audit::ThresholdResult;
use crate::analysis::correctness::{CorrectnessAgreement, GradedRun};
use crate::analysis::verdicts::Verdicts;
use crate::cli::args::{AgreeArgs, TableFormat};
use crate::cli::commands::junit::{check_junit, write_junit};
use crate::cli::commands::output::write_stdout;
use crate::data::labels;
use crate::data::labels::{LabelOptions, ScoreTarget};
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
    if args.records.first().is_some_and(|path| GradedRun::is_graded(path)) {
        return agree_on_correctness(args);
    }
    let junit = check_junit_file(args)?;
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
    let bounds = evaluate_bounds(args, &result);
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
    let source: Vec<String> = args.records.iter().map(|path| path.display().to_string()).collect();
    let source = source.join(", ");
    let properties = vec![("source", source), ("judge", verdicts.name.clone())];
    write_junit(junit.as_ref(), "acem3 agree", properties, &bounds)?;
    let mut failed = bounds.iter().filter(|bound| bound.failed).peekable();
    let exit = if failed.peek().is_some() { Exit::Failed } else { Exit::Done };
    failed.for_each(|bound| print_lines(&bound.summary));
    Ok(exit)
}

/// Checks the file of `--junit`.
fn check_junit_file(args: &AgreeArgs) -> Result<Option<OutFile>> {
    let records: Vec<PathBuf> = args.records.iter().map(|path| records_file(path)).collect();
    let against = args.against.as_deref().map(records_file);
    let others = [against.as_ref(), args.labels.path.as_ref()];
    let inputs = records.iter().chain(others.into_iter().flatten());
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    check_junit(args.junit.as_ref(), &inputs)
}

/// Compares the agreement on the first target with the bounds.
fn evaluate_bounds(args: &AgreeArgs, agreement: &Agreement) -> Vec<ThresholdResult> {
    let minima = args.min.iter().copied().map(StatisticBound::Min);
    let bounds = minima.chain(args.max.iter().copied().map(StatisticBound::Max));
    bounds.map(|bound| bound.evaluate(agreement.sections.first())).collect()
}

/// Compares verdicts on the correctness of single responses with labels.
fn agree_on_correctness(args: &AgreeArgs) -> Result<Exit> {
    let ignored = [
        (!args.target.is_empty(), "--target"),
        (!args.group_by.is_empty(), "--group-by"),
        (args.round, "--round"),
        (args.labels.scale.is_some(), "--scale"),
        (args.bootstrap.cluster_by.is_some(), "--cluster-by"),
    ];
    if let Some((_, flag)) = ignored.into_iter().find(|(is_given, _)| *is_given) {
        bail!("{flag}: not available for verdicts of the form correctness\nhint: omit it");
    }
    if args.against.is_some() {
        bail!(
            "--against: two judges of correctness cannot be compared yet\n\
             hint: run `acem3 agree` for each of them with the same labels"
        );
    }
    if !(args.min.is_empty() && args.max.is_empty() && args.junit.is_none()) {
        bail!(
            "--min, --max, --junit: not available for verdicts on correctness\n\
             hint: read the statistics from `acem3 agree --format json`"
        );
    }
    let DistinctRuns { runs: paths, notes } = distinct_paths(&args.records);
    let runs = paths.iter().map(|path| GradedRun::read(path)).collect::<Result<Vec<_>>>()?;
    let states: Vec<RunState> = runs.iter().map(|run| run.run.clone()).collect();
    let run = GradedRun::join(runs)?;
    let notices = RunNotices::new(states, args.run)?.with_notes(notes);
    let options = LabelOptions { rater_columns: args.labels.rater_columns.clone(), scale: None };
    let file = args.labels.path.as_ref().map(|path| labels::read(path, &options)).transpose()?;
    let (entries, source) = match (&file, &args.labels.path) {
        (Some(file), Some(path)) => (&file.entries, path),
        _ => (&run.labels, &run.path),
    };
    if entries.is_empty() {
        bail!(
            "{}: no labels\n\
             hint: pass a file with the columns case, model and score, 1 for correct and 0 for wrong, \
             with --labels FILE",
            source.display()
        );
    }
    let bootstrap = args.bootstrap.to_bootstrap();
    let result = CorrectnessAgreement::new(&run, entries, source, bootstrap)?;
    let text = match args.format {
        TableFormat::Json => notices.to_json(&result)?,
        TableFormat::Csv => result.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            notices.render(&result.intro(), &result.tables(), args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}
