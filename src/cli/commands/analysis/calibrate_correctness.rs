//! `acem3 calibrate fit` for verdicts on the correctness of single responses.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::graded_input::{read_grade_labels, refuse_flags};
use super::run_notices::RunNotices;
use super::verdict_input::records_file;
use crate::analysis::correctness::{GradedRun, ProbabilityCalibration, ProbabilityFit};
use crate::cli::args::{CalibrateFitArgs, TableFormat};
use crate::cli::commands::output::write_stdout;
use crate::support::files::out_file::OutFile;
use crate::support::terminal::exit::Exit;

/// Fits a map from the probability that a response is correct to the labels.
pub(super) fn fit_probabilities(args: &CalibrateFitArgs) -> Result<Exit> {
    refuse_flags(&[
        (args.labels.scale.is_some(), "--scale"),
        (args.bootstrap.cluster_by.is_some(), "--cluster-by"),
    ])?;
    let records = records_file(&args.records);
    let inputs = [Some(&records), args.labels.path.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    let check = |path: &PathBuf| OutFile::check(path, ProbabilityCalibration::FORM, &inputs);
    let out = args.out.as_ref().map(check).transpose()?;
    let run = GradedRun::read(&args.records)?;
    let notices = RunNotices::new([run.run.clone()], args.run)?;
    let (entries, source) = read_grade_labels(&run, &args.labels)?;
    let fit = ProbabilityFit {
        method: args.method,
        folds: args.folds as usize,
        bootstrap: args.bootstrap.to_bootstrap(),
    };
    let calibration = ProbabilityCalibration::fit(&run, &entries, &source, &fit)?;
    if let Some(out) = &out {
        calibration.write(out)?;
    }
    let text = match args.format {
        TableFormat::Json => notices.to_json(&calibration)?,
        TableFormat::Csv => calibration.csv_table().to_csv()?,
        TableFormat::Text | TableFormat::Markdown => {
            let intro = args.out.as_ref().map_or_else(
                || "calibration map not saved; save it with --out FILE".to_owned(),
                |out| {
                    format!("calibration map of {} written to {}", calibration.name, out.display())
                },
            );
            notices.render(&intro, &calibration.tables(), args.format)
        }
    };
    notices.print_unless_in(args.format);
    write_stdout(&text)?;
    Ok(Exit::Done)
}
