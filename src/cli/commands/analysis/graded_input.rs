//! Reads the labels of verdicts on correctness.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::analysis::correctness::GradedRun;
use crate::cli::args::LabelArgs;
use crate::data::labels;
use crate::data::labels::{LabelEntry, LabelOptions, LabelValue, ScoreTarget};

/// Reads the labels of a run: those of the file, or those of the records without one.
///
/// # Errors
///
/// The file cannot be read, or there are no labels.
pub(super) fn read_grade_labels(
    run: &GradedRun,
    args: &LabelArgs,
) -> Result<(Vec<LabelEntry>, PathBuf)> {
    let options = LabelOptions { rater_columns: args.rater_columns.clone(), scale: None };
    let file = args.path.as_ref().map(|path| labels::read(path, &options)).transpose()?;
    let (entries, source) = match (file, &args.path) {
        (Some(file), Some(path)) => (file.entries, path),
        _ => (run.labels.clone(), &run.path),
    };
    if entries.is_empty() {
        bail!(
            "{}: no labels\n\
             hint: pass a file with the columns case, model and score, 1 for correct and 0 for wrong, \
             with --labels FILE",
            source.display()
        );
    }
    Ok((entries, source.clone()))
}

/// Returns true if labels say whether responses are correct: final scores of 1 and 0 only. Cases for
/// pairs have other labels.
pub(super) fn are_grades(labels: &[LabelEntry]) -> bool {
    labels.iter().all(|entry| {
        entry.target == ScoreTarget::Final
            && matches!(entry.value, LabelValue::Score { value, .. }
                if [0.0, 1.0].iter().any(|grade| value.total_cmp(grade).is_eq()))
    })
}
