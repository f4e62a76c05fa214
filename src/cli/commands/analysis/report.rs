//! `acem3 report`: the results of a run as an HTML page or a file.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::Form;
use anyhow::{Context as _, Result, bail};

use super::report_correctness::report_correctness;
use super::report_output::{ReportOutput, check_judges};
use super::run_notices::RunNotices;
use super::verdict_input::{
    DistinctRuns, distinct_paths, read_labels, read_verdicts, records_file,
};
use crate::analysis::calibration::{Calibration, calibrated_means};
use crate::analysis::correctness::GradedRun;
use crate::analysis::report::baseline::BaselineComparison;
use crate::analysis::report::{
    CaseBrowser, JudgeReport, JudgeReportSettings, PageContent, PairOrientation, ReportAudit,
    ReportData, VerdictTable, build_sections, read_summaries, render_markdown, render_page,
    to_parquet,
};
use crate::analysis::verdicts::Verdicts;
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::judging::run::manifest::Manifest;
use crate::judging::run::shards_found::ShardsFound;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::verbosity::Verbosity;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, verbosity: Verbosity) -> Result<Exit> {
    let output = ReportOutput::new(args, verbosity)?;
    if let (Some(path), Some(first)) = (&args.baseline, args.records.first()) {
        check_same_question(first, path)?;
    }
    if args.records.first().is_some_and(|path| GradedRun::is_graded(path)) {
        return report_correctness(args, &output);
    }
    let DistinctRuns { runs: paths, notes } = distinct_paths(&args.records);
    let settings = JudgeReportSettings {
        target: args.target.resolved(),
        score_kind: args.scores,
        group_by: args.group_by.clone(),
        bootstrap: args.bootstrap.to_bootstrap(),
        labels: args.labels.path.as_ref().map(|p| p.display().to_string()),
    };
    let mut judges = read_judges(args, &paths, &settings, verbosity)?;
    let baseline = args.baseline.as_ref();
    let baseline = baseline.map(|path| read_verdicts(path, args.scores, &args.bootstrap));
    let baseline = baseline.transpose()?;
    let states = judges.iter().map(|judge| &judge.run).chain(baseline.as_ref().map(|b| &b.run));
    let notices = RunNotices::new(states.cloned(), args.run)?;
    let notices = notices.with_notes(notes);
    if output.needs_notices() {
        notices.print();
    }
    let hashes: Vec<String> = judges.iter().map(|judge| judge.judge.clone()).collect();
    let audit = args.audit.as_deref().map(|path| ReportAudit::read(path, &hashes));
    let audit = audit.transpose()?;
    if let Some(path) = &args.calibration {
        add_calibration(&mut judges, path, args)?;
    }
    let mut report = ReportData::new(judges, audit, &settings)?;
    let mut browser = CaseBrowser::new(&report.judges, settings.target);
    if let (Some(baseline), Some(judge)) = (&baseline, report.judges.first()) {
        let comparison = BaselineComparison::new(&judge.verdicts, baseline, args.target);
        comparison.check_common(&judge.verdicts.path)?;
        browser.add_changes(&comparison);
        report.baseline = Some(comparison);
    }
    let bytes = match output.format {
        ReportFormat::Json => (serde_json::to_string_pretty(&report)? + "\n").into_bytes(),
        ReportFormat::Markdown => {
            render_markdown(&args.title, &build_sections(&report, &browser)).into_bytes()
        }
        ReportFormat::Csv => {
            VerdictTable::new(&report, &browser).csv_table().to_csv()?.into_bytes()
        }
        ReportFormat::Parquet => to_parquet(&VerdictTable::new(&report, &browser))?,
        ReportFormat::Html => {
            let records = report.judges.first().map(|judge| judge.verdicts.path.as_path());
            let images = output.embed_images(args, &mut browser, records);
            let content = PageContent {
                title: &args.title,
                form: Form::Pair,
                judges: report.judges.iter().map(|judge| judge.name.as_str()).collect(),
                summaries: report.judges.iter().map(|judge| judge.summaries.as_slice()).collect(),
                sections: &build_sections(&report, &browser),
                browser: &browser,
                images: &images,
            };
            render_page(&content)?.into_bytes()
        }
    };
    output.write(&bytes)
}

