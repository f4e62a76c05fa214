//! Records as the report uses them: subject, outcome and analyses.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::data::cases::UnscoredReason;
use crate::judging::judge::recorded_verdict::{
    PairOrder, RecordedOrder, RecordedVerdict, ResponseScores,
};
use crate::judging::run::record::record_reader::RecordReader;
use crate::judging::run::record::{Record, RecordOutcome, RecordSubject};

/// Summary of a record, with the analyses serialised for the page.
#[derive(Clone, Debug)]
pub struct RecordSummary {
    /// Line in the records file.
    pub line: u64,
    /// Case, pair and texts of the record.
    pub subject: RecordSubject,
    /// Outcome.
    pub outcome: OutcomeSummary,
    /// Analyses and scores as JSON; `None` without a verdict.
    pub detail: Option<String>,
    /// True if the verdict has analyses, false for scores only.
    pub has_analyses: bool,
    /// The criteria of the verdict with their aspects, if the rubric is not that of ACE-M³.
    pub criteria_of_rubric: Vec<(Aspect, Criterion)>,
}

/// Short form of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum OutcomeSummary {
    /// A verdict.
    Judged {
        /// Order of the two responses; `None` for a response alone.
        order: Option<PairOrder>,
        /// Final scores.
        scores: Vec<f64>,
        /// Expected scores: means under the judge's probabilities.
        expected: Vec<f64>,
        /// True if the presentation orders disagree; `None` if only one was judged.
        flip: Option<bool>,
    },
    /// No verdict.
    Unscored {
        /// Kind of reason for the missing verdict.
        reason: UnscoredReason,
        /// Details of the failure.
        message: String,
    },
}

/// Combined scores and the results of each presentation order, in the JSON form of the page.
#[derive(Serialize)]
struct RecordDetail<'a> {
    aspects: BTreeMap<Aspect, Vec<f64>>,
    criteria: BTreeMap<Criterion, Vec<f64>>,
    orders: Vec<OrderDetail<'a>>,
}

/// Results of one presentation order.
#[derive(Serialize)]
struct OrderDetail<'a> {
    swapped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_shown: Option<usize>,
    criteria: BTreeMap<Criterion, ScoreDetail<'a>>,
    conclusion: ScoreDetail<'a>,
}

/// Scores of the responses; `probabilities` are those of the scores from 0 on, in percent.
#[derive(Serialize)]
struct ScoreDetail<'a> {
    scores: Vec<u8>,
    expected: Vec<f64>,
    spread: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analyses: Option<Vec<&'a str>>,
    /// Which analyses reached the token budget and were truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<Vec<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<Vec<u8>>>,
}

/// Reads the records of a file, except those of input problems that affect no verdict. Swaps the
/// two responses of a record if `is_swapped` returns true.
///
/// # Errors
///
/// The file cannot be read, or a line is not a record.
pub fn read_summaries(
    path: &Path,
    is_swapped: impl Fn(&RecordSubject) -> bool + Sync + Send,
) -> Result<Vec<RecordSummary>> {
    let convert = |record: Record, number| {
        let swap = is_swapped(&record.subject);
        RecordSummary::from_record(record, number, swap)
    };
    let summaries = RecordReader::open(path, convert)?;
    summaries.filter_map(Result::transpose).collect()
}

impl RecordSummary {
    /// Moves the record behind this number of lines of other files.
    #[must_use]
    pub fn after_lines(self, lines: u64) -> Self {
        Self { line: self.line + lines, ..self }
    }

