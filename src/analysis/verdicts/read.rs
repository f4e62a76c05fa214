//! Reads the verdicts of a run from its records.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;

use super::pair_verdict::{PairVerdict, TargetScoreMap, chosen_scores, expected_scores};
use super::score_kind::ScoreKind;
use super::slim_record::{ExpectedCriteria, SkippedCriteria, SlimRecord, SlimStatus};
use super::verdicts::Verdicts;
use crate::data::labels::{LabelEntry, labels_from_record};
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::Record;
use crate::judging::run::record::record_reader::{RecordReader, parse_line};

/// Reads the records of a file, or of the folder that `acem3 judge` wrote.
///
/// # Errors
///
/// If the file cannot be read, if a line is not a record, or if there are several judges or several
/// verdicts on one pair.
pub fn read(path: &Path, kind: ScoreKind) -> Result<Verdicts> {
    match kind {
        ScoreKind::Chosen => read_rows::<SkippedCriteria>(path, chosen_scores),
        ScoreKind::Expected => read_rows::<ExpectedCriteria>(path, expected_scores),
    }
}

/// Collects the verdicts of records in memory; `path` names their source in messages.
///
/// # Errors
///
/// If they have no pair, or two verdicts on one pair.
pub fn from_records(
    path: &Path,
    judge: &str,
    records: impl Iterator<Item = Record>,
) -> Result<Verdicts> {
    let mut verdicts = Verdicts::empty(path);
    judge.clone_into(&mut verdicts.name);
    for (record, number) in records.zip(1..) {
        let row = parse_line(path, number, &record.to_line()?)?;
        let row = VerdictRow::new::<SkippedCriteria>(row, number, chosen_scores)?;
        verdicts.judge = row.judge;
        verdicts.labels.extend(row.labels);
        verdicts.pairs.extend(row.verdict);
    }
    verdicts.check_pairs(&BTreeSet::new())?;
    Ok(verdicts)
}

/// Reads the scores of a record.
type ReadScores<A> = fn(&SlimRecord<A>) -> Option<TargetScoreMap>;

fn read_rows<A: DeserializeOwned + 'static>(
    path: &Path,
    scores: ReadScores<A>,
) -> Result<Verdicts> {
    let convert = move |record: SlimRecord<A>, number| VerdictRow::new(record, number, scores);
    let mut rows = RecordReader::open(path, convert)?;
    let (mut judges, mut verdicts) = (BTreeSet::new(), Verdicts::empty(rows.path()));
    for row in rows.by_ref() {
        let row = row?;
        judges.insert(row.judge);
        verdicts.labels.extend(row.labels);
        verdicts.without_pair += usize::from(row.verdict.is_none() && !row.is_noted);
        verdicts.pairs.extend(row.verdict);
    }
    verdicts.is_torn = rows.is_torn();
    verdicts.check_pairs(&judges)?;
    verdicts.judge = judges.into_iter().next().unwrap_or_default();
    verdicts.name = judge_name(rows.path(), &verdicts.judge);
    Ok(verdicts)
}

/// The parts of a record that become verdicts and labels.
struct VerdictRow {
    judge: String,
    /// The verdict, if the record has a pair.
    verdict: Option<PairVerdict>,
    labels: Vec<LabelEntry>,
    /// True if the record reports an input problem that affects no verdict.
    is_noted: bool,
}

impl VerdictRow {
    fn new<A>(mut record: SlimRecord<A>, number: u64, scores: ReadScores<A>) -> Result<Self> {
        let row = Self {
            judge: std::mem::take(&mut record.judge),
            labels: labels_from_record(
                record.case.as_deref(),
                record.pair.as_ref(),
                record.labels.as_ref(),
                record.line,
            ),
            is_noted: record.status == SlimStatus::Noted,
            verdict: {
                let scores = scores(&record);
                PairVerdict::from_record(record, scores, number)
            },
        };
        if let Some(score) = row.verdict.as_ref().and_then(PairVerdict::first_out_of_range) {
            bail!(
                "a score of {score}, expected 0 to 5\n\
                 hint: the line was edited after `acem3 judge` wrote it; delete the line and run `acem3 judge` again"
            );
        }
        Ok(row)
    }
}

/// Returns the name of the judge in the manifest next to the records, or its hash.
fn judge_name(path: &Path, judge: &str) -> String {
    let manifest = path.parent().and_then(|folder| Manifest::read(folder).ok());
    let matching = manifest.filter(|m| m.judge_sha256.short_hex() == judge);
    matching.map_or_else(|| judge.to_owned(), |m| m.judge)
}
