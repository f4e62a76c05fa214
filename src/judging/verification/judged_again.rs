//! Judges sampled records again and compares the verdicts.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::compared_values::{ValueDifference, compare_values};
use super::sampled_images::SampledImages;
use crate::data::cases::{Case, Response, UnscoredReason};
use crate::judging::judge::{Judge, JudgeJob};
use crate::judging::run::record::{Record, RecordOutcome};
use crate::support::terminal::exit::RunFailure;

/// Largest difference between equal probabilities or expected scores. Scores must be equal.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// For records of a reproducible judge.
    pub reproducible: f64,
    /// For records with `reproducible: false`. Their analyses are not compared.
    pub other: f64,
}

/// Records that were judged again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JudgedAgain {
    /// Number of records that were judged again.
    pub judged: u64,
    /// Number of these records whose judge is not reproducible.
    pub not_reproducible: u64,
    /// Records whose verdict differs.
    pub differing: Vec<RecordDifference>,
    /// Records that could not be judged again, with the reason.
    pub skipped: Vec<SkippedRecord>,
    /// The largest difference of two numbers, within the tolerance or not.
    pub largest: f64,
}

/// A record whose verdict differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordDifference {
    /// Number of the line, from 1.
    pub line: u64,
    /// Id of the case.
    pub case: Option<String>,
    /// The models.
    pub models: Vec<String>,
    /// True if a score, the order or the status differs; false if only probabilities do.
    pub scores: bool,
    /// The values that differ.
    pub values: Vec<ValueDifference>,
}

/// A record that could not be judged again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedRecord {
    /// Number of the line, from 1.
    pub line: u64,
    /// Id of the case.
    pub case: Option<String>,
    /// Why.
    pub reason: String,
}

/// Judges records again, in batches of `batch_size`.
///
/// # Errors
///
/// The judge fails.
pub fn judge_again(
    judge: &mut dyn Judge,
    sample: &[(u64, Record)],
    mut images: SampledImages,
    tolerance: Tolerance,
    batch_size: usize,
) -> Result<JudgedAgain> {
    let mut result = JudgedAgain::default();
    for records in sample.chunks(batch_size.max(1)) {
        let (mut jobs, mut judged) = (Vec::new(), Vec::new());
        for (line, record) in records {
            match to_job(record, &mut images) {
                Ok(job) => {
                    jobs.push(job);
                    judged.push((*line, record));
                }
                Err(reason) => {
                    let case = record.subject.case.clone();
                    result.skipped.push(SkippedRecord { line: *line, case, reason });
                }
            }
        }
        if jobs.is_empty() {
            continue;
        }
        let failure =
            || RunFailure("the judge failed\nhint: run the same command again".to_owned());
        let outcomes = judge.judge(&jobs).with_context(failure)?;
        ensure!(outcomes.len() == jobs.len(), "the judge returned too few results");
        for ((line, record), outcome) in judged.into_iter().zip(outcomes) {
            if let Err(unscored) = &outcome
                && (record.is_irreproducible() || unscored.reason == UnscoredReason::Transport)
                && matches!(record.outcome, RecordOutcome::Judged(_))
            {
                // The server gave no evaluation, which says nothing about the record.
                let (case, reason) = (record.subject.case.clone(), unscored.message.clone());
                result.skipped.push(SkippedRecord { line, case, reason });
                continue;
            }
            let form = record.subject.form;
            let again = RecordOutcome::from_result(outcome, form, judge.is_reproducible())?;
            result.add((line, record), again, tolerance)?;
        }
    }
    Ok(result)
}

impl JudgedAgain {
    /// Compares a record with its new outcome.
    fn add(
        &mut self,
        (line, record): (u64, &Record),
        again: RecordOutcome,
        tolerance: Tolerance,
    ) -> Result<()> {
        let is_free = record.is_irreproducible();
        let again = Record::new(record.subject.clone(), again);
        let value = |record: &Record| serde_json::to_value(&record.outcome);
        let (recorded, again) = (value(record)?, value(&again)?);
        let allowed = if is_free { tolerance.other } else { tolerance.reproducible };
        let all = compare_values(&recorded, &again, 0.0, is_free);
        let sizes = all.iter().filter_map(|difference| difference.size);
        self.largest = sizes.fold(self.largest, f64::max);
        self.judged += 1;
        self.not_reproducible += u64::from(is_free);
        let values = compare_values(&recorded, &again, allowed, is_free);
        if !values.is_empty() {
            let subject = &record.subject;
            self.differing.push(RecordDifference {
                line,
                case: subject.case.clone(),
                models: subject.judged_models().to_vec(),
                scores: !values.iter().all(ValueDifference::is_probability),
                values,
            });
        }
        Ok(())
    }
}

/// Creates the job of a record from its texts and its image.
fn to_job(record: &Record, images: &mut SampledImages) -> Result<JudgeJob, String> {
    let subject = &record.subject;
    let texts = subject.responses.iter().flatten().cloned();
    let models = subject.judged_models().iter().cloned();
    let responses: Vec<Response> =
        models.zip(texts).map(|(model, text)| Response { model, text }).collect();
    let image = subject.image.as_ref().map(|image| images.load(image)).transpose()?;
    let case = Case {
        id: subject.case.clone().unwrap_or_default(),
        image: None,
        question: subject.question.clone().unwrap_or_default(),
        reference: subject.reference.clone(),
        labels: None,
        meta: subject.meta.clone(),
        extra: subject.extra.clone(),
        line: subject.line,
        responses,
    };
    let indices = (0..case.responses.len()).collect();
    Ok(JudgeJob { case: Arc::new(case), responses: indices, image })
}
