//! `acem3 report` for verdicts on the correctness of single responses.

use anyhow::{Result, bail};

use super::graded_input::{are_grades, read_grade_labels, refuse_flags};
use super::report_output::{ReportOutput, check_judges};
use super::run_notices::RunNotices;
use super::verdict_input::{DistinctRuns, distinct_paths};
use crate::analysis::correctness::GradedRun;
use crate::analysis::report::correctness::{
    GradeChanges, GradedJudge, GradedJudgeInput, GradedReport, build_graded_sections,
    graded_browser, graded_table,
};
use crate::analysis::report::{
    PageContent, read_summaries, render_markdown, render_page, to_parquet,
};
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::data::labels::ScoreTarget;
use crate::support::terminal::exit::Exit;

/// Writes the report.
pub(super) fn report_correctness(args: &ReportArgs, output: &ReportOutput) -> Result<Exit> {
    check_flags(args)?;
    let DistinctRuns { runs: paths, mut notes } = distinct_paths(&args.records);
    check_judges(paths.len())?;
    let mut judges: Vec<GradedJudge> = Vec::new();
    for (letter, path) in ('A'..='Z').zip(&paths) {
        let mut graded = GradedRun::read(path)?;
        if let Some(known) = judges.iter().find(|judge| judge.judge == graded.judge) {
            bail!(
                "{} and {}: verdicts of the same judge ({}), expected one run per judge\n\
                 hint: join the shards of one run with `acem3 merge`, or concatenate the records of one \
                 judge into one file",
                known.records,
                graded.path.display(),
                graded.name
            );
        }
        if paths.len() > 1 {
            graded.name = format!("{letter}: {}", graded.name);
        }
        let has_grades = !graded.labels.is_empty() && are_grades(&graded.labels);
        if args.labels.path.is_none() && !graded.labels.is_empty() && !has_grades {
            notes.push(format!(
                "{}: labels of the records left out: they are not 1 (correct) or 0 (wrong)",
                graded.path.display()
            ));
        }
        let has_labels = args.labels.path.is_some() || has_grades;
        let input = GradedJudgeInput {
            summaries: read_summaries(&graded.path, |_| false)?,
            labels: has_labels.then(|| read_grade_labels(&graded, &args.labels)).transpose()?,
            group_by: args.group_by.clone(),
            graded,
        };
        judges.push(GradedJudge::new(input, args.bootstrap.to_bootstrap())?);
    }
    let baseline = args.baseline.as_ref().map(|path| GradedRun::read(path)).transpose()?;
    let states = judges.iter().map(|judge| &judge.run).chain(baseline.as_ref().map(|b| &b.run));
    let notices = RunNotices::new(states.cloned(), args.run)?.with_notes(notes);
    if output.needs_notices() {
        notices.print();
    }
    let mut report = GradedReport::new(judges, args.bootstrap.to_bootstrap());
    if let (Some(judge), Some(earlier)) = (report.judges.first(), &baseline) {
        let changes = GradeChanges::new(&judge.graded, earlier);
        changes.check_common(&judge.graded.path)?;
        report.baseline = Some(changes);
    }
    output.write(&render(args, output, &report)?)
}

/// Renders the report in the format of the output.
fn render(args: &ReportArgs, output: &ReportOutput, report: &GradedReport) -> Result<Vec<u8>> {
    let mut browser = graded_browser(&report.judges, report.baseline.as_ref());
    Ok(match output.format {
        ReportFormat::Json => (serde_json::to_string_pretty(report)? + "\n").into_bytes(),
        ReportFormat::Markdown => {
            render_markdown(&args.title, &build_graded_sections(report, &browser)).into_bytes()
        }
        ReportFormat::Csv => graded_table(report, &browser).csv_table().to_csv()?.into_bytes(),
        ReportFormat::Parquet => to_parquet(&graded_table(report, &browser))?,
        ReportFormat::Html => {
            let records = report.judges.first().map(|judge| judge.graded.path.as_path());
            let images = output.embed_images(args, &mut browser, records);
            let content = PageContent {
                title: &args.title,
                form: report.form,
                judges: report.judges.iter().map(|judge| judge.name.as_str()).collect(),
                summaries: report.judges.iter().map(|judge| judge.summaries.as_slice()).collect(),
                sections: &build_graded_sections(report, &browser),
                browser: &browser,
                images: &images,
            };
            render_page(&content)?.into_bytes()
        }
    })
}

/// Checks that no flag asks for scores on criteria, which these verdicts lack.
fn check_flags(args: &ReportArgs) -> Result<()> {
    refuse_flags(&[
        (args.target != ScoreTarget::Final, "--target"),
        (args.audit.is_some(), "--audit"),
        (args.calibration.is_some(), "--calibration"),
        (args.labels.scale.is_some(), "--scale"),
        (args.bootstrap.cluster_by.is_some(), "--cluster-by"),
    ])
}
