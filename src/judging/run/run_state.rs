//! State of a run as found in its folder: finished or not, and whether its records are those that
//! it wrote.
//!
//! A verdict on a part of the cases can differ from the verdict on all of them, so every command
//! that reads a run says first if the run is unfinished or its records are damaged.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::judging::run::manifest::{MANIFEST, Manifest, RunStatus};
use crate::judging::run::record::checksum::FileChecksum;
use crate::judging::run::record::damage::{Damage, DamagedLine};
use crate::judging::run::shards_found::ShardsFound;
use crate::support::text::format_count;

/// What to do about an unfinished or damaged run.
pub const JUDGE_AGAIN: &str = "run the same `acem3 judge` command again";
/// What to do about a damaged run that was merged from shards.
const MERGE_AGAIN: &str = "merge its shards again, into another folder if its records were edited";

/// State of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunState {
    /// The file of the records.
    pub records: PathBuf,
    /// True if the run has finished and nobody changed its records since; `None` if the folder has no
    /// manifest.
    pub complete: Option<bool>,
    /// Status in the manifest.
    pub status: Option<RunStatus>,
    /// Number of cases with a record: a verdict, or the reason for none.
    pub cases: u64,
    /// Number of cases of the source; `None` if unknown.
    pub expected_cases: Option<u64>,
    /// Number of damaged lines, which do not count.
    pub damaged: u64,
    /// Number of lines without checksum, which count as they are.
    #[serde(skip_serializing_if = "is_zero")]
    pub unchecked: u64,
    /// The first damaged lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged_lines: Vec<DamagedLine>,
    /// Warning of the manifest: the judge is known to judge such cases badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The shards that were read; absent for a run over all cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardsFound>,
    /// Number of lines, without a torn last line.
    #[serde(skip)]
    pub lines: u64,
    /// The folders of the other shards, if several were read.
    #[serde(skip)]
    other_folders: Vec<PathBuf>,
    /// What is wrong with the run, if anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<RunProblem>,
}

/// Something that makes the results of a run preliminary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunProblem {
    /// What was found, with the folder or file.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// What a reader found in the records of a run.
#[derive(Clone, Debug, Default)]
pub struct FoundRecords {
    /// Number of cases with an intact record.
    pub cases: u64,
    /// Number of lines, without a torn last line.
    pub lines: u64,
    /// Number of intact lines without checksum.
    pub unchecked: u64,
    /// True if the last line is torn: a run is writing it, or was killed.
    pub is_torn: bool,
    /// The damaged lines.
    pub damage: Damage,
    /// Checksums of the intact lines.
    pub checksum: FileChecksum,
}

impl RunState {
    /// Compares the records that a reader found with the manifest of their run.
    pub fn new(path: &Path, manifest: Option<&Manifest>, found: &FoundRecords) -> Self {
        let mut problems: Vec<RunProblem> =
            manifest.and_then(|manifest| unfinished(path, manifest, found)).into_iter().collect();
        let is_merged = manifest.is_some_and(Manifest::is_merged);
        problems.extend(torn_line(path, found, is_merged));
        problems.extend(damaged_lines(path, found, is_merged));
        if problems.is_empty() {
            problems.extend(manifest.and_then(|manifest| changed_file(path, manifest, found)));
        }
        let shards = manifest.and_then(ShardsFound::from_manifest);
        let is_complete = problems.is_empty() && shards.as_ref().is_none_or(ShardsFound::is_all);
        let complete = match (manifest, is_complete) {
            (Some(_), is_complete) => Some(is_complete),
            (None, false) => Some(false),
            (None, true) => None,
        };
        Self {
            records: path.to_owned(),
            complete,
            status: manifest.map(|manifest| manifest.status),
            cases: found.cases,
            expected_cases: manifest.and_then(Manifest::count_expected_cases),
            damaged: found.damage.count(),
            unchecked: found.unchecked,
            damaged_lines: found.damage.described().to_vec(),
            warning: manifest.and_then(|manifest| manifest.warning.clone()),
            shards,
            lines: found.lines,
            other_folders: Vec::new(),
            problems,
        }
    }

    /// Returns one line per problem, the warning about the judge, and what could not be checked, to
    /// be shown before the results.
    pub fn notices(&self) -> Vec<String> {
        let path = self.records.display();
        let problems = self.problems.iter().map(|p| format!("{}; {}", p.problem, p.hint));
        let mut notices: Vec<String> = problems.collect();
        notices.extend(self.missing_shards().map(|p| format!("{}; {}", p.problem, p.hint)));
        notices.extend(self.warning.iter().map(|warning| format!("{path}: warning: {warning}")));
        // Verdicts that were judged in memory have no file.
        if self.complete.is_none() && !self.records.as_os_str().is_empty() {
            notices.push(format!(
                "{path}: no {MANIFEST} next to it, so it is unknown whether the run is complete"
            ));
        }
        if self.unchecked > 0 {
            notices.push(format!(
                "{path}: {} without checksum, which an earlier version wrote or somebody edited",
                format_count(self.unchecked, "record")
            ));
        }
        notices
    }

