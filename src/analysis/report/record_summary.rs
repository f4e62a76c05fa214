//! A record as the report uses it: subject, outcome and analyses.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::data::cases::UnscoredReason;
use crate::judging::judge::recorded_verdict::{
    PairOrder, RecordedOrder, RecordedVerdict, ScorePair,
};
use crate::judging::run::record::{Record, RecordOutcome, RecordSubject};
use crate::judging::run::record_reader::RecordReader;

/// Summary of a record, with the analyses serialised for the page.
#[derive(Clone, Debug)]
pub struct RecordSummary {
    /// Line in the records file.
    pub line: u64,
    /// What the record is about: case, pair and texts.
    pub subject: RecordSubject,
    /// Outcome.
    pub brief: OutcomeSummary,
    /// Analyses and scores as JSON; `None` without a verdict.
    pub detail: Option<String>,
    /// True if the verdict has analyses, false for scores only.
    pub analysed: bool,
}

/// Short form of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum OutcomeSummary {
    /// A verdict.
    Judged {
        /// Order of the two responses.
        order: PairOrder,
        /// Final scores.
        scores: [f64; 2],
        /// Expected scores: means under the judge's probabilities.
        expected: [f64; 2],
        /// True if the presentation orders disagree; `None` if only one was judged.
        flip: Option<bool>,
    },
    /// No verdict.
    Unscored {
        /// Reason.
        reason: UnscoredReason,
        /// Details of the failure.
        message: String,
    },
}

/// Combined scores and the results of each presentation order, in the JSON form of the page.
#[derive(Serialize)]
struct RecordDetail<'a> {
    aspects: BTreeMap<Aspect, [f64; 2]>,
    criteria: BTreeMap<Criterion, [f64; 2]>,
    orders: Vec<OrderDetail<'a>>,
}

/// Results of one presentation order.
#[derive(Serialize)]
struct OrderDetail<'a> {
    swapped: bool,
    criteria: BTreeMap<Criterion, ScoreDetail<'a>>,
    conclusion: ScoreDetail<'a>,
}

/// Scores of the two responses; `probabilities` are those of the scores 0 to 5, in percent.
#[derive(Serialize)]
struct ScoreDetail<'a> {
    scores: [u8; 2],
    expected: [f64; 2],
    spread: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    analyses: Option<[&'a str; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<[bool; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<[[u8; 6]; 2]>,
}

/// Reads the records of a file and skips noted input problems. Records for which `mirrored` returns true get
/// their two responses swapped.
///
/// # Errors
///
/// The file cannot be read, or a line is not a record.
pub fn read(
    path: &Path,
    mirrored: impl Fn(&RecordSubject) -> bool + Sync + Send,
) -> Result<Vec<RecordSummary>> {
    let convert = |record: Record, number| {
        let mirror = mirrored(&record.subject);
        RecordSummary::of(record, number, mirror)
    };
    let summaries = RecordReader::open(path, convert)?;
    summaries.filter_map(Result::transpose).collect()
}

impl RecordSummary {
    fn of(record: Record, line: u64, mirror: bool) -> Result<Option<Self>> {
        let Record {
            mut subject,
            outcome,
            ..
        } = record;
        if mirror {
            subject.pair = subject.pair.map(turned);
            subject.responses = subject.responses.map(turned);
        }
        Ok(Some(match outcome {
            RecordOutcome::Noted { .. } => return Ok(None),
            RecordOutcome::Unscored(unscored) => Self {
                line,
                subject,
                brief: OutcomeSummary::Unscored {
                    reason: unscored.reason,
                    message: unscored.message,
                },
                detail: None,
                analysed: false,
            },
            RecordOutcome::Judged(judgement) => {
                let turn = PairSwap(mirror);
                let detail = serde_json::to_string(&turn.detail(&judgement))
                    .context("could not serialise a verdict as JSON")?;
                let said = |order: &RecordedOrder| order.conclusion.analyses.is_some();
                Self {
                    line,
                    subject,
                    brief: turn.brief(&judgement),
                    detail: Some(detail),
                    analysed: judgement.orders.iter().any(said),
                }
            }
        }))
    }
}

fn turned<T>([a, b]: [T; 2]) -> [T; 2] {
    [b, a]
}

/// Swaps pairs of values if true.
#[derive(Clone, Copy)]
struct PairSwap(bool);

impl PairSwap {
    fn pair<T>(self, pair: [T; 2]) -> [T; 2] {
        if self.0 { turned(pair) } else { pair }
    }

    fn all<K: Ord + Copy>(self, of: &BTreeMap<K, [f64; 2]>) -> BTreeMap<K, [f64; 2]> {
        of.iter().map(|(k, pair)| (*k, self.pair(*pair))).collect()
    }

    fn brief(self, judgement: &RecordedVerdict) -> OutcomeSummary {
        let order = Ordering::from(judgement.order);
        let order = if self.0 { order.reverse() } else { order };
        OutcomeSummary::Judged {
            order: order.into(),
            scores: self.pair(judgement.scores),
            expected: self.pair(judgement.expected),
            flip: judgement.flip,
        }
    }

    fn detail(self, judgement: &RecordedVerdict) -> RecordDetail<'_> {
        let order = |order| self.order(order);
        RecordDetail {
            aspects: self.all(&judgement.aspects),
            criteria: self.all(&judgement.criteria),
            orders: judgement.orders.iter().map(order).collect(),
        }
    }

    fn order(self, order: &RecordedOrder) -> OrderDetail<'_> {
        let criteria = order.aspects.values().flatten();
        OrderDetail {
            swapped: order.swapped != self.0,
            criteria: criteria
                .map(|(c, marks)| (*c, self.mark(marks, false)))
                .collect(),
            conclusion: self.mark(&order.conclusion, true),
        }
    }

    fn mark(self, marks: &ScorePair, whole: bool) -> ScoreDetail<'_> {
        let percent = |p: [f64; 6]| p.map(|p| (100.0 * p).round().clamp(0.0, 100.0) as u8);
        let analyses = marks.analyses.as_ref();
        ScoreDetail {
            scores: self.pair(marks.scores),
            expected: self.pair(marks.expected),
            spread: self.pair(marks.spread),
            analyses: analyses.map(|texts| self.pair(texts.each_ref().map(String::as_str))),
            cut: marks.cut.map(|cut| self.pair(cut)),
            probabilities: whole.then(|| self.pair(marks.probabilities.map(percent))),
        }
    }
}
