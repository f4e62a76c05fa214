//! Reads the verdicts and labels that commands analyse.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::analysis::agreement::{LabelledUnits, join_labels};
use crate::analysis::verdicts;
use crate::analysis::verdicts::{ScoreKind, Verdicts};
use crate::cli::args::{BootstrapArgs, LabelArgs};
use crate::data::labels;
use crate::data::labels::LabelOptions;
use crate::judging::run::journal::RECORDS;
use crate::support::files::file_identity::FileIdentity;
use crate::support::terminal::progress::print_lines;
use crate::support::terminal::verbosity::Verbosity;

/// Checks that no run is given twice, because its verdicts would count twice.
pub(super) fn check_distinct_runs(paths: &[PathBuf]) -> Result<()> {
    let mut known: HashMap<FileIdentity, &Path> = HashMap::new();
    for path in paths {
        // The reader reports a file that does not exist.
        let Some(records) = FileIdentity::of(&records_file(path)) else {
            continue;
        };
        if let Some(first) = known.insert(records, path) {
            bail!(
                "{} and {}: the same records, expected every run once\n\
                 hint: remove one of the two arguments",
                first.display(),
                path.display()
            );
        }
    }
    Ok(())
}

/// Returns the file of the records of a run: the path itself, or a file in this folder.
pub(super) fn records_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RECORDS) } else { path.to_owned() }
}

/// Reads the verdicts of a run, with the clusters that the flags ask for.
pub(super) fn read_verdicts(
    path: &Path,
    scores: ScoreKind,
    args: &BootstrapArgs,
) -> Result<Verdicts> {
    let mut verdicts = verdicts::read(path, scores)?;
    if let Some(field) = &args.cluster_by {
        verdicts.cluster_by(field)?;
    }
    Ok(verdicts)
}

/// Joins labels to verdicts: the labels of the file, or those of the records without one.
pub(super) fn read_labels(
    verdicts: &Verdicts,
    args: &LabelArgs,
    verbosity: Verbosity,
) -> Result<LabelledUnits> {
    let warn = |text: String| {
        if !verbosity.quiet {
            print_lines(&text);
        }
    };
    let Some(path) = &args.path else {
        if verdicts.labels.is_empty() {
            bail!(
                "{}: the records have no labels\nhint: pass a label file with --labels FILE; \
                 `acem3 agree --help` shows its formats",
                verdicts.path.display()
            );
        }
        return join_labels(verdicts, &verdicts.labels, &verdicts.path);
    };
    let options = LabelOptions {
        rater_columns: args.rater_columns.clone(),
        scale: args.scale.map(|scale| scale.0),
    };
    let file = labels::read(path, &options)?;
    if !file.unused_columns.is_empty() {
        let names: Vec<&str> = file.unused_columns.iter().map(String::as_str).collect();
        warn(format!("{}: ignored columns: {}", path.display(), names.join(", ")));
    }
    if let Some(out_of_range) = file.out_of_range_note() {
        warn(format!("{}: {out_of_range}", path.display()));
    }
    let units = join_labels(verdicts, &file.entries, path)?;
    if let Some(first) = &units.first_unmatched {
        warn(format!(
            "{}: {} of {} labels match no case in the records ({first})",
            path.display(),
            units.unmatched,
            units.unmatched + units.joined
        ));
    }
    Ok(units)
}
