//! A record as the report keeps it: what was judged, what came of it, and its analyses as the page has them.

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

/// A record, its probabilities left behind.
#[derive(Clone, Debug)]
pub struct RecordSummary {
    /// Its line in the file of records.
    pub line: u64,
    /// What was judged.
    pub subject: RecordSubject,
    /// What came of it.
    pub brief: OutcomeSummary,
    /// The analyses and expected scores as JSON; `None` without a verdict.
    pub detail: Option<String>,
    /// Whether there are analyses, and not scores alone.
    pub analysed: bool,
}

/// An outcome in a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum OutcomeSummary {
    /// A verdict.
    Judged {
        /// Which response is better.
        order: PairOrder,
        /// The final scores.
        scores: [f64; 2],
        /// Their means under the judge's own probabilities.
        expected: [f64; 2],
        /// Whether the presentation orders disagree.
        flip: Option<bool>,
    },
    /// None, and why.
    Unscored {
        /// The kind of failure.
        reason: UnscoredReason,
        /// What was found.
        message: String,
    },
}

/// The combined scores and what each order gave, as the page shows them.
#[derive(Serialize)]
struct RecordDetail<'a> {
    aspects: BTreeMap<Aspect, [f64; 2]>,
    criteria: BTreeMap<Criterion, [f64; 2]>,
    orders: Vec<OrderDetail<'a>>,
}

/// One presentation order.
#[derive(Serialize)]
struct OrderDetail<'a> {
    swapped: bool,
    criteria: BTreeMap<Criterion, ScoreDetail<'a>>,
    conclusion: ScoreDetail<'a>,
}

/// Two marks; probabilities are those of the scores 0 to 5, in percent.
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

/// Reads the records of a file, except those that only note an input problem. Pairs for which `mirrored`
/// returns true are read with their two responses exchanged.
///
/// # Errors
///
/// If the file cannot be read, or a line is not a record.
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
                    .context("cannot write a verdict as json")?;
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

/// Whether pairs of values are turned round.
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
