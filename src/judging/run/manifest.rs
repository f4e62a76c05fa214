//! `run.json`: who judged what, when, with which settings, and how it ended.
//!
//! All that depends on the day and the machine is here, and nothing of it in the records.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::checkpoints::hub::HubStamp;
use crate::data::cases::{SourceKind, UnscoredReason};
use crate::judging::judge::Judge;
use crate::judging::provenance::{Provenance, judge_digest};
use crate::judging::run::record::SCHEMA;
use crate::judging::run::tally::Tally;
use crate::support::digest::Digest;
use crate::support::terminal::clock::rfc3339;
use crate::support::terminal::exit::EngineFailure;

/// The name of the manifest in the folder of a run.
pub const MANIFEST: &str = "run.json";

/// What made the records beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the records' form.
    pub schema: u32,
    /// The version of this program.
    pub version: String,
    /// The command line as it was typed.
    pub argv: Vec<String>,
    /// Where the cases came from.
    pub source: SourceInfo,
    /// The judge, as it is called in tables.
    pub judge: String,
    /// The hash of the judge's provenance; its first 16 digits are in every record.
    pub judge_sha256: Digest,
    /// Everything about the judge that can move a verdict.
    pub provenance: Provenance,
    /// What the judge was taken from on the hub, by commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub: Vec<HubStamp>,
    /// Where it was computed.
    pub device: String,
    /// How the run ended, or that it has not.
    pub status: RunStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much was done.
    pub counts: RunCounts,
    /// When this run (not an earlier one that it resumed) started: RFC 3339, UTC.
    pub started: String,
    /// When it ended.
    pub finished: Option<String>,
    /// How long it took, in seconds.
    pub seconds: Option<f64>,
    /// Verdicts per second, without those that were reused.
    pub verdicts_per_second: Option<f64>,
}

/// Where cases came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// The path as it was typed.
    pub path: String,
    /// The layout it was recognised as.
    pub kind: String,
}

impl SourceInfo {
    /// A source of this kind, called as it was typed.
    pub fn of(path: &Path, kind: SourceKind) -> Self {
        let kind = serde_json::to_value(kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str());
        Self {
            path: path.display().to_string(),
            kind: kind.unwrap_or_default().to_owned(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has not ended, or was killed.
    Running,
    /// Through the whole input.
    Done,
    /// By the person; the same command resumes.
    Interrupted,
    /// By an error; the same command resumes.
    Failed,
}

/// How much was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Cases that were read.
    pub cases: u64,
    /// Cases that could not be.
    pub unreadable: u64,
    /// Responses that were left out of their cases, and lines of answers that no case missed.
    #[serde(default)]
    pub left_out: u64,
    /// Records: pairs, cases without a pair to judge, and faults that cost neither.
    pub records: u64,
    /// Records with a verdict.
    pub judged: u64,
    /// Records without, by reason.
    pub unscored: BTreeMap<UnscoredReason, u64>,
    /// Records of faults that cost no verdict.
    #[serde(default)]
    pub noted: u64,
    /// Records whose verdict was reused from an earlier run.
    pub reused: u64,
}

impl RunCounts {
    /// Records without a verdict.
    pub fn all_unscored(&self) -> u64 {
        self.unscored.values().sum()
    }

    /// Records that have a verdict or lack one.
    pub fn due(&self) -> u64 {
        self.judged + self.all_unscored()
    }

    /// The percentage of verdicts that are lacking.
    pub fn unscored_percent(&self) -> f64 {
        100.0 * self.all_unscored() as f64 / self.due().max(1) as f64
    }
}

impl Manifest {
    /// The version of this program.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// The version of the records' form.
    pub const SCHEMA: u32 = SCHEMA;

    /// The manifest of a run that begins now.
    pub fn begin(source: SourceInfo, judge: &dyn Judge) -> Self {
        let provenance = judge.provenance();
        Self {
            schema: Self::SCHEMA,
            version: Self::VERSION.to_owned(),
            argv: std::env::args_os()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
            source,
            judge: judge.name(),
            judge_sha256: judge_digest(&provenance),
            provenance,
            hub: Vec::new(),
            device: judge.device(),
            status: RunStatus::Running,
            error: None,
            counts: RunCounts::default(),
            started: rfc3339(SystemTime::now()),
            finished: None,
            seconds: None,
            verdicts_per_second: None,
        }
    }

    /// Notes how the run ended after so many seconds: through its input, interrupted, or with an error.
    pub fn end(&mut self, outcome: &anyhow::Result<bool>, tally: &Tally, seconds: f64) {
        self.status = match outcome {
            Ok(true) => RunStatus::Done,
            Ok(false) => RunStatus::Interrupted,
            Err(_) => RunStatus::Failed,
        };
        let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        self.error = error.and_then(|text| Some(text.lines().next()?.to_owned()));
        self.counts = tally.counts.clone();
        self.finished = Some(rfc3339(SystemTime::now()));
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        self.seconds = Some(rounded(seconds));
        self.verdicts_per_second = Some(rounded(tally.fresh as f64 / seconds.max(1e-9)));
    }

    /// Reads the manifest of a folder.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(MANIFEST);
        let place = || format!("cannot read {}", path.display());
        let bytes = fs::read(&path).with_context(place)?;
        serde_json::from_slice(&bytes).with_context(place)
    }

    /// Refuses a folder whose manifest is somebody else's file of that name.
    ///
    /// # Errors
    /// A `run.json` that no run of this program wrote.
    pub fn check_own(folder: &Path) -> anyhow::Result<()> {
        if !folder.join(MANIFEST).exists() {
            return Ok(());
        }
        let read = Self::read(folder).map(|_| ());
        read.with_context(|| {
            format!(
                "{}: not the manifest of a run\n\
                 hint: name another folder with --out, or move this file away",
                folder.join(MANIFEST).display()
            )
        })
    }

    /// Writes the manifest of a folder; a reader sees the old one or the new one, whole.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(MANIFEST);
        let fresh = path.with_extension("json.tmp");
        let mut text = serde_json::to_string_pretty(self).context("cannot write a manifest")?;
        text.push('\n');
        let attempt = || {
            let mut file = File::create(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&fresh, &path)
        };
        attempt().with_context(|| {
            let _ = fs::remove_file(&fresh);
            EngineFailure(format!(
                "cannot write {}\nhint: make room or choose another --out; the same command resumes",
                path.display()
            ))
        })
    }
}

/// What is different about the judge, as far as the manifest of the folder tells.
pub fn differences(folder: &Path, provenance: &Provenance) -> String {
    let Ok(manifest) = Manifest::read(folder) else {
        return String::new();
    };
    let mut names: Vec<_> = manifest
        .provenance
        .keys()
        .chain(provenance.keys())
        .collect();
    names.sort();
    names.dedup();
    let of = |p: &Provenance, name: &str| p.get(name).map_or("absent".to_owned(), |v| brief(v));
    let differing = names
        .iter()
        .filter(|n| manifest.provenance.get(**n) != provenance.get(**n));
    let parts: Vec<String> = differing
        .map(|n| {
            format!(
                "{n} was {}, is {}",
                of(&manifest.provenance, n),
                of(provenance, n)
            )
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join("; "))
    }
}

/// A value short enough for a message; hashes are told apart by their beginning.
fn brief(value: &str) -> String {
    let mut text: String = value.chars().take(24).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}
