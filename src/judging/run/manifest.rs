//! `run.json`: judge, source, settings, times and status of a run.
//!
//! Everything that depends on time and machine is here, so that the records do not.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::checkpoints::hub::HubSource;
use crate::judging::judge::Judge;
use crate::judging::judge::server_report::ServerReport;
use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage};
use crate::judging::provenance::{Provenance, judge_digest};
use crate::judging::run::record::SCHEMA;
use crate::judging::run::record::checksum::LineChecksum;
use crate::judging::run::shard::ShardInfo;
use crate::judging::run::source_info::SourceInfo;
use crate::judging::run::summary::counts::RunCounts;
use crate::judging::run::summary::tally::Tally;
use crate::support::digest::Digest;
use crate::support::files::atomic_file::replace_atomic;
use crate::support::files::regular_file;
use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::terminal::clock::format_rfc3339;
use crate::support::terminal::exit::RunFailure;

/// File name of the manifest in the output folder.
pub const MANIFEST: &str = "run.json";

/// Maximum number of differences between two judges that a message lists.
const MAX_LISTED_DIFFERENCES: usize = 3;

/// The manifest of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Schema version of the records.
    pub schema: u32,
    /// Version of acem3.
    pub version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Source of the cases.
    pub source: SourceInfo,
    /// Name of the judge in tables.
    pub judge: String,
    /// Hash of the judge's provenance; every record has its first 16 digits.
    pub judge_sha256: Digest,
    /// Everything about the judge that can change a verdict.
    pub provenance: Provenance,
    /// The part of the source that the run judges; absent if it judges all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardInfo>,
    /// The shards whose records `acem3 merge` joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedShard>,
    /// True if `acem3 judge` ran in the folder after the merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged_after_merge: bool,
    /// Lowest and highest score of the rubric; `None` in runs of earlier versions.
    #[serde(default)]
    pub score_range: Option<[u8; 2]>,
    /// Hub repositories of the judge, with commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub: Vec<HubSource>,
    /// Results of the tests of the servers that run members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerReport>,
    /// Requests to these servers and their tokens, also those of earlier commands that this one resumed.
    /// A command that was killed is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ServerUsage>,
    /// Warning about these verdicts: the judge is known to judge such cases badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Device.
    pub device: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Error of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of cases to judge, unreadable ones included; `None` if it is not known yet.
    #[serde(default)]
    pub expected_cases: Option<u64>,
    /// Counts of the run.
    pub counts: RunCounts,
    /// True if every record has a checksum. Earlier versions wrote records without.
    #[serde(default)]
    pub record_checksums: bool,
    /// SHA-256 of the checksums of all records, in their order; `None` until the run ends.
    #[serde(default)]
    pub records_digest: Option<Digest>,
    /// Start of this run (not of an earlier run that it resumed): RFC 3339, UTC.
    pub started: String,
    /// End of the run: RFC 3339, UTC.
    pub finished: Option<String>,
    /// Duration in seconds.
    pub seconds: Option<f64>,
    /// New verdicts per second.
    pub verdicts_per_second: Option<f64>,
}

