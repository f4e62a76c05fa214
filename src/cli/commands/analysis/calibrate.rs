//! `acem3 calibrate`: calibration of a judge's scores to the label scale.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::calibrate_correctness::fit_probabilities;
use super::run_notices::RunNotices;
use super::verdict_input::{read_labels, read_verdicts, records_file};
use crate::analysis::calibration::{
    CALIBRATED_RECORDS_FORM, Calibration, FitConfig, calibrated_means, fit_calibration,
    means_csv_table, means_table,
};
use crate::analysis::correctness::GradedRun;
use crate::cli::args::{
    CalibrateApplyArgs, CalibrateArgs, CalibrateCommand, CalibrateFitArgs, TableFormat,
};
use crate::cli::commands::output::write_stdout;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs, verbosity: Verbosity) -> Result<Exit> {
    match &args.command {
        CalibrateCommand::Fit(args) if GradedRun::is_graded(&args.records) => {
            fit_probabilities(args)
        }
        CalibrateCommand::Fit(args) => fit_maps(args, verbosity),
        CalibrateCommand::Apply(args) => apply_maps(args),
    }
}

fn fit_maps(args: &CalibrateFitArgs, verbosity: Verbosity) -> Result<Exit> {
    let records = records_file(&args.records);
    let inputs: Vec<&Path> = [Some(&records), args.labels.path.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let out = args.out.as_ref().map(|path| OutFile::check(path, Calibration::FORM, &inputs));
    let out = out.transpose()?;
    let verdicts = read_verdicts(&args.records, args.scores, &args.bootstrap)?;
    let notices = RunNotices::new([verdicts.run.clone()], args.run)?;
    let units = read_labels(&verdicts, &args.labels, verbosity)?;
    let config = FitConfig {
        score_kind: args.scores,
        method: args.method,
        folds: args.folds as usize,
        bootstrap: args.bootstrap.to_bootstrap(),
    };
    let labels = args.labels.path.as_ref();
    let labels =
        labels.map_or("labels of the records".to_owned(), |path| path.display().to_string());
    let calibration = fit_calibration(&verdicts, &units, labels, &config)?;
    if let Some(out) = &out {
        calibration.write(out)?;
    }
    let tables = calibration.tables();
    let text = match args.format {
        TableFormat::Json => notices.to_json(&calibration)?,
        TableFormat::Csv => calibration.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = args.out.as_ref().map_or_else(
                || "calibration maps not saved; save them with --out FILE".to_owned(),
                |out| {
                    format!("calibration maps of {} written to {}", calibration.name, out.display())
                },
            );
            notices.render(&intro, &tables, args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}

fn apply_maps(args: &CalibrateApplyArgs) -> Result<Exit> {
    if GradedRun::is_graded(&args.records) {
        bail!(
            "{}: verdicts of the form correctness cannot be calibrated with a file yet\n\
             hint: `acem3 calibrate fit` prints how reliable the probabilities are; `acem3 rank` prints \
             the accuracy",
            args.records.display()
        );
    }
    let map = Calibration::read(&args.calibration)?;
    let verdicts = read_verdicts(&args.records, map.scores, &args.bootstrap)?;
    let notices = RunNotices::new([verdicts.run.clone()], args.run)?;
    map.run_problems.iter().for_each(|problem| {
        print_lines(&format!("{}: fitted although {problem}", args.calibration.display()));
    });
    map.check_judge(&verdicts).with_context(|| {
        format!("--calibration {}: not applicable to these records", args.calibration.display())
    })?;
    if let Some(path) = &args.out {
        let inputs = [verdicts.path.as_path(), &args.calibration];
        let out = OutFile::check(path, CALIBRATED_RECORDS_FORM, &inputs)?;
        map.write_calibrated_records(&verdicts, &out)?;
    }
    let calibration = calibrated_means(&map, &verdicts, args.bootstrap.to_bootstrap());
    let text = match args.format {
        TableFormat::Json => serde_json::to_string_pretty(&calibration)? + "\n",
        TableFormat::Csv => means_csv_table(&calibration).to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = format!("{} calibrated to {}", map.name, map.labels);
            notices.render(&intro, &[means_table(&calibration)], args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}
