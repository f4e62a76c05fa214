//! Reads the verdicts of a run from its records.

use std::collections::BTreeSet;
use std::path::Path;

use acem3_experts::prompt::Form;
use anyhow::{Result, bail};
use serde::de::DeserializeOwned;

use super::pair_verdict::{PairVerdict, ResponseScoreMap, chosen_scores, expected_scores};
use super::score_kind::ScoreKind;
use super::scored_response::{ScoredResponse, pairs_of_cases};
use super::slim_record::{ExpectedCriteria, SkippedCriteria, SlimRecord, SlimStatus};
use super::verdicts::Verdicts;
use crate::data::labels::{LabelEntry, labels_from_record};
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::Record;
use crate::judging::run::record::record_reader::RecordReader;
use crate::judging::run::record::record_row::parse_line;

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
        let row = VerdictRow::new::<SkippedCriteria>(row, number, chosen_scores);
        verdicts.judge = row.judge;
        verdicts.labels.extend(row.labels);
        verdicts.pairs.extend(row.verdict);
    }
    verdicts.check_pairs(&BTreeSet::new())?;
    Ok(verdicts)
}

/// Reads the scores of a record.
type ReadScores<A> = fn(&SlimRecord<A>) -> Option<ResponseScoreMap>;

fn read_rows<A: DeserializeOwned + 'static>(
    path: &Path,
    scores: ReadScores<A>,
) -> Result<Verdicts> {
    let convert = move |record: SlimRecord<A>, number| Ok(VerdictRow::new(record, number, scores));
    let mut rows = RecordReader::open(path, convert)?;
    let (mut judges, mut verdicts) = (BTreeSet::new(), Verdicts::empty(rows.path()));
    let mut responses = Vec::new();
    for row in rows.by_ref() {
        let row = row?;
        check_form(row.form, &verdicts.path)?;
        judges.insert(row.judge);
        verdicts.labels.extend(row.labels);
        let is_without_pair =
            row.verdict.is_none() && row.responses.is_empty() && row.unlisted_pairs.is_none();
        verdicts.without_pair += usize::from(is_without_pair && !row.is_noted);
        let (models, n) = row.unlisted_pairs.unwrap_or_default();
        for model in models {
            *verdicts.unlisted_pairs.entry(model).or_default() += n;
        }
        verdicts.pairs.extend(row.verdict);
        responses.extend(row.responses);
    }
    verdicts.pairs.extend(pairs_of_cases(&responses));
    verdicts.run = rows.state();
    check_alone(&verdicts, responses.len())?;
    verdicts.check_pairs(&judges)?;
    verdicts.judge = judges.into_iter().next().unwrap_or_default();
    let manifest = judge_manifest(&rows, &verdicts.judge);
    let range = manifest.as_ref().and_then(|manifest| manifest.score_range);
    let is_valid = |[low, high]: &[u8; 2]| low < high && *high <= verdicts.score_range[1];
    verdicts.score_range = range.filter(is_valid).unwrap_or(verdicts.score_range);
    verdicts.name = manifest.map_or_else(|| verdicts.judge.clone(), |m| m.judge);
    Ok(verdicts)
}

/// The parts of a record that become verdicts and labels.
struct VerdictRow {
    judge: String,
    form: Form,
    /// The verdict, if the record has a pair.
    verdict: Option<PairVerdict>,
    /// The responses, if they were judged alone or in a list.
    responses: Vec<ScoredResponse>,
    labels: Vec<LabelEntry>,
    /// True if the record reports an input problem that affects no verdict.
    is_noted: bool,
    /// Number of pairs of each of these models that have no record of their own.
    unlisted_pairs: Option<(Vec<String>, u64)>,
}

impl VerdictRow {
    fn new<A>(mut record: SlimRecord<A>, number: u64, scores: ReadScores<A>) -> Self {
        let models: &[String] = record.pair.as_ref().map_or(&record.models, |pair| pair);
        let mut row = Self {
            form: record.form,
            labels: labels_from_record(
                record.case.as_deref(),
                models,
                record.labels.as_ref(),
                record.line,
            ),
            judge: std::mem::take(&mut record.judge),
            is_noted: record.status == SlimStatus::Noted,
            unlisted_pairs: record.unlisted_pairs.map(|n| (std::mem::take(&mut record.models), n)),
            verdict: None,
            responses: Vec::new(),
        };
        let scores = scores(&record);
        match record.form {
            Form::Pair => row.verdict = PairVerdict::from_record(record, scores, number),
            Form::Single | Form::List if !row.is_noted => {
                row.responses = ScoredResponse::from_record(&record, scores.as_ref(), number);
            }
            Form::Single | Form::List | Form::Correctness => {}
        }
        row
    }
}

/// Checks that records have scores on the criteria.
fn check_form(form: Form, path: &Path) -> Result<()> {
    if form == Form::Correctness {
        bail!(
            "{}: the verdicts say whether single responses are correct; they have no scores to compare\n\
             hint: `acem3 rank`, `acem3 agree`, `acem3 report` and `acem3 calibrate fit` read them; for other \
             commands, judge with --form pair or --form single",
            path.display()
        );
    }
    Ok(())
}

/// Checks that responses that were judged alone have others to be compared with.
fn check_alone(verdicts: &Verdicts, alone: usize) -> Result<()> {
    if alone > 0 && verdicts.pairs.is_empty() {
        bail!(
            "{}: no case has responses of two models, so there is nothing to compare\n\
             hint: judge the answers of several models together; the mean scores of one model are in \
             the summary of `acem3 judge`",
            verdicts.path.display()
        );
    }
    Ok(())
}

/// Returns the manifest next to the records if it is about this judge.
fn judge_manifest<T: Send>(rows: &RecordReader<'_, T>, judge: &str) -> Option<Manifest> {
    let neighbour = || Manifest::read(rows.path().parent()?).ok();
    let manifest = rows.manifest().cloned().or_else(neighbour);
    manifest.filter(|m| m.judge_sha256.short_hex() == judge)
}