/// A run over a shard, in the manifest of the merged run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedShard {
    /// Number of the shard, from 1.
    pub index: u64,
    /// Folder of the run.
    pub folder: String,
    /// Command line of the run; empty in manifests of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Device.
    pub device: String,
    /// Start of the run: RFC 3339, UTC.
    pub started: String,
    /// End of the run: RFC 3339, UTC.
    pub finished: Option<String>,
    /// Duration in seconds.
    pub seconds: Option<f64>,
}

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Running, or killed.
    Running,
    /// Finished.
    Done,
    /// Interrupted by the user; the same command resumes it.
    Interrupted,
    /// Ended with an error; the same command resumes it.
    Failed,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// Counts of the run.
    pub tally: &'a Tally,
    /// SHA-256 of the checksums of all records; `None` if they cannot be read.
    pub records_digest: Option<Digest>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Manifest {
    /// Version of acem3.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Schema version of the records.
    pub const SCHEMA: u32 = SCHEMA;

    /// Creates the manifest of a run over this number of cases, if it is known, that starts now.
    pub fn start(source: SourceInfo, judge: &dyn Judge, expected_cases: Option<u64>) -> Self {
        let provenance = judge.provenance();
        Self {
            schema: Self::SCHEMA,
            version: Self::VERSION.to_owned(),
            argv: Self::current_argv(),
            source,
            judge: judge.name(),
            judge_sha256: judge_digest(&provenance),
            provenance,
            shard: None,
            merged: Vec::new(),
            judged_after_merge: false,
            score_range: Some(judge.score_range()),
            hub: Vec::new(),
            servers: judge.servers(),
            usage: None,
            warning: None,
            device: judge.device(),
            status: RunStatus::Running,
            error: None,
            expected_cases,
            counts: RunCounts::default(),
            record_checksums: true,
            records_digest: None,
            started: format_rfc3339(SystemTime::now()),
            finished: None,
            seconds: None,
            verdicts_per_second: None,
        }
    }

    /// Returns the requests of the commands that a run of this judge resumes.
    pub fn earlier_usage(&self, judge: &dyn Judge) -> Option<EarlierUsage> {
        let is_same = self.judge_sha256 == judge_digest(&judge.provenance());
        let usage = self.usage.filter(|_| is_same)?;
        Some(EarlierUsage { usage, jobs: self.counts.records })
    }

    /// Updates the reports and the usage of the servers. Names of other models in earlier answers stay.
    pub fn update_servers(&mut self, judge: &dyn Judge) {
        self.usage = judge.usage();
        let known = std::mem::replace(&mut self.servers, judge.servers());
        self.servers.iter_mut().for_each(|server| server.add_earlier(&known));
    }

    /// Takes over what servers answered in an earlier command of the run.
    pub fn continue_run(&mut self, earlier: Option<&Self>, usage: Option<EarlierUsage>) {
        self.usage = usage.map(|earlier| earlier.usage);
        let known = earlier.map(|earlier| earlier.servers.as_slice()).unwrap_or_default();
        self.servers.iter_mut().for_each(|server| server.add_earlier(known));
    }

    /// Returns true if the command that wrote this was killed while it sent requests, so that they are not
    /// counted.
    pub fn lacks_usage(&self) -> bool {
        self.status == RunStatus::Running && !self.servers.is_empty()
    }

    /// Returns the command line of this process, without credentials in URLs.
    pub fn current_argv() -> Vec<String> {
        let args = std::env::args_os();
        args.map(|arg| hide_url_secrets(&arg.to_string_lossy()).into_owned()).collect()
    }

    /// Returns the number of cases to judge; `None` if it is not known.
    pub fn count_expected_cases(&self) -> Option<u64> {
        let is_done = self.status == RunStatus::Done;
        self.expected_cases.or(is_done.then_some(self.counts.cases + self.counts.unreadable))
    }

    /// Stores the status, the counts, the records and the duration in seconds of the ended run.
    pub fn finish(&mut self, outcome: &anyhow::Result<bool>, end: &RunEnd<'_>) {
        let RunEnd { tally, records_digest, seconds } = *end;
        self.status = match outcome {
            Ok(true) => RunStatus::Done,
            Ok(false) => RunStatus::Interrupted,
            Err(_) => RunStatus::Failed,
        };
        let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        self.error = error.and_then(|text| Some(text.lines().next()?.to_owned()));
        self.counts = tally.counts.clone();
        self.records_digest = records_digest;
        if self.status == RunStatus::Done {
            self.expected_cases = Some(self.counts.cases + self.counts.unreadable);
        }
        self.finished = Some(format_rfc3339(SystemTime::now()));
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        self.seconds = Some(rounded(seconds));
        self.verdicts_per_second = Some(rounded(tally.new_verdicts as f64 / seconds.max(1e-9)));
    }

    /// Reads the manifest of a folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a manifest, or was changed after it was written.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(MANIFEST);
        let text =
            regular_file::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let parse = || -> anyhow::Result<Self> {
            let manifest: Self = serde_json::from_slice(&text)?;
            let is_changed = match split_checksum(&text) {
                Some((fields, checksum)) => {
                    LineChecksum::of_parts(&[fields]).to_string() != checksum
                }
                None => manifest.record_checksums,
            };
            ensure!(!is_changed, "the checksum does not match");
            Ok(manifest)
        };
        parse().with_context(|| {
            format!(
                "{}: damaged, or not a run manifest of acem3\n\
                 hint: run the same `acem3 judge` command again: it writes this file again and \
                 keeps the verdicts; or delete the file to use the records without it",
                path.display()
            )
        })
    }

    /// Returns true if the run was merged from shards.
    pub fn is_merged(&self) -> bool {
        !self.merged.is_empty()
    }

    /// Returns the command line that judged the cases, or the first shard of them.
    pub fn judge_argv(&self) -> &[String] {
        self.merged.first().map_or(&self.argv, |shard| &shard.argv)
    }

    /// Reads the manifest of a folder, if it has one.
    ///
    /// # Errors
    ///
    /// See [`Manifest::read`].
    pub fn read_if_exists(folder: &Path) -> anyhow::Result<Option<Self>> {
        folder.join(MANIFEST).exists().then(|| Self::read(folder)).transpose()
    }

    /// Writes the manifest atomically.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(MANIFEST);
        let json = serde_json::to_string_pretty(self).context("cannot write a manifest")?;
        let text = append_checksum(&json);
        replace_atomic(&path, |file| file.write_all(text.as_bytes())).with_context(|| {
            RunFailure(format!(
                "cannot write {}\nhint: free disk space or use another --out; the same command resumes",
                path.display()
            ))
        })
    }
}

