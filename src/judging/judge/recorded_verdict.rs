//! A verdict as stored in a record: rounded and self-contained.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::{Aspect, Criterion, Rating};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict on a pair: combined over the presentation orders, and for each order.
///
/// Pairs of values are in the order of the models. Numbers are rounded to four decimals, so that
/// equal runs write equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedVerdict {
    /// The preferred response by the combined final scores.
    pub order: PairOrder,
    /// The combined final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub scores: [f64; 2],
    /// The combined expected final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: [f64; 2],
    /// The combined mean score of each aspect, 0 to 5.
    pub aspects: BTreeMap<Aspect, [f64; 2]>,
    /// The combined score of each criterion, 0 to 5.
    pub criteria: BTreeMap<Criterion, [f64; 2]>,
    /// Whether the preferred response changes with the presentation order; `None` if only one was
    /// judged.
    pub flip: Option<bool>,
    /// Results of each presentation order.
    pub orders: Vec<RecordedOrder>,
}

/// The result of one presentation order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedOrder {
    /// True if the second response was shown first.
    pub swapped: bool,
    /// The final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub scores: [u8; 2],
    /// The expected final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: [f64; 2],
    /// The scores of each criterion, by aspect.
    pub aspects: BTreeMap<Aspect, BTreeMap<Criterion, ScorePair>>,
    /// The scores of the conclusion model.
    pub conclusion: ScorePair,
}

/// The two scores of one criterion, or of the conclusion model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScorePair {
    /// The scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub scores: [u8; 2],
    /// Expected scores: the means of the score distributions.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: [f64; 2],
    /// Standard deviations of the score distributions, in score points.
    pub spread: [f64; 2],
    /// The analyses; absent with `--scores-only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyses: Option<[String; 2]>,
    /// Which analyses reached the token budget and were truncated; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<[bool; 2]>,
    /// The probability of each score 0–5.
    pub probabilities: [[f64; 6]; 2],
}

/// The preferred response of a pair, serialized as `>`, `=` or `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PairOrder {
    /// The first response is better.
    #[serde(rename = ">")]
    FirstBetter,
    /// A tie.
    #[serde(rename = "=")]
    Tie,
    /// The second response is better.
    #[serde(rename = "<")]
    SecondBetter,
}

impl From<Ordering> for PairOrder {
    fn from(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Greater => Self::FirstBetter,
            Ordering::Equal => Self::Tie,
            Ordering::Less => Self::SecondBetter,
        }
    }
}

impl From<PairOrder> for Ordering {
    fn from(order: PairOrder) -> Self {
        match order {
            PairOrder::FirstBetter => Self::Greater,
            PairOrder::Tie => Self::Equal,
            PairOrder::SecondBetter => Self::Less,
        }
    }
}

impl RecordedVerdict {
    /// Converts a verdict.
    ///
    /// # Errors
    ///
    /// The verdict has no presentation order, lacks a criterion, or contains a number that is not
    /// finite.
    pub fn from_verdict(verdict: &Verdict) -> anyhow::Result<Self> {
        anyhow::ensure!(
            !verdict.orders.is_empty(),
            "the judge returned a verdict without a presentation order"
        );
        let rated = |o: &OrderVerdict, criterion| {
            let mut ratings = o.branches.iter().flat_map(|b| &b.ratings);
            ratings.any(|(c, _)| *c == criterion)
        };
        let missing = verdict.orders.iter().find_map(|order| {
            let mut all = Criterion::ALL.into_iter();
            all.find(|criterion| !rated(order, *criterion))
        });
        if let Some(criterion) = missing {
            anyhow::bail!("the judge returned a verdict without the criterion {}", criterion.key());
        }
        let all_finite = |o: &OrderVerdict| {
            let branches = o.branches.iter().flat_map(|b| b.ratings.iter().map(|(_, pair)| pair));
            branches.chain([&o.conclusion]).flatten().all(is_finite)
        };
        anyhow::ensure!(
            verdict.orders.iter().all(all_finite),
            "the judge returned a probability that is not a finite number\n\
             hint: check the weights of the panel, or use --dtype f32"
        );
        Ok(Self {
            order: verdict.preference().into(),
            scores: verdict.scores().map(round_to_4_decimals),
            expected: verdict.expected_scores().map(round_to_4_decimals),
            aspects: Aspect::ALL
                .map(|a| (a, verdict.aspect_scores(a).map(round_to_4_decimals)))
                .into(),
            criteria: Criterion::ALL
                .map(|c| (c, verdict.criterion_scores(c).map(round_to_4_decimals)))
                .into(),
            flip: verdict.is_flipped(),
            orders: verdict.orders.iter().map(RecordedOrder::from_order).collect(),
        })
    }
}

