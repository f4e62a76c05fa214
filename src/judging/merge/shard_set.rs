//! The runs over the shards of one source, checked before they are joined.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::judging::run::manifest::{MANIFEST, Manifest, RunStatus, describe_differences};
use crate::judging::run::record::RECORDS;
use crate::judging::run::shard::ShardInfo;
use crate::support::text::shell_word::quote_shell_word;

/// Maximum number of missing shards whose command a message has.
const MAX_HINTS: usize = 3;

/// A run over one shard.
#[derive(Clone, Debug)]
pub struct ShardRun {
    /// Folder of the run.
    pub folder: PathBuf,
    /// Manifest of the run.
    pub manifest: Manifest,
    /// The shard.
    pub info: ShardInfo,
}

/// Runs over different shards of one source, by the same judge, in the order of the shards.
#[derive(Clone, Debug)]
pub struct ShardSet {
    /// The runs; at least one.
    pub(super) runs: Vec<ShardRun>,
    first: ShardRun,
    missing: Vec<u64>,
}

impl ShardRun {
    /// Reads the manifest of the run in a folder, or next to a records file.
    fn open(path: &Path) -> Result<Self> {
        let is_file = path.file_name().is_some_and(|name| name == RECORDS) && path.is_file();
        let folder = path.parent().filter(|_| is_file).unwrap_or(path);
        let Some(manifest) = Manifest::read_if_exists(folder)? else {
            bail!(
                "{}: no {MANIFEST}, so it is unknown which shard this is\n\
                 hint: pass the folders that `acem3 judge --shard I/N --out DIR` wrote",
                folder.display()
            );
        };
        let Some(info) = manifest.shard.clone() else {
            bail!(
                "{}: a run over all cases, expected a shard\n\
                 hint: pass the folders that `acem3 judge --shard I/N --out DIR` wrote",
                folder.display()
            );
        };
        Ok(Self { folder: folder.to_owned(), manifest, info })
    }

    /// Returns true if all cases of the shard are judged.
    pub fn is_complete(&self) -> bool {
        self.manifest.status == RunStatus::Done
    }
}

impl ShardSet {
    /// Opens the runs over the shards of a source. With `is_partial`, shards may be missing or
    /// unfinished.
    ///
    /// # Errors
    ///
    /// The runs do not belong together, a shard is there twice, or a shard is missing or unfinished.
    pub fn open(paths: &[PathBuf], is_partial: bool) -> Result<Self> {
        let runs = paths.iter().map(|path| ShardRun::open(path));
        let mut runs = runs.collect::<Result<Vec<_>>>()?;
        runs.sort_by_key(|run| run.info.index);
        let first = runs.first().cloned().context("no shard")?;
        runs.iter().try_for_each(|run| check_same_run(&first, run))?;
        for pair in runs.windows(2) {
            if let [a, b] = pair
                && a.info.index == b.info.index
            {
                bail!(
                    "{} and {}: both are {}, so its cases would occur twice\nhint: pass one of them",
                    a.folder.display(),
                    b.folder.display(),
                    a.info
                );
            }
        }
        let has = |index: &u64| runs.iter().any(|run| run.info.index == *index);
        let missing = (1..=first.info.of).filter(|index| !has(index)).collect();
        let set = Self { runs, first, missing };
        if !(is_partial || set.is_complete()) {
            return Err(set.incomplete_error());
        }
        Ok(set)
    }

    /// Returns the run over the first of these shards.
    pub fn first(&self) -> &ShardRun {
        &self.first
    }

    /// Returns the number of cases in all shards.
    pub fn source_cases(&self) -> u64 {
        self.first.info.source_cases
    }

    /// Returns true if all shards are there and finished.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.runs.iter().all(ShardRun::is_complete)
    }

    /// Describes the shards that are missing or unfinished, one line each.
    pub fn describe_missing(&self) -> Vec<String> {
        let of = self.first.info.of;
        let missing = self.missing.iter().map(|index| format!("shard {index} of {of} is missing"));
        let unfinished = self
            .runs
            .iter()
            .filter(|run| !run.is_complete())
            .map(|run| format!("{} in {} is unfinished", run.info, run.folder.display()));
        missing.chain(unfinished).collect()
    }

    /// Returns the error for a set with missing or unfinished shards, and how to finish them.
    fn incomplete_error(&self) -> anyhow::Error {
        let of = self.first.info.of;
        let command = |argv: &[String]| {
            argv.iter().map(|word| quote_shell_word(word)).collect::<Vec<_>>().join(" ")
        };
        let mut hints: Vec<String> = self
            .runs
            .iter()
            .filter(|run| !run.is_complete())
            .map(|run| {
                format!(
                    "hint: finish {} with its command: {}",
                    run.info,
                    command(&run.manifest.argv)
                )
            })
            .collect();
        let judge = command(&without_shard_and_out(&self.first.manifest.argv));
        hints.extend(self.missing.iter().take(MAX_HINTS).map(|index| {
            format!(
                "hint: judge shard {index} into a new folder: {judge} --shard {index}/{of} --out DIR"
            )
        }));
        let problems = self.describe_missing().join("; ");
        anyhow!("{problems}\n{}\nhint: or pass --partial to merge what there is", hints.join("\n"))
    }
}

/// Returns a command line of `acem3 judge` without the flags `--shard` and `--out`.
fn without_shard_and_out(argv: &[String]) -> Vec<String> {
    let flags = ["--shard", "--out", "-o"];
    let mut words = argv.iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if flags.contains(&word.as_str()) {
            // Its value is the next word.
            words.next();
        } else if !flags.iter().any(|flag| word.starts_with(&format!("{flag}="))) {
            kept.push(word.clone());
        }
    }
    kept
}

/// Checks that two runs have the same judge, source and settings.
fn check_same_run(first: &ShardRun, run: &ShardRun) -> Result<()> {
    let folders = format!("{} and {}", first.folder.display(), run.folder.display());
    let (a, b) = (&first.manifest, &run.manifest);
    if a.judge_sha256 != b.judge_sha256 {
        bail!(
            "{folders}: verdicts of two judges{}\nhint: merge shards of one judge",
            describe_differences(&first.folder, &b.provenance)
        );
    }
    let text = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
    let digest = |m: &Manifest| m.source.digest.map_or("none".to_owned(), |d| d.short_hex());
    let (i, k) = (&first.info, &run.info);
    let compared = [
        ("number of shards", i.of.to_string(), k.of.to_string()),
        ("kind of source", a.source.kind.clone(), b.source.kind.clone()),
        ("number of cases", i.source_cases.to_string(), k.source_cases.to_string()),
        ("digest of the cases", digest(a), digest(b)),
        ("--baseline", text(i.baseline.as_ref()), text(k.baseline.as_ref())),
        ("DICOM view", text(i.dicom_view.as_ref()), text(k.dicom_view.as_ref())),
        ("schema of records", a.schema.to_string(), b.schema.to_string()),
    ];
    if let Some((name, first, second)) = compared.into_iter().find(|(_, a, b)| a != b) {
        bail!(
            "{folders}: the {name} differs: {first} and {second}\n\
             hint: merge shards of one source that were judged with the same flags"
        );
    }
    Ok(())
}
