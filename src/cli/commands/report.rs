//! `acem3 report`: what a run found, on one page.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::agree::{bootstrap, labelled, read};
use super::print;
use crate::analysis::calibration::{Calibration, means};
use crate::analysis::report::{
    CaseBrowser, EmbeddedImages, Inputs, JudgeReport, PairOrientation, ReportAudit, ReportData,
    Thumbs, VerdictTable, markdown, page, parquet, read as read_whole, sections,
};
use crate::analysis::verdicts::ScoreKind;
use crate::cli::args::{ReportArgs, ReportFormat};
use crate::judging::run::manifest::Manifest;
use crate::support::files::atomic_file;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::number::human_bytes;
use crate::support::terminal::progress::say;
use crate::support::terminal::verbosity::Verbosity;
use crate::support::text::plural;

/// Runs the command.
pub(super) fn run(args: &ReportArgs, verbosity: Verbosity) -> Result<Exit> {
    let format = format(args)?;
    let inputs = Inputs {
        target: args.on,
        scores: ScoreKind::from_flag(args.expected),
        by: args.by.clone(),
        bootstrap: bootstrap(&args.sampling),
        labels: args.labels.labels.as_ref().map(|p| p.display().to_string()),
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
            let pictures = EmbeddedImages::of(&browser.stamps, &folder(args, &report), args.thumbs);
            for (entry, place) in browser.entries.iter_mut().zip(&pictures.places) {
                entry.picture = *place;
            }
            if !verbosity.quiet {
                tell(&pictures, args.thumbs);
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

/// The form that was asked for, or that the file's ending tells of.
fn format(args: &ReportArgs) -> Result<ReportFormat> {
    let ending = args.out.as_ref().and_then(|path| path.extension());
    let ending = ending.map(|e| e.to_string_lossy().into_owned());
    let format = match (args.format, &ending) {
        (Some(format), _) => format,
        (None, Some(ending)) => ReportFormat::of_ending(ending).with_context(|| {
            format!(
                "--out: no form of a report ends in .{ending}\n\
                 hint: expected .html, .md, .json, .csv or .parquet, or --format"
            )
        })?,
        (None, None) => ReportFormat::Html,
    };
    let file = matches!(format, ReportFormat::Html | ReportFormat::Parquet);
    if args.out.is_none() && file && std::io::stdout().is_terminal() {
        bail!("this form is not for a terminal\nhint: name a file, as in --out report.html");
    }
    Ok(format)
}

/// The figures of every judge.
fn judges(args: &ReportArgs, inputs: &Inputs, verbosity: Verbosity) -> Result<Vec<JudgeReport>> {
    let mut sides = PairOrientation::default();
    let mut judges: Vec<JudgeReport> = Vec::new();
    for (letter, path) in ('A'..='Z').zip(&args.records) {
        let mut verdicts = read(path, inputs.scores, &args.sampling)?;
        if let Some(known) = judges.iter().find(|judge| judge.judge == verdicts.judge) {
            bail!(
                "{} and {}: verdicts of one judge ({})\n\
                 hint: several records are of several judges on the same cases; join the records of one \
                 judge in a file",
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
        let any = args.labels.labels.is_some() || !verdicts.labels.is_empty();
        let units = any
            .then(|| labelled(&verdicts, &args.labels, verbosity))
            .transpose()?;
        judges.push(JudgeReport::of(verdicts, seen, units, inputs)?);
    }
    Ok(judges)
}

/// Maps the scores of the judge that a calibration belongs to.
fn calibrate(judges: &mut [JudgeReport], path: &Path, args: &ReportArgs) -> Result<()> {
    let map = Calibration::read(path)?;
    let own = judges.iter().position(|judge| judge.judge == map.judge);
    let Some(judge) = judges.get_mut(own.unwrap_or_default()) else {
        return Ok(());
    };
    // Its own kind of scores, whichever the other figures are of.
    let verdicts = read(&judge.verdicts.path, map.scores, &args.sampling)?;
    map.check(&verdicts)
        .with_context(|| format!("--calibration {} does not fit", path.display()))?;
    judge.calibrated = Some(means(&map, &verdicts, bootstrap(&args.sampling)));
    Ok(())
}

/// Where the images are.
fn folder(args: &ReportArgs, report: &ReportData) -> PathBuf {
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

/// What is said of images that are and are not in the page.
fn tell(pictures: &EmbeddedImages, thumbs: Thumbs) {
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
        say("hint: --images PATH says where they are, --thumbs none leaves them out");
    }
}