/// Start of the last line of a manifest with a checksum.
const CHECKSUM_FIELD: &str = ",\n  \"checksum\": \"";

/// Adds the checksum of the other lines as the last field of a manifest.
fn append_checksum(json: &str) -> String {
    let fields = json.trim_end_matches('}').trim_end();
    let checksum = LineChecksum::of_parts(&[fields.as_bytes()]);
    format!("{fields}{CHECKSUM_FIELD}{checksum}\"\n}}\n")
}

/// Splits a manifest into its other fields and its checksum; `None` if it has no checksum.
fn split_checksum(text: &[u8]) -> Option<(&[u8], &str)> {
    let text = str::from_utf8(text).ok()?;
    let (fields, end) = text.rsplit_once(CHECKSUM_FIELD)?;
    Some((fields.as_bytes(), end.trim_end().strip_suffix('}')?.trim_end().strip_suffix('"')?))
}

/// Describes the differences between the provenance in a manifest and the current one, for a message:
/// lists a few, each with all settings that have it, and names the earlier judge if there are more.
pub fn describe_differences(folder: &Path, provenance: &Provenance) -> String {
    let Ok(manifest) = Manifest::read(folder) else {
        return String::new();
    };
    let mut names: Vec<_> = manifest.provenance.keys().chain(provenance.keys()).collect();
    names.sort();
    names.dedup();
    let value_of = |p: &Provenance, name: &str| match p.get(name).map(|value| shorten(value)) {
        // A semicolon also separates the settings.
        Some(value) if value.contains(';') => format!("{value:?}"),
        Some(value) => value,
        None => "absent".to_owned(),
    };
    let differing = names.iter().filter(|n| manifest.provenance.get(**n) != provenance.get(**n));
    let mut settings: BTreeMap<[String; 2], Vec<&str>> = BTreeMap::new();
    for name in differing {
        let values = [&manifest.provenance, provenance].map(|p| value_of(p, name));
        settings.entry(values).or_default().push(name);
    }
    if settings.len() > MAX_LISTED_DIFFERENCES {
        let count: usize = settings.values().map(Vec::len).sum();
        return format!(" (made by {}, which differs in {count} settings)", manifest.judge);
    }
    let parts: Vec<String> = (settings.iter())
        .map(|([was, is], names)| format!("{} was {was}, is {is}", names.join(", ")))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Shortens a value for a message.
fn shorten(value: &str) -> String {
    let is_digest = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut text: String = value.chars().take(if is_digest { 24 } else { 80 }).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}
