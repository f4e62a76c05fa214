//! `acem3 report`: the results of a run as an HTML page or a file.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::run_notices::RunNotices;
use super::verdict_input::{
    DistinctRuns, distinct_paths, read_labels, read_verdicts, records_file,
};
use crate::analysis::calibration::{Calibration, calibrated_means};
use crate::analysis::report::baseline::BaselineComparison;
use crate::analysis::report::file_forms::{
    CSV_REPORT, HTML_REPORT, JSON_REPORT, MARKDOWN_REPORT, PARQUET_REPORT,
};
use crate::analysis::report::{
    CaseBrowser, EmbeddedImages, ImageFolder, JudgeReport, JudgeReportSettings, PairOrientation,
    ReportAudit, ReportData, Thumbs, VerdictTable, build_sections, read_summaries, render_markdown,
    render_page, to_parquet,
};
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::cli::commands::output::write_stdout;
use crate::data::images::outside_images::OUTSIDE_REASON;
use crate::judging::run::manifest::Manifest;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::number::format_bytes;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::format_count;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, verbosity: Verbosity) -> Result<Exit> {
    let format = report_format(args)?;
    let out = check_out(args, format)?;
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
    if let (Some(path), Some(first)) = (&args.baseline, args.records.first()) {
        check_same_question(first, path)?;
    }
    let states = judges.iter().map(|judge| &judge.run).chain(baseline.as_ref().map(|b| &b.run));
    let notices = RunNotices::new(states.cloned(), args.run)?;
    let notices = notices.with_notes(notes);
    if args.out.is_some() || format != ReportFormat::Markdown {
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
        browser.add_changes(&comparison);
        report.baseline = Some(comparison);
    }
    let bytes = match format {
        ReportFormat::Json => (serde_json::to_string_pretty(&report)? + "\n").into_bytes(),
        ReportFormat::Markdown => {
            render_markdown(&args.title, &build_sections(&report, &browser)).into_bytes()
        }
        ReportFormat::Csv => {
            VerdictTable::new(&report, &browser).csv_table().to_csv()?.into_bytes()
        }
        ReportFormat::Parquet => to_parquet(&VerdictTable::new(&report, &browser))?,
        ReportFormat::Html => {
            let folder = ImageFolder {
                path: image_folder(args, &report),
                allow_outside: args.allow_outside,
            };
            let images = EmbeddedImages::new(&browser.images, &folder, args.thumbnails);
            for (entry, index) in browser.entries.iter_mut().zip(&images.indices) {
                entry.embedded_image = *index;
            }
            if !verbosity.quiet {
                print_image_notes(&images, args, &report);
            }
            render_page(&args.title, &report, &browser, &images)?.into_bytes()
        }
    };
    let Some(out) = out else {
        write_stdout(&bytes)?;
        return Ok(Exit::Done);
    };
    out.write(&bytes)?;
    if !verbosity.quiet {
        print_lines(&format!("{}: {}", out.path().display(), format_bytes(bytes.len())));
    }
    Ok(Exit::Done)
}

/// Checks the output file, which must not be an input.
fn check_out(args: &ReportArgs, format: ReportFormat) -> Result<Option<OutFile>> {
    let Some(path) = &args.out else {
        return Ok(None);
    };
    let form = match format {
        ReportFormat::Html => HTML_REPORT,
        ReportFormat::Markdown => MARKDOWN_REPORT,
        ReportFormat::Json => JSON_REPORT,
        ReportFormat::Csv => CSV_REPORT,
        ReportFormat::Parquet => PARQUET_REPORT,
    };
    let records = args.records.iter().chain(&args.baseline);
    let records: Vec<PathBuf> = records.map(|path| records_file(path)).collect();
    let files = [&args.audit, &args.calibration, &args.labels.path, &args.images];
    let inputs: Vec<&Path> =
        records.iter().chain(files.into_iter().flatten()).map(PathBuf::as_path).collect();
    OutFile::check(path, form, &inputs).map(Some)
}

