//! Reads the verdicts and labels that commands analyse.

use std::collections::{HashMap, HashSet};
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
use crate::support::text::format_count;

/// The runs that a command reads, each once.
pub(super) struct DistinctRuns<T> {
    /// The runs, in the order of the arguments.
    pub(super) runs: Vec<T>,
    /// What was left out.
    pub(super) notes: Vec<String>,
}

/// Leaves out paths of records that an earlier path names already.
pub(super) fn distinct_paths(paths: &[PathBuf]) -> DistinctRuns<PathBuf> {
    let mut known: HashMap<FileIdentity, &Path> = HashMap::new();
    let mut distinct = DistinctRuns { runs: Vec::new(), notes: Vec::new() };
    for path in paths {
        // The reader reports a file that does not exist.
        let records = FileIdentity::of(&records_file(path));
        match records.and_then(|records| known.insert(records, path)) {
            Some(first) => distinct.notes.push(format!(
                "{} and {}: the same records, read once",
                first.display(),
                path.display()
            )),
            None => distinct.runs.push(path.clone()),
        }
    }
    distinct
}

/// Reads runs of one judge, and counts a verdict once that several of them have: the same pair of
/// the same case with the same key.
pub(super) fn read_distinct_verdicts(
    paths: &[PathBuf],
    scores: ScoreKind,
    args: &BootstrapArgs,
) -> Result<DistinctRuns<Verdicts>> {
    let DistinctRuns { runs, mut notes } = distinct_paths(paths);
    let runs = runs.iter().map(|path| read_verdicts(path, scores, args));
    let mut runs = runs.collect::<Result<Vec<_>>>()?;
    // Shards in the order of the merged records, so that resampling draws the same clusters.
    runs.sort_by_key(|run| run.run.first_shard());
    let mut known = HashSet::new();
    for run in &mut runs {
        let all = run.pairs.len();
        let judge = run.judge.clone();
        run.pairs.retain(|pair| {
            let mut models = pair.pair.clone();
            models.sort_unstable();
            // A pair without a key has no verdict; its line tells it from those of other sources.
            let line = pair.key.is_none().then(|| (pair.cluster.clone(), pair.line));
            known.insert((judge.clone(), pair.case.clone(), models, pair.key, line))
        });
        let repeated = all - run.pairs.len();
        if repeated > 0 && run.pairs.is_empty() {
            run.unlisted_pairs.clear();
        }
        notes.extend(repeated_note(&run.path, repeated, &format_count(all as u64, "pair")));
    }
    Ok(DistinctRuns { runs, notes })
}

/// Says how many of all verdicts of a run are also in an earlier one; `None` if none is.
pub(super) fn repeated_note(path: &Path, repeated: usize, all: &str) -> Option<String> {
    let path = path.display();
    (repeated > 0).then(|| {
        format!("{path}: {repeated} of {all} are also in an earlier argument, counted once")
    })
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
    if !file.unused_controls.is_empty() {
        let names: Vec<&str> = file.unused_controls.iter().map(String::as_str).collect();
        warn(format!("{}: ignored controls: {}", path.display(), names.join(", ")));
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