    fn from_record(record: Record, line: u64, swap: bool) -> Result<Option<Self>> {
        let Record { mut subject, outcome, .. } = record;
        if swap {
            subject.pair = subject.pair.map(reversed);
            if let Some(responses) = &mut subject.responses {
                responses.reverse();
            }
        }
        Ok(Some(match outcome {
            RecordOutcome::Noted { .. } => return Ok(None),
            RecordOutcome::Unscored(unscored) => Self {
                line,
                subject,
                outcome: OutcomeSummary::Unscored {
                    reason: unscored.reason,
                    message: unscored.message,
                },
                detail: None,
                has_analyses: false,
                criteria_of_rubric: Vec::new(),
            },
            RecordOutcome::Judged(verdict) => {
                let pair_swap = PairSwap(swap);
                let detail = serde_json::to_string(&pair_swap.record_detail(&verdict))
                    .context("could not serialise a verdict as JSON")?;
                let has_analyses = |order: &RecordedOrder| order.conclusion.analyses.is_some();
                Self {
                    line,
                    subject,
                    outcome: pair_swap.outcome_summary(&verdict),
                    detail: Some(detail),
                    has_analyses: verdict.orders.iter().any(has_analyses),
                    criteria_of_rubric: criteria_of_rubric(&verdict),
                }
            }
        }))
    }
}

/// Returns the criteria of a verdict that do not belong to ACE-M³, with their aspects.
fn criteria_of_rubric(verdict: &RecordedVerdict) -> Vec<(Aspect, Criterion)> {
    let aspects = verdict.orders.first().into_iter().flat_map(|order| &order.aspects);
    let criteria = aspects.flat_map(|(aspect, criteria)| criteria.keys().map(|c| (*aspect, *c)));
    criteria.filter(|(aspect, criterion)| criterion.aspect() != Some(*aspect)).collect()
}

fn reversed<T>([a, b]: [T; 2]) -> [T; 2] {
    [b, a]
}

/// Converts verdicts; swaps the values of the two responses if true.
#[derive(Clone, Copy)]
struct PairSwap(bool);

impl PairSwap {
    fn swap<T>(self, values: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut values: Vec<T> = values.into_iter().collect();
        if self.0 {
            values.reverse();
        }
        values
    }

    fn swap_all<K: Ord + Copy>(self, all: &BTreeMap<K, Vec<f64>>) -> BTreeMap<K, Vec<f64>> {
        all.iter().map(|(key, values)| (*key, self.swap(values.iter().copied()))).collect()
    }

    fn outcome_summary(self, verdict: &RecordedVerdict) -> OutcomeSummary {
        let order = verdict.order.map(Ordering::from);
        let order = order.map(|order| if self.0 { order.reverse() } else { order });
        OutcomeSummary::Judged {
            order: order.map(PairOrder::from),
            scores: self.swap(verdict.scores.iter().copied()),
            expected: self.swap(verdict.expected.iter().copied()),
            flip: verdict.flip,
        }
    }

    fn record_detail(self, verdict: &RecordedVerdict) -> RecordDetail<'_> {
        let order = |order| self.order_detail(order);
        RecordDetail {
            aspects: self.swap_all(&verdict.aspects),
            criteria: self.swap_all(&verdict.criteria),
            orders: verdict.orders.iter().map(order).collect(),
        }
    }

    fn order_detail(self, order: &RecordedOrder) -> OrderDetail<'_> {
        let criteria = order.aspects.values().flatten();
        OrderDetail {
            swapped: order.swapped != self.0,
            first_shown: order.first_shown,
            criteria: criteria
                .map(|(criterion, scores)| (*criterion, self.score_detail(scores, false)))
                .collect(),
            conclusion: self.score_detail(&order.conclusion, true),
        }
    }

    fn score_detail(self, scores: &ResponseScores, with_probabilities: bool) -> ScoreDetail<'_> {
        let percent = |p: &f64| (100.0 * p).round().clamp(0.0, 100.0) as u8;
        let percents = || scores.probabilities.iter().map(|all| all.iter().map(percent).collect());
        let analyses = scores.analyses.as_ref();
        ScoreDetail {
            scores: self.swap(scores.scores.iter().copied()),
            expected: self.swap(scores.expected.iter().copied()),
            spread: self.swap(scores.spread.iter().copied()),
            analyses: analyses.map(|texts| self.swap(texts.iter().map(String::as_str))),
            cut: scores.cut.as_ref().map(|cut| self.swap(cut.iter().copied())),
            probabilities: with_probabilities.then(|| self.swap(percents())),
        }
    }
}
