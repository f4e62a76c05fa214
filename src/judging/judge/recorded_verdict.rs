//! A verdict as it is recorded: rounded, named, and complete enough to be read without the judge.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::{Aspect, Criterion, Rating};
use serde::{Deserialize, Serialize};

/// The verdict on a pair, combined over the presentation orders and in each of them.
///
/// Every pair of values is in the order of the pair of models. Numbers are rounded to four
/// decimals, so that equal runs write equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedVerdict {
    /// Which response is better by the combined final scores.
    pub order: PairOrder,
    /// The combined final scores, 0 to 5.
    pub scores: [f64; 2],
    /// The combined expected final scores, 0 to 5.
    pub expected: [f64; 2],
    /// The combined mean score of each aspect, 0 to 5.
    pub aspects: BTreeMap<Aspect, [f64; 2]>,
    /// The combined score of each criterion, 0 to 5.
    pub criteria: BTreeMap<Criterion, [f64; 2]>,
    /// Whether the two presentation orders disagree; `None` if only one was judged.
    pub flip: Option<bool>,
    /// What each presentation order gave.
    pub orders: Vec<RecordedOrder>,
}

/// What one presentation order gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedOrder {
    /// True when the second response was shown first.
    pub swapped: bool,
    /// The final scores, 0 to 5.
    pub scores: [u8; 2],
    /// The expected final scores, 0 to 5.
    pub expected: [f64; 2],
    /// The criteria of each aspect.
    pub aspects: BTreeMap<Aspect, BTreeMap<Criterion, ScorePair>>,
    /// The conclusion.
    pub conclusion: ScorePair,
}

/// The two marks of one criterion, or of the conclusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorePair {
    /// The scores, 0 to 5.
    pub scores: [u8; 2],
    /// The means of the distributions over the scores.
    pub expected: [f64; 2],
    /// Their standard deviations: how unsure the judge was, in score points.
    pub spread: [f64; 2],
    /// The reasons; absent if only scores were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyses: Option<[String; 2]>,
    /// Which of the reasons ran into their budget and were closed by the format; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<[bool; 2]>,
    /// The probability of each score 0–5.
    pub probabilities: [[f64; 6]; 2],
}

/// Which of two responses is better, written `>`, `=` or `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PairOrder {
    /// The first.
    #[serde(rename = ">")]
    Greater,
    /// Neither.
    #[serde(rename = "=")]
    Equal,
    /// The second.
    #[serde(rename = "<")]
    Less,
}

impl From<Ordering> for PairOrder {
    fn from(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Greater => Self::Greater,
            Ordering::Equal => Self::Equal,
            Ordering::Less => Self::Less,
        }
    }
}

impl From<PairOrder> for Ordering {
    fn from(order: PairOrder) -> Self {
        match order {
            PairOrder::Greater => Self::Greater,
            PairOrder::Equal => Self::Equal,
            PairOrder::Less => Self::Less,
        }
    }
}

impl RecordedVerdict {
    /// The record of a verdict.
    ///
    /// # Errors
    ///
    /// A verdict without any presentation order, or with a number that is not finite, is none:
    /// the judge is broken.
    pub fn of(verdict: &Verdict) -> anyhow::Result<Self> {
        anyhow::ensure!(
            !verdict.orders.is_empty(),
            "the judge gave a verdict without an order"
        );
        let rated = |o: &OrderVerdict, criterion| {
            let mut ratings = o.branches.iter().flat_map(|b| &b.ratings);
            ratings.any(|(c, _)| *c == criterion)
        };
        let lacking = verdict.orders.iter().find_map(|order| {
            let mut all = Criterion::ALL.into_iter();
            all.find(|criterion| !rated(order, *criterion))
        });
        if let Some(criterion) = lacking {
            anyhow::bail!("the judge gave a verdict without {}", criterion.key());
        }
        let marks = |o: &OrderVerdict| {
            let branches = o
                .branches
                .iter()
                .flat_map(|b| b.ratings.iter().map(|(_, pair)| pair));
            branches.chain([&o.conclusion]).flatten().all(is_finite)
        };
        anyhow::ensure!(
            verdict.orders.iter().all(marks),
            "the judge gave a probability that is not a number\n\
             hint: the panel's weights may be damaged, or too large for the number type"
        );
        Ok(Self {
            order: verdict.order().into(),
            scores: verdict.scores().map(rounded),
            expected: verdict.expected().map(rounded),
            aspects: Aspect::ALL
                .map(|a| (a, verdict.aspect(a).map(rounded)))
                .into(),
            criteria: Criterion::ALL
                .map(|c| (c, verdict.criterion(c).map(rounded)))
                .into(),
            flip: verdict.flip(),
            orders: verdict.orders.iter().map(RecordedOrder::of).collect(),
        })
    }
}

impl RecordedOrder {
    fn of(order: &OrderVerdict) -> Self {
        let branches = order.branches.iter().map(|branch| {
            let criteria = branch
                .ratings
                .iter()
                .map(|(c, pair)| (*c, ScorePair::of(pair)));
            (branch.aspect, criteria.collect())
        });
        let conclusion = ScorePair::of(&order.conclusion);
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
    fn of(ratings: &[Rating; 2]) -> Self {
        let each = [&ratings[0], &ratings[1]];
        let analysed = each.iter().any(|rating| !rating.analysis.is_empty());
        let cut = each.map(|rating| rating.cut);
        Self {
            scores: each.map(|rating| rating.score.value),
            expected: each.map(|rating| rounded(rating.score.expected())),
            spread: each.map(|rating| rounded(rating.score.spread())),
            analyses: analysed.then(|| each.map(|rating| rating.analysis.clone())),
            cut: cut.contains(&true).then_some(cut),
            probabilities: each.map(|r| r.score.probabilities.map(|p| rounded(f64::from(p)))),
        }
    }
}

/// To four decimals: more than a judge is sure of, fewer than would differ between machines.
fn rounded(value: f64) -> f64 {
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
        Rating {
            analysis: analysis.into(),
            cut: false,
            score: Score::from_logits(logits),
        }
    }

    fn order(swapped: bool, last: [u8; 2]) -> OrderVerdict {
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: aspect
                .criteria()
                .iter()
                .map(|c| (*c, last.map(|v| rating(v, "so"))))
                .collect(),
        };
        OrderVerdict {
            swapped,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: last.map(|v| rating(v, "")),
        }
    }

    #[test]
    fn a_judgement_reads_as_it_was_written() {
        let verdict = Verdict {
            orders: vec![order(false, [4, 1]), order(true, [2, 3])],
        };
        let judgement = RecordedVerdict::of(&verdict).unwrap();
        assert_eq!(judgement.order, PairOrder::Greater);
        assert!(
            serde_json::to_string(&judgement)
                .unwrap()
                .contains(r#""scores":[3.0,2.0]"#)
        );
        assert_eq!(judgement.flip, Some(true));
        assert_eq!(judgement.orders[0].conclusion.analyses, None);
        let text = serde_json::to_string(&judgement).unwrap();
        let again: RecordedVerdict = serde_json::from_str(&text).unwrap();
        assert_eq!(again, judgement);
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }

    #[test]
    fn a_broken_judge_is_not_recorded() {
        let mut broken = order(false, [1, 2]);
        broken.conclusion[1].score.probabilities[3] = f32::NAN;
        assert!(
            RecordedVerdict::of(&Verdict {
                orders: vec![broken]
            })
            .is_err()
        );
        assert!(RecordedVerdict::of(&Verdict { orders: vec![] }).is_err());
    }
}