    /// Returns the folders of the run, for messages.
    fn folders(&self) -> String {
        let first = folder_of(&self.records);
        let folders = std::iter::once(&first).chain(&self.other_folders);
        folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the problem of shards that were read without the others.
    fn missing_shards(&self) -> Option<RunProblem> {
        let shards = self.shards.as_ref().filter(|shards| !shards.is_all())?;
        Some(RunProblem {
            problem: format!("{}: only {shards}", self.folders()),
            hint: format!(
                "pass the folders of all shards, and judge those that are missing: `acem3 judge` with {}",
                shards.missing_flags()
            ),
        })
    }

    /// Returns the number of the first shard, for the order of shards; 0 for a run over all cases.
    pub fn first_shard(&self) -> u64 {
        let shards = self.shards.as_ref();
        shards.and_then(|shards| shards.indices.first().copied()).unwrap_or_default()
    }

    /// Joins the states of the shards of one run, in the order of the first of them.
    pub fn join_shards(states: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for state in states {
            let belongs = |other: &&mut Self| match (&other.shards, &state.shards) {
                (Some(known), Some(shards)) => known.belongs_with(shards),
                _ => false,
            };
            match joined.iter_mut().find(belongs) {
                Some(known) => known.add_shard(state),
                None => joined.push(state),
            }
        }
        joined
    }

    /// Adds the state of another shard of the same run.
    fn add_shard(&mut self, other: Self) {
        if let (Some(known), Some(shards)) = (&mut self.shards, other.shards) {
            known.add(shards);
        }
        self.other_folders.push(folder_of(&other.records));
        self.other_folders.extend(other.other_folders);
        self.cases += other.cases;
        self.expected_cases = self.expected_cases.zip(other.expected_cases).map(|(a, b)| a + b);
        self.damaged += other.damaged;
        self.unchecked += other.unchecked;
        self.lines += other.lines;
        self.damaged_lines.extend(other.damaged_lines);
        self.problems.extend(other.problems);
        self.warning = self.warning.take().or(other.warning);
        if other.status != Some(RunStatus::Done) {
            self.status = other.status;
        }
        let is_all = self.shards.as_ref().is_none_or(ShardsFound::is_all);
        self.complete = Some(self.problems.is_empty() && is_all);
    }

    /// Checks that the run is complete, for `--complete`.
    ///
    /// # Errors
    ///
    /// The run is unfinished, its records are damaged, or it has no manifest.
    pub fn check_complete(&self) -> Result<()> {
        let missing = self.missing_shards();
        let all = || self.problems.iter().chain(&missing);
        let Some(first) = all().next() else {
            if self.complete.is_none() {
                bail!(
                    "--complete: {} has no {MANIFEST} next to it that tells whether the run is \
                     complete\n\
                     hint: pass the folder that `acem3 judge --out` wrote, or omit --complete",
                    self.records.display()
                );
            }
            return Ok(());
        };
        let problems: Vec<&str> = all().map(|p| p.problem.as_str()).collect();
        bail!("--complete: {}\nhint: {}, or omit --complete", problems.join("\n"), first.hint);
    }
}

/// Returns the problem of a run that has not finished.
fn unfinished(path: &Path, manifest: &Manifest, found: &FoundRecords) -> Option<RunProblem> {
    if manifest.status == RunStatus::Done {
        return None;
    }
    let progress = match manifest.count_expected_cases() {
        Some(expected) if found.cases < expected => {
            format!("{} of {} are judged", found.cases, format_count(expected, "case"))
        }
        Some(expected) => {
            format!("pairs of its {} may be missing", format_count(expected, "case"))
        }
        None => format!(
            "{} {} judged, the number of all cases is unknown",
            format_count(found.cases, "case"),
            if found.cases == 1 { "is" } else { "are" }
        ),
    };
    let hint = if manifest.is_merged() {
        "judge the rest of its shards, then merge them again".to_owned()
    } else {
        format!("{JUDGE_AGAIN} to judge the rest")
    };
    let problem = format!("{}: the run is unfinished: {progress}", folder_of(path).display());
    Some(RunProblem { problem, hint })
}

fn torn_line(path: &Path, found: &FoundRecords, is_merged: bool) -> Option<RunProblem> {
    found.is_torn.then(|| RunProblem {
        problem: format!(
            "{}: the last record is incomplete and is ignored (a run is writing it, or was \
             interrupted)",
            path.display()
        ),
        hint: repeat_hint(is_merged, " to complete it"),
    })
}

fn damaged_lines(path: &Path, found: &FoundRecords, is_merged: bool) -> Option<RunProblem> {
    let damage = &found.damage;
    let verb = if damage.count() == 1 { "is" } else { "are" };
    (!damage.is_empty()).then(|| RunProblem {
        problem: format!(
            "{}: {} {verb} damaged and {verb} not counted: {}",
            path.display(),
            format_count(damage.count(), "line"),
            damage.describe()
        ),
        hint: repeat_hint(is_merged, ", it judges these cases again"),
    })
}

/// Returns the problem of a finished run whose lines are intact, but are not those that it wrote.
fn changed_file(path: &Path, manifest: &Manifest, found: &FoundRecords) -> Option<RunProblem> {
    let expected = manifest.counts.records;
    let difference = if found.lines != expected {
        format!("{}, expected {expected}", format_count(found.lines, "record"))
    } else if manifest.records_digest.is_some_and(|digest| digest != found.checksum.digest()) {
        "records were exchanged or moved".to_owned()
    } else {
        return None;
    };
    let ending =
        ", which restores removed and moved records; judge edited ones again with another --out";
    Some(RunProblem {
        problem: format!("{}: not the records that the run wrote: {difference}", path.display()),
        hint: repeat_hint(manifest.is_merged(), ending),
    })
}

/// Returns what to do about a damaged run. `ending`: the end of the hint about a run that was not merged.
fn repeat_hint(is_merged: bool, ending: &str) -> String {
    if is_merged { MERGE_AGAIN.to_owned() } else { format!("{JUDGE_AGAIN}{ending}") }
}

/// Returns true if a count is left out of the output.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
