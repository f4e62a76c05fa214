//! `acem3 agree` for verdicts on the correctness of single responses.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::agree_bounds::{finish_bounds, records_names};
use super::graded_input::{read_grade_labels, refuse_flags};
use super::run_notices::RunNotices;
use super::verdict_input::{DistinctRuns, distinct_paths};
use crate::analysis::agreement::BoundSide;
use crate::analysis::audit::ThresholdResult;
use crate::analysis::correctness::{CorrectnessAgreement, GradeStatisticValue, GradedRun};
use crate::cli::args::{AgreeArgs, TableFormat};
use crate::cli::commands::output::write_stdout;
use crate::judging::run::run_state::RunState;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;

/// The JSON output.
#[derive(Serialize)]
struct GradeAgreementOutput<'a> {
    #[serde(flatten)]
    agreement: &'a CorrectnessAgreement,
    #[serde(rename = "limits", skip_serializing_if = "<[ThresholdResult]>::is_empty")]
    bounds: &'a [ThresholdResult],
}

/// Compares verdicts on the correctness of single responses with labels.
pub(super) fn agree_on_correctness(args: &AgreeArgs, junit: Option<&OutFile>) -> Result<Exit> {
    check_flags(args)?;
    let DistinctRuns { runs: paths, notes } = distinct_paths(&args.records);
    let runs = paths.iter().map(|path| GradedRun::read(path)).collect::<Result<Vec<_>>>()?;
    let states: Vec<RunState> = runs.iter().map(|run| run.run.clone()).collect();
    let run = GradedRun::join(runs)?;
    let notices = RunNotices::new(states, args.run)?.with_notes(notes);
    let (entries, source) = read_grade_labels(&run, &args.labels)?;
    let bootstrap = args.bootstrap.to_bootstrap();
    let result = CorrectnessAgreement::new(&run, &entries, &source, bootstrap)?;
    let bounds = evaluate_bounds(args, &result)?;
    let text = match args.format {
        TableFormat::Json => {
            notices.to_json(&GradeAgreementOutput { agreement: &result, bounds: &bounds })?
        }
        TableFormat::Csv => result.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let lines = bounds.iter().map(ThresholdResult::to_line);
            let intro: Vec<String> = std::iter::once(result.intro()).chain(lines).collect();
            notices.render(&intro.join("\n"), &result.tables(), args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    let properties = vec![("source", records_names(args)), ("judge", run.name.clone())];
    finish_bounds(junit, properties, &bounds)
}

/// Checks that no flag asks for what these verdicts lack.
fn check_flags(args: &AgreeArgs) -> Result<()> {
    refuse_flags(&[
        (!args.target.is_empty(), "--target"),
        (!args.group_by.is_empty(), "--group-by"),
        (args.round, "--round"),
        (args.labels.scale.is_some(), "--scale"),
        (args.bootstrap.cluster_by.is_some(), "--cluster-by"),
    ])?;
    if args.against.is_some() {
        bail!(
            "--against: two judges of correctness cannot be compared yet\n\
             hint: run `acem3 agree` for each of them with the same labels"
        );
    }
    Ok(())
}

/// Compares the agreement of the judge with the bounds.
fn evaluate_bounds(
    args: &AgreeArgs,
    agreement: &CorrectnessAgreement,
) -> Result<Vec<ThresholdResult>> {
    let minima = args.min.iter().map(|bound| (BoundSide::Min, bound));
    let all = minima.chain(args.max.iter().map(|bound| (BoundSide::Max, bound)));
    all.map(|(side, bound)| {
        let bound = bound.grades.with_context(|| {
            format!(
                "--min, --max: a statistic of pairs; verdicts of the form correctness have {}\n\
                 hint: use one of these names",
                GradeStatisticValue::names().join(", ")
            )
        })?;
        Ok(bound.evaluate(side, agreement))
    })
    .collect()
}