/// Returns the format from the flag or the file extension.
fn report_format(args: &ReportArgs) -> Result<ReportFormat> {
    let extension = args.out.as_ref().and_then(|path| path.extension());
    let extension = extension.map(|e| e.to_string_lossy().into_owned());
    let format = match (args.format, &extension) {
        (Some(format), _) => format,
        (None, Some(extension)) => ReportFormat::from_extension(extension).with_context(|| {
            format!(
                "--out: unknown report format .{extension}, expected .html, .md, .json, .csv or \
                 .parquet\n\
                 hint: change the extension or pass --format"
            )
        })?,
        (None, None) => ReportFormat::Html,
    };
    let needs_file = matches!(format, ReportFormat::Html | ReportFormat::Parquet);
    if args.out.is_none() && needs_file && std::io::stdout().is_terminal() {
        bail!(
            "this format cannot be printed on a terminal\n\
             hint: pass a file, for example --out report.html"
        );
    }
    Ok(format)
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
    for (letter, path) in ('A'..='Z').zip(paths) {
        let mut verdicts = read_verdicts(path, settings.score_kind, &args.bootstrap)?;
        if args.run.complete {
            verdicts.run.check_complete()?;
        }
        if let Some(known) = judges.iter().find(|judge| judge.judge == verdicts.judge) {
            bail!(
                "{} and {}: verdicts of the same judge ({}), expected one run per judge\n\
                 hint: concatenate the records of one judge into one file",
                known.records,
                verdicts.path.display(),
                verdicts.name
            );
        }
        if paths.len() > 1 {
            verdicts.name = format!("{letter}: {}", verdicts.name);
        }
        let summaries = read_summaries(&verdicts.path, |subject| orientation.is_swapped(subject))?;
        orientation.add_records(&verdicts);
        let has_labels = args.labels.path.is_some() || !verdicts.labels.is_empty();
        let units =
            has_labels.then(|| read_labels(&verdicts, &args.labels, verbosity)).transpose()?;
        judges.push(JudgeReport::new(verdicts, summaries, units, settings)?);
    }
    Ok(judges)
}

/// Calibrates the scores of the judge that the calibration was fitted on.
fn add_calibration(judges: &mut [JudgeReport], path: &Path, args: &ReportArgs) -> Result<()> {
    let map = Calibration::read(path)?;
    let index = judges.iter().position(|judge| judge.judge == map.judge);
    let Some(judge) = judges.get_mut(index.unwrap_or_default()) else {
        return Ok(());
    };
    // The calibration maps its own type of scores, whichever the other statistics use.
    let verdicts = read_verdicts(&judge.verdicts.path, map.scores, &args.bootstrap)?;
    map.check_judge(&verdicts).with_context(|| {
        format!("--calibration {}: not applicable to these records", path.display())
    })?;
    judge.calibrated = Some(calibrated_means(&map, &verdicts, args.bootstrap.to_bootstrap()));
    Ok(())
}

/// Returns the folder of the images.
fn image_folder(args: &ReportArgs, report: &ReportData) -> PathBuf {
    let named = args.images.clone();
    named.or_else(|| Some(read_manifest(report)?.source.find_images())).unwrap_or_default()
}

/// Reads the manifest of the first judge.
fn read_manifest(report: &ReportData) -> Option<Manifest> {
    Manifest::read(report.judges.first()?.verdicts.path.parent()?).ok()
}

/// Hint for images inside the files that were judged.
const EMBEDDED_HINT: &str = "hint: if the images are inside the files that were judged, convert \
    these files with `acem3 data import` first, then judge the cases that it writes";

/// Prints the number of images in the page, the reasons for missing ones, and where they were when
/// the run was made.
fn print_image_notes(images: &EmbeddedImages, args: &ReportArgs, report: &ReportData) {
    if args.thumbnails == Thumbs::None {
        return;
    }
    print_lines(&format!(
        "{} in the page, {}",
        format_count(images.uris.len() as u64, "image"),
        format_bytes(images.total_bytes())
    ));
    for (reason, n) in &images.missing {
        print_lines(&format!("{} not shown: {reason}", format_count(*n as u64, "image")));
    }
    if images.missing.iter().any(|(reason, _)| reason == OUTSIDE_REASON) {
        print_lines("hint: pass --allow-outside if the readers of the report may see them");
    }
    if let Some(name) = &images.first_not_found {
        let manifest = read_manifest(report);
        if manifest.as_ref().is_some_and(|manifest| manifest.source.may_embed_images()) {
            print_lines(EMBEDDED_HINT);
            // The name of an embedded image is the id of its case.
            if Path::new(name).extension().is_none() {
                return;
            }
        }
        let source = manifest.and_then(|manifest| manifest.source.images);
        let origin =
            source.map_or_else(String::new, |path| format!("; the run read it from {path}"));
        print_lines(&format!(
            "hint: pass the folder of the cases with --images DIR, so that {name} is in DIR{origin}; or \
             leave out the images with --thumbnails none"
        ));
    }
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
