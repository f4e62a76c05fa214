//! Checks every record of a run: its checksum, its key, and the digest of all.

use std::collections::BinaryHeap;
use std::path::Path;

use acem3_vision::DicomView;
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::data::cases::UnscoredReason;
use crate::data::images::dicom_key;
use crate::judging::provenance::{KeyInput, verdict_key};
use crate::judging::run::manifest::{MANIFEST, Manifest};
use crate::judging::run::record::record_reader::RecordReader;
use crate::judging::run::record::{Record, RecordOutcome};
use crate::judging::run::run_state::RunState;
use crate::support::digest::Digest;

/// Maximum number of key problems that are listed.
const MAX_LISTED: usize = 20;

/// What to check.
#[derive(Clone, Debug)]
pub struct CheckRequest<'a> {
    /// The folder of the run.
    pub folder: &'a Path,
    /// Number of records to sample.
    pub sample: usize,
    /// Seed of the sample.
    pub seed: u64,
    /// Frame and window of DICOM images.
    pub view: DicomView,
}

/// A run whose records were checked.
#[derive(Clone, Debug)]
pub struct CheckedRun {
    /// The manifest.
    pub manifest: Manifest,
    /// State of the records: damaged, exchanged or missing lines.
    pub state: RunState,
    /// Number of intact records with a verdict or another outcome of the judge.
    pub verdicts: u64,
    /// Records whose key does not belong to their content; at most 20.
    pub key_problems: Vec<KeyProblem>,
    /// Number of all records whose key does not belong to their content.
    pub wrong_keys: u64,
    /// The sampled records with their line numbers, in the order of the file.
    pub sample: Vec<(u64, Record)>,
}

/// A record whose key does not belong to its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyProblem {
    /// Number of the line, from 1.
    pub line: u64,
    /// Id of the case.
    pub case: Option<String>,
}

/// A record in the sample. The largest rank leaves the sample first.
struct SampledRecord {
    rank: [u8; 32],
    line: u64,
    record: Record,
}

impl CheckedRun {
    /// Reads all records of a run and draws the sample. Memory holds the sample only.
    ///
    /// # Errors
    ///
    /// The folder has no manifest, or no line of the records is intact.
    pub fn read(request: &CheckRequest<'_>) -> Result<Self> {
        let folder = request.folder;
        let manifest = Manifest::read_if_exists(folder)?.with_context(|| {
            format!(
                "{}: no {MANIFEST} that names the judge and the digest of the records\n\
                 hint: pass the folder that `acem3 judge --out` wrote",
                folder.display()
            )
        })?;
        let (judge, view) = (manifest.judge_sha256, &request.view);
        let mut rows = RecordReader::open(folder, |record: Record, line| {
            let is_wrong = !has_own_key(&record, &judge, view);
            Ok((line, is_wrong, record))
        })?;
        let (mut verdicts, mut wrong_keys, mut key_problems) = (0, 0, Vec::new());
        let mut sample: BinaryHeap<SampledRecord> = BinaryHeap::new();
        for row in rows.by_ref() {
            let (line, is_wrong, record) = row?;
            if is_wrong {
                wrong_keys += 1;
                if key_problems.len() < MAX_LISTED {
                    key_problems.push(KeyProblem { line, case: record.subject.case.clone() });
                }
            }
            if !comes_from_judge(&record) {
                continue;
            }
            verdicts += 1;
            let rank = *Digest::sha256(format!("{} {line}", request.seed).as_bytes()).as_bytes();
            if sample.len() < request.sample || sample.peek().is_some_and(|top| rank < top.rank) {
                sample.push(SampledRecord { rank, line, record });
            }
            if sample.len() > request.sample {
                sample.pop();
            }
        }
        let mut sample: Vec<(u64, Record)> =
            sample.into_iter().map(|sampled| (sampled.line, sampled.record)).collect();
        sample.sort_by_key(|(line, _)| *line);
        let state = rows.state();
        Ok(Self { manifest, state, verdicts, key_problems, wrong_keys, sample })
    }
}

/// Returns true if the key of a record belongs to its content, or it has none.
fn has_own_key(record: &Record, judge: &Digest, view: &DicomView) -> bool {
    let subject = &record.subject;
    let Some(key) = subject.key else {
        return true;
    };
    let (Some(question), Some(responses)) = (&subject.question, &subject.responses) else {
        return false;
    };
    let responses: Vec<&str> = responses.iter().map(String::as_str).collect();
    // The reference is part of the key if the judge sees it, the view if the image is a DICOM object.
    let references = [None, subject.reference.as_deref()];
    let images = match &subject.image {
        None => [None; 2],
        Some(image) => [image.sha256, image.sha256.map(|sha256| dicom_key(&sha256, view))],
    };
    let is_key = |image: &Option<Digest>, reference| {
        let (responses, image) = (&responses, image.as_ref());
        verdict_key(judge, &KeyInput { question, responses, reference, image }) == key
    };
    images.iter().any(|image| references.into_iter().any(|reference| is_key(image, reference)))
}

/// Returns true if the judge gave the outcome, and gives it again for the same input.
fn comes_from_judge(record: &Record) -> bool {
    let has_input = record.subject.key.is_some() && record.subject.responses.is_some();
    has_input
        && match &record.outcome {
            RecordOutcome::Judged(_) => true,
            RecordOutcome::Unscored(unscored) => {
                matches!(unscored.reason, UnscoredReason::Truncated | UnscoredReason::Refused)
            }
            RecordOutcome::Noted { .. } => false,
        }
}

impl PartialEq for SampledRecord {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for SampledRecord {}

impl PartialOrd for SampledRecord {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SampledRecord {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}
