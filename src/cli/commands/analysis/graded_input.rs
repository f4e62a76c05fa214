//! Reads verdicts on correctness and their labels.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::verdict_input::{DistinctRuns, distinct_paths, repeated_note};
use crate::analysis::correctness::GradedRun;
use crate::cli::args::LabelArgs;
use crate::data::labels;
use crate::data::labels::{LabelEntry, LabelOptions, LabelValue, ScoreTarget};
use crate::support::text::format_count;

/// Refuses flags that ask for what verdicts on correctness lack. `flags`: whether each is given, and its
/// name.
///
/// # Errors
///
/// One of them is given.
pub(super) fn refuse_flags(flags: &[(bool, &str)]) -> Result<()> {
    match flags.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, flag)) => {
            bail!("{flag}: not available for verdicts of the form correctness\nhint: omit it")
        }
    }
}

/// Reads runs of one judge, and counts a verdict once that several of them have: the same response to
/// the same case with the same key.
///
/// # Errors
///
/// A run cannot be read.
pub(super) fn read_distinct_grades(paths: &[PathBuf]) -> Result<DistinctRuns<GradedRun>> {
    let DistinctRuns { runs, mut notes } = distinct_paths(paths);
    let runs = runs.iter().map(|path| GradedRun::read(path));
    let mut runs = runs.collect::<Result<Vec<_>>>()?;
    let mut known = HashSet::new();
    for run in &mut runs {
        let all = run.responses.len();
        let (judge, earlier) = (run.judge.clone(), known.clone());
        run.responses.retain(|response| {
            let identity =
                (judge.clone(), response.case.clone(), response.model.clone(), response.key);
            let is_new = !earlier.contains(&identity);
            known.insert(identity);
            is_new
        });
        let repeated = all - run.responses.len();
        notes.extend(repeated_note(&run.path, repeated, &format_count(all as u64, "response")));
    }
    Ok(DistinctRuns { runs, notes })
}

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