impl RecordedOrder {
    fn from_order(order: &OrderVerdict) -> Self {
        let branches = order.branches.iter().map(|branch| {
            let criteria =
                branch.ratings.iter().map(|(c, pair)| (*c, ScorePair::from_ratings(pair)));
            (branch.aspect, criteria.collect())
        });
        let conclusion = ScorePair::from_ratings(&order.conclusion);
        Self {
            swapped: order.swapped,
            scores: conclusion.scores,
            expected: conclusion.expected,
            aspects: branches.collect(),
            conclusion,
        }
    }
}

impl ScorePair {
    fn from_ratings(ratings: &[Rating; 2]) -> Self {
        let each = [&ratings[0], &ratings[1]];
        let analysed = each.iter().any(|rating| !rating.analysis.is_empty());
        let cut = each.map(|rating| rating.cut);
        Self {
            scores: each.map(|rating| rating.score.value),
            expected: each.map(|rating| round_to_4_decimals(rating.score.expected())),
            spread: each.map(|rating| round_to_4_decimals(rating.score.std_dev())),
            analyses: analysed.then(|| each.map(|rating| rating.analysis.clone())),
            cut: cut.contains(&true).then_some(cut),
            probabilities: each
                .map(|r| r.score.probabilities.map(|p| round_to_4_decimals(f64::from(p)))),
        }
    }
}

/// Rounds to four decimals, so that records do not depend on the last bits of a computation.
fn round_to_4_decimals(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn is_finite(rating: &Rating) -> bool {
    rating.score.probabilities.iter().all(|p| p.is_finite())
}

#[cfg(test)]
mod tests {
    use acem3_experts::{BranchEvaluation, Score};

    use super::*;

    fn rating(value: u8, analysis: &str) -> Rating {
        let mut logits = [0.1; 6];
        logits[usize::from(value)] = 3.3;
        Rating { analysis: analysis.into(), cut: false, score: Score::from_logits(logits) }
    }

    fn order(swapped: bool, scores: [u8; 2]) -> OrderVerdict {
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: aspect
                .criteria()
                .iter()
                .map(|c| (*c, scores.map(|v| rating(v, "so"))))
                .collect(),
        };
        OrderVerdict {
            swapped,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: scores.map(|v| rating(v, "")),
        }
    }

    #[test]
    fn recorded_verdict_round_trips_through_json() {
        let verdict = Verdict { orders: vec![order(false, [4, 1]), order(true, [2, 3])] };
        let recorded = RecordedVerdict::from_verdict(&verdict).unwrap();
        assert_eq!(recorded.order, PairOrder::FirstBetter);
        assert!(serde_json::to_string(&recorded).unwrap().contains(r#""scores":[3.0,2.0]"#));
        assert_eq!(recorded.flip, Some(true));
        assert_eq!(recorded.orders[0].conclusion.analyses, None);
        let text = serde_json::to_string(&recorded).unwrap();
        let again: RecordedVerdict = serde_json::from_str(&text).unwrap();
        assert_eq!(again, recorded);
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }

    #[test]
    fn verdict_with_nan_or_no_order_is_rejected() {
        let mut broken = order(false, [1, 2]);
        broken.conclusion[1].score.probabilities[3] = f32::NAN;
        assert!(RecordedVerdict::from_verdict(&Verdict { orders: vec![broken] }).is_err());
        assert!(RecordedVerdict::from_verdict(&Verdict { orders: vec![] }).is_err());
    }
}
