//! Joins the records of all shards of a source to the records of one run.
//!
//! Shards are contiguous parts, so their records follow one another. Every line is checked and
//! copied; memory holds one line and a hash per case.

mod joined_records;
mod shard_set;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use acem3_experts::prompt::Form;
use anyhow::{Result, bail};

pub use self::joined_records::JoinedRecords;
pub use self::shard_set::{ShardRun, ShardSet};
use crate::judging::judge::server_report::ServerReport;
use crate::judging::run::manifest::{MANIFEST, Manifest, MergedShard, RunStatus};
use crate::judging::run::output::contains_records;
use crate::judging::run::record::RECORDS;
use crate::judging::run::replay::records_digest;
use crate::judging::run::summary::tally::Tally;
use crate::support::files::atomic_file::{remove_temporary_files, write_chunks_atomic};
use crate::support::files::folder::{FolderLock, create_folder, free_sibling_name};
use crate::support::terminal::clock::format_rfc3339;

/// A run that was joined from shards.
#[derive(Clone, Debug)]
pub struct MergedRun {
    /// Its manifest.
    pub manifest: Manifest,
    /// Counts and sums of its records.
    pub tally: Tally,
    /// The form of judging.
    pub form: Form,
}

/// Writes the records and the manifest of the joined run to a new folder. Returns the
/// joined run.
///
/// The manifest says `running` until the records are complete, so an interrupted merge can be repeated.
///
/// # Errors
///
/// The folder has a run already, a shard is damaged, or a file cannot be written.
pub fn merge(set: &ShardSet, out: &Path) -> Result<MergedRun> {
    check_free(set, out)?;
    create_folder(out)?;
    let _lock = FolderLock::acquire(out)?;
    // Another merge may have written the folder before the lock.
    check_free(set, out)?;
    remove_temporary_files(out)?;
    let mut manifest = merged_manifest(set);
    manifest.write(out)?;
    let mut joined = JoinedRecords::new(&set.runs);
    write_chunks_atomic(&out.join(RECORDS), joined.by_ref())?;
    let (form, records_digest) = (joined.form(), joined.digest());
    let tally = joined.tally(set);
    manifest.status = if set.is_complete() { RunStatus::Done } else { RunStatus::Interrupted };
    manifest.counts = tally.counts.clone();
    manifest.records_digest = Some(records_digest);
    manifest.finished = Some(format_rfc3339(SystemTime::now()));
    let seconds: f64 = set.runs.iter().filter_map(|run| run.manifest.seconds).sum();
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    manifest.seconds = Some(rounded(seconds));
    let new = tally.counts.judged.saturating_sub(tally.counts.reused);
    manifest.verdicts_per_second = Some(rounded(new as f64 / seconds.max(1e-9)));
    manifest.write(out)?;
    Ok(MergedRun { manifest, tally, form })
}

/// Checks that the output folder has no run but an earlier merge of these shards, and is no input.
fn check_free(set: &ShardSet, out: &Path) -> Result<()> {
    let Some(reason) = why_occupied(set, out) else {
        return Ok(());
    };
    bail!(
        "--out {}: {reason}\nhint: choose another folder, for example --out {}",
        out.display(),
        free_sibling_name(out).display()
    )
}

/// Returns why the joined run cannot be written to a folder; `None` if it can. An earlier merge of these
/// shards, or some of them, can be written again while its records are those of the shards.
fn why_occupied(set: &ShardSet, out: &Path) -> Option<&'static str> {
    let canonical = |path: &Path| path.canonicalize().ok();
    if !out.exists() {
        return None;
    }
    if set.runs.iter().any(|run| canonical(&run.folder) == canonical(out)) {
        return Some("it is one of the shards");
    }
    let has_records = contains_records(out);
    if !has_records && !out.join(MANIFEST).exists() {
        return None;
    }
    let another = Some("already contains a run that is no earlier merge of these shards");
    let Ok(earlier) = Manifest::read(out) else {
        return another;
    };
    let first = &set.first().manifest;
    let has_same_cases = earlier.judge_sha256 == first.judge_sha256
        && earlier.source.digest == first.source.digest
        && earlier.is_merged();
    if !has_same_cases {
        return another;
    }
    if earlier.status == RunStatus::Running || !has_records {
        return None;
    }
    let is_shard = |merged: &MergedShard| {
        let folder = Path::new(&merged.folder);
        let is_folder = |run: &ShardRun| {
            run.folder == folder
                || canonical(&run.folder).is_some_and(|f| Some(f) == canonical(folder))
        };
        // Folders can be relative to another one, or moved.
        let is_run = |run: &ShardRun| {
            (&run.manifest.started, &run.manifest.argv) == (&merged.started, &merged.argv)
        };
        let is_same =
            |run: &ShardRun| run.info.index == merged.index && (is_folder(run) || is_run(run));
        set.runs.iter().any(is_same)
    };
    if !earlier.merged.iter().all(is_shard) {
        return Some("already contains a run: a merge of shards that are not all among these");
    }
    let is_unchanged = records_digest(&out.join(RECORDS)).ok() == earlier.records_digest;
    match (is_unchanged, earlier.judged_after_merge) {
        (false, _) => Some("already contains a run: a merge of these shards that was edited since"),
        (true, true) => Some(
            "already contains a run: a merge of these shards, in which `acem3 judge` ran since",
        ),
        (true, false) => None,
    }
}

/// Creates the manifest of the joined run from those of its shards.
fn merged_manifest(set: &ShardSet) -> Manifest {
    let manifests = || set.runs.iter().map(|run| &run.manifest);
    let devices: BTreeSet<&str> = manifests().map(|m| m.device.as_str()).collect();
    let devices: Vec<&str> = devices.into_iter().collect();
    let mut servers: Vec<ServerReport> = Vec::new();
    for server in manifests().flat_map(|m| &m.servers) {
        if !servers.contains(server) {
            servers.push(server.clone());
        }
    }
    let merged = set.runs.iter().map(|run| MergedShard {
        index: run.info.index,
        folder: run.folder.display().to_string(),
        argv: run.manifest.argv.clone(),
        device: run.manifest.device.clone(),
        started: run.manifest.started.clone(),
        finished: run.manifest.finished.clone(),
        seconds: run.manifest.seconds,
    });
    let started = format_rfc3339(SystemTime::now());
    Manifest {
        version: Manifest::VERSION.to_owned(),
        argv: Manifest::current_argv(),
        shard: None,
        merged: merged.collect(),
        servers,
        warning: manifests().find_map(|m| m.warning.clone()),
        // Unknown if a shard does not state it.
        usage: manifests().map(|m| m.usage).sum(),
        device: devices.join(", "),
        status: RunStatus::Running,
        error: None,
        expected_cases: Some(set.source_cases()),
        records_digest: None,
        started,
        finished: None,
        seconds: None,
        verdicts_per_second: None,
        ..set.first().manifest.clone()
    }
}