/// Computes the statistics of every judge.
fn read_judges(
    args: &ReportArgs,
    paths: &[PathBuf],
    settings: &JudgeReportSettings,
    verbosity: Verbosity,
) -> Result<Vec<JudgeReport>> {
    let mut orientation = PairOrientation::default();
    let mut judges: Vec<JudgeReport> = Vec::new();
    let runs = group_shards(paths);
    let n = runs.len();
    check_judges(n)?;
    for (letter, shards) in ('A'..='Z').zip(runs) {
        let mut all = Vec::new();
        for path in &shards {
            all.push(read_verdicts(path, settings.score_kind, &args.bootstrap)?);
        }
        let shards: Vec<PathBuf> = all.iter().map(|run| run.path.clone()).collect();
        let lines: Vec<u64> = all.iter().map(|run| run.run.lines).collect();
        let mut verdicts = Verdicts::join(all)?;
        verdicts.check_target(settings.target)?;
        if args.run.complete {
            verdicts.run.check_complete()?;
        }
        if let Some(known) = judges.iter().find(|judge| judge.judge == verdicts.judge) {
            bail!(
                "{} and {}: verdicts of the same judge ({}), expected one run per judge\n\
                 hint: join the shards of one run with `acem3 merge`, or concatenate the records of one \
                 judge into one file",
                known.records,
                verdicts.path.display(),
                verdicts.name
            );
        }
        if n > 1 {
            verdicts.name = format!("{letter}: {}", verdicts.name);
        }
        let (mut summaries, mut before) = (Vec::new(), 0);
        for (path, lines) in shards.iter().zip(lines) {
            let of_shard = read_summaries(path, |subject| orientation.is_swapped(subject))?;
            summaries.extend(of_shard.into_iter().map(|summary| summary.after_lines(before)));
            before += lines;
        }
        orientation.add_records(&verdicts);
        let has_labels = args.labels.path.is_some() || !verdicts.labels.is_empty();
        let units =
            has_labels.then(|| read_labels(&verdicts, &args.labels, verbosity)).transpose()?;
        judges.push(JudgeReport::new(verdicts, summaries, units, settings)?);
    }
    Ok(judges)
}

/// The paths of a run: one, or those of its shards with their numbers.
struct RunPaths {
    shards: Option<ShardsFound>,
    paths: Vec<(u64, PathBuf)>,
}

/// Groups the shards of one run, in their order. Any other run is alone.
fn group_shards(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<RunPaths> = Vec::new();
    for path in paths {
        let file = records_file(path);
        let manifest = file.parent().and_then(|folder| Manifest::read(folder).ok());
        let shard = manifest.as_ref().and_then(ShardsFound::from_manifest);
        let index = manifest.and_then(|manifest| Some(manifest.shard?.index)).unwrap_or_default();
        let known = groups.iter_mut().find(|group| match (&group.shards, &shard) {
            (Some(known), Some(shard)) => known.belongs_with(shard),
            _ => false,
        });
        match (known, shard) {
            (Some(RunPaths { shards: Some(known), paths }), Some(shard)) => {
                known.add(shard);
                paths.push((index, path.clone()));
            }
            (_, shards) => groups.push(RunPaths { shards, paths: vec![(index, path.clone())] }),
        }
    }
    let in_order = |RunPaths { mut paths, .. }: RunPaths| {
        paths.sort();
        paths.into_iter().map(|(_, path)| path).collect()
    };
    groups.into_iter().map(in_order).collect()
}

/// Calibrates the scores of the judge that the calibration was fitted on.
fn add_calibration(judges: &mut [JudgeReport], path: &Path, args: &ReportArgs) -> Result<()> {
    let map = Calibration::read(path)?;
    let index = judges.iter().position(|judge| judge.judge == map.judge);
    let Some(judge) = judges.get_mut(index.unwrap_or_default()) else {
        return Ok(());
    };
    if judge.run.shards.as_ref().is_some_and(|shards| shards.indices.len() > 1) {
        bail!(
            "--calibration {}: not available for several shards\n\
             hint: join them with `acem3 merge` first",
            path.display()
        );
    }
    // The calibration maps its own type of scores, whichever the other statistics use.
    let verdicts = read_verdicts(&judge.verdicts.path, map.scores, &args.bootstrap)?;
    map.check_judge(&verdicts).with_context(|| {
        format!("--calibration {}: not applicable to these records", path.display())
    })?;
    judge.calibrated = Some(calibrated_means(&map, &verdicts, args.bootstrap.to_bootstrap()));
    Ok(())
}

/// Checks that two runs have the same form, use of the reference, and rubric.
///
/// # Errors
///
/// They differ, so that their scores cannot be compared. Runs without a manifest are not checked.
fn check_same_question(records: &Path, baseline: &Path) -> Result<()> {
    let manifest = |path: &Path| {
        let file = records_file(path);
        Manifest::read(file.parent()?).ok()
    };
    let (Some(new), Some(earlier)) = (manifest(records), manifest(baseline)) else {
        return Ok(());
    };
    for (name, default) in [("form", "pair"), ("reference", "hidden"), ("rubric key", "ace_m3")] {
        let value = |manifest: &Manifest| {
            manifest.provenance.get(name).map_or_else(|| default.to_owned(), Clone::clone)
        };
        let (new, earlier) = (value(&new), value(&earlier));
        if new != earlier {
            bail!(
                "--baseline {}: the {name} was {earlier}, and is {new} in {}\n\
                 hint: compare runs of the same form, reference and rubric",
                baseline.display(),
                records.display()
            );
        }
    }
    Ok(())
}
