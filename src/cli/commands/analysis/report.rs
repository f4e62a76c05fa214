//! `acem3 report`: the results of a run as a page or a file.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::verdict_input::{read_labels, read_verdicts};
use crate::analysis::calibration::{Calibration, means};
use crate::analysis::report::{
    CaseBrowser, EmbeddedImages, Inputs, JudgeReport, PairOrientation, ReportAudit, ReportData,
    Thumbs, VerdictTable, markdown, page, parquet, read as read_whole, sections,
};
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::cli::commands::output::print;
use crate::judging::run::manifest::Manifest;
use crate::support::files::atomic_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::number::human_bytes;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::plural;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, verbosity: Verbosity) -> Result<Exit> {
    let format = format(args)?;
    let inputs = Inputs {
        target: args.target,
        scores: args.scores,
        by: args.group_by.clone(),
        bootstrap: args.bootstrap.bootstrap(),
        labels: args.labels.path.as_ref().map(|p| p.display().to_string()),
    };
    let mut judges = judges(args, &inputs, verbosity)?;
    let hashes: Vec<String> = judges.iter().map(|judge| judge.judge.clone()).collect();
    let audit = args
        .audit
        .as_deref()
        .map(|path| ReportAudit::read(path, &hashes));
    let audit = audit.transpose()?;
    if let Some(path) = &args.calibration {
        calibrate(&mut judges, path, args)?;
    }
    let report = ReportData::of(judges, audit, &inputs)?;
    let mut browser = CaseBrowser::of(&report.judges, inputs.target);
    let bytes = match format {
        ReportFormat::Json => (serde_json::to_string_pretty(&report)? + "\n").into_bytes(),
        ReportFormat::Markdown => markdown(&args.title, &sections(&report, &browser)).into_bytes(),
        ReportFormat::Csv => VerdictTable::of(&report, &browser)
            .csv_table()
            .csv()?
            .into_bytes(),
        ReportFormat::Parquet => parquet(&VerdictTable::of(&report, &browser))?,
        ReportFormat::Html => {
            let pictures = EmbeddedImages::of(
                &browser.stamps,
                &image_folder(args, &report),
                args.thumbnails,
            );
            for (entry, place) in browser.entries.iter_mut().zip(&pictures.places) {
                entry.picture = *place;
            }
            if !verbosity.quiet {
                print_image_notes(&pictures, args.thumbnails);
            }
            page(&args.title, &report, &browser, &pictures)?.into_bytes()
        }
    };
    let Some(path) = &args.out else {
        print(&bytes)?;
        return Ok(Exit::Done);
    };
    atomic_file::write(path, &bytes)?;
    if !verbosity.quiet {
        say(&format!("{}: {}", path.display(), human_bytes(bytes.len())));
    }
    Ok(Exit::Done)
}

/// Returns the format of the flag, or of the file extension.
fn format(args: &ReportArgs) -> Result<ReportFormat> {
    let ending = args.out.as_ref().and_then(|path| path.extension());
    let ending = ending.map(|e| e.to_string_lossy().into_owned());
    let format = match (args.format, &ending) {
        (Some(format), _) => format,
        (None, Some(ending)) => ReportFormat::from_extension(ending).with_context(|| {
            format!(
                "--out: unknown report format .{ending}, expected .html, .md, .json, .csv or .parquet\n\
                 hint: change the extension or pass --format"
            )
        })?,
        (None, None) => ReportFormat::Html,
    };
    let file = matches!(format, ReportFormat::Html | ReportFormat::Parquet);
    if args.out.is_none() && file && std::io::stdout().is_terminal() {
        bail!(
            "this format cannot be printed on a terminal\nhint: pass a file, for example --out report.html"
        );
    }
    Ok(format)
}

/// Computes the statistics of every judge.
fn judges(args: &ReportArgs, inputs: &Inputs, verbosity: Verbosity) -> Result<Vec<JudgeReport>> {
    let mut sides = PairOrientation::default();
    let mut judges: Vec<JudgeReport> = Vec::new();
    for (letter, path) in ('A'..='Z').zip(&args.records) {
        let mut verdicts = read_verdicts(path, inputs.scores, &args.bootstrap)?;
        if let Some(known) = judges.iter().find(|judge| judge.judge == verdicts.judge) {
            bail!(
                "{} and {}: verdicts of the same judge ({}), expected one run per judge\n\
                 hint: concatenate the records of one judge into one file",
                known.records,
                verdicts.path.display(),
                verdicts.name
            );
        }
        if args.records.len() > 1 {
            verdicts.name = format!("{letter}: {}", verdicts.name);
        }
        let seen = read_whole(&verdicts.path, |subject| sides.mirrored(subject))?;
        sides.learn(&verdicts);
        let has_labels = args.labels.path.is_some() || !verdicts.labels.is_empty();
        let units = has_labels
            .then(|| read_labels(&verdicts, &args.labels, verbosity))
            .transpose()?;
        judges.push(JudgeReport::of(verdicts, seen, units, inputs)?);
    }
    Ok(judges)
}

/// Calibrates the scores of the judge that the calibration was fitted on.
fn calibrate(judges: &mut [JudgeReport], path: &Path, args: &ReportArgs) -> Result<()> {
    let map = Calibration::read(path)?;
    let own = judges.iter().position(|judge| judge.judge == map.judge);
    let Some(judge) = judges.get_mut(own.unwrap_or_default()) else {
        return Ok(());
    };
    // The calibration maps its own type of scores, whichever the other statistics use.
    let verdicts = read_verdicts(&judge.verdicts.path, map.scores, &args.bootstrap)?;
    map.check(&verdicts).with_context(|| {
        format!(
            "--calibration {}: not applicable to these records",
            path.display()
        )
    })?;
    judge.calibrated = Some(means(&map, &verdicts, args.bootstrap.bootstrap()));
    Ok(())
}

/// Returns the folder of the images.
fn image_folder(args: &ReportArgs, report: &ReportData) -> PathBuf {
    if let Some(path) = &args.images {
        return path.clone();
    }
    let records = report.judges.first().map(|judge| &judge.verdicts.path);
    let manifest = records.and_then(|path| Manifest::read(path.parent()?).ok());
    manifest.map_or_else(PathBuf::new, |manifest| {
        let path = PathBuf::from(manifest.source.path);
        if path.extension().is_some_and(|e| e == "parquet") {
            path
        } else {
            crate::data::cases::root(&path)
        }
    })
}

/// Prints how many images the page includes, and why others are missing.
fn print_image_notes(pictures: &EmbeddedImages, thumbs: Thumbs) {
    if thumbs == Thumbs::None {
        return;
    }
    say(&format!(
        "{} in the page, {}",
        plural(pictures.uris.len() as u64, "image"),
        human_bytes(pictures.bytes())
    ));
    for (reason, n) in &pictures.missing {
        say(&format!(
            "{} not shown: {reason}",
            plural(*n as u64, "image")
        ));
    }
    if pictures.uris.is_empty() && !pictures.missing.is_empty() {
        say(
            "hint: pass their location with --images PATH, or leave them out with --thumbnails none",
        );
    }
}
