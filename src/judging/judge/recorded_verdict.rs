//! A verdict as stored in a record: rounded and self-contained.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::recorded_alternative::RecordedAlternative;
use super::rounding::round_to_4_decimals;
use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::prompt::Form;
use acem3_experts::{Aspect, Criterion, Lookup, Rating, Score};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict on responses: combined over the presentation orders, and for each order.
///
/// Lists of values have one value per response, in the order of the models. Numbers are rounded to four decimals, so that
/// equal runs write equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedVerdict {
    /// The preferred response of a pair by the combined final scores; absent for a response alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<PairOrder>,
    /// The combined final scores, 0 to 5. In the form `correctness`: 1 if the response is judged
    /// correct, else 0.
    #[schemars(length(min = 1), inner(range(min = 0, max = 5)))]
    pub scores: Vec<f64>,
    /// The combined expected final scores, 0 to 5. In the form `correctness`: the probability that the
    /// response is correct, 0 to 1.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: Vec<f64>,
    /// The combined mean score of each aspect, 0 to 5.
    pub aspects: BTreeMap<Aspect, Vec<f64>>,
    /// The combined score of each criterion, 0 to 5.
    pub criteria: BTreeMap<Criterion, Vec<f64>>,
    /// Whether the preferred response changes with the presentation order; `None` if only one was
    /// judged, or a response is judged alone.
    pub flip: Option<bool>,
    /// `false` if the judge need not give this verdict again, bit for bit: a server ran a member.
    /// Absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproducible: Option<bool>,
    /// Results of each presentation order.
    pub orders: Vec<RecordedOrder>,
}

/// The result of one presentation order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedOrder {
    /// True if the second response of a pair was shown first.
    pub swapped: bool,
    /// Index of the response that was shown first, in the form `list`; the others followed in their
    /// order, and those before it came last. Absent in other forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_shown: Option<usize>,
    /// The final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub scores: Vec<u8>,
    /// The expected final scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: Vec<f64>,
    /// The scores of each criterion, by aspect.
    pub aspects: BTreeMap<Aspect, BTreeMap<Criterion, ResponseScores>>,
    /// The scores of the conclusion model.
    pub conclusion: ResponseScores,
}

/// The scores of the responses on one criterion, or by the conclusion model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseScores {
    /// The scores, 0 to 5.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub scores: Vec<u8>,
    /// Expected scores: the means of the score distributions.
    #[schemars(inner(range(min = 0, max = 5)))]
    pub expected: Vec<f64>,
    /// Standard deviations of the score distributions, in score points.
    pub spread: Vec<f64>,
    /// The analyses; absent with `--scores-only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyses: Option<Vec<String>>,
    /// Which analyses reached the token budget and were truncated; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Vec<bool>>,
    /// The questions that the judge asked in each analysis, with the passages that it read; absent if
    /// it asked none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups: Option<Vec<Vec<RecordedLookup>>>,
    /// With `--samples`, the different ratings of each response that were averaged; absent if all samples
    /// have the same ratings. `analyses` has the most probable analysis of each response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<Vec<RecordedAlternative>>>,
    /// Standard deviation of the expected scores of the alternatives, for each response; absent without
    /// alternatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0, max = 5)))]
    pub between: Option<Vec<f64>>,
    /// The probability of each score from 0 on: of 0 to 5, or of no and yes.
    pub probabilities: Vec<Vec<f64>>,
    /// Probability that the model gave to all scores together, before other tokens were excluded;
    /// absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_mass: Option<Vec<Option<f64>>>,
    /// Whether the server left out probabilities of scores, for each response; absent if it returned all.
    /// Unknown probabilities count as the largest value that they can have, or as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Vec<bool>>,
}

/// A question that a judge asked in an analysis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedLookup {
    /// The question.
    pub question: String,
    /// Ids of the passages of the knowledge index that the judge read, best first; empty if none was
    /// found.
    pub passages: Vec<String>,
    /// Number of characters of the analysis before the question.
    #[serde(default)]
    pub position: usize,
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

impl RecordedOrder {
    /// Returns the indices of the responses in the order in which they were shown.
    pub fn shown_responses(&self) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.conclusion.scores.len()).collect();
        let first = self.first_shown.unwrap_or(usize::from(self.swapped));
        if first < shown.len() {
            shown.rotate_left(first);
        }
        shown
    }
}

impl RecordedVerdict {
    /// Returns true if the judge looked something up.
    pub fn has_lookups(&self) -> bool {
        self.all_scores().any(|scores| scores.lookups.is_some())
    }

    /// Returns true if a score is the mean over several samples.
    pub fn has_alternatives(&self) -> bool {
        self.all_scores().any(|scores| scores.alternatives.is_some())
    }

    /// Returns the scores of all criteria and of the conclusion, in all presentation orders.
    fn all_scores(&self) -> impl Iterator<Item = &ResponseScores> {
        self.orders.iter().flat_map(|order| {
            order.aspects.values().flat_map(BTreeMap::values).chain([&order.conclusion])
        })
    }

    /// Converts a verdict.
    ///
    /// # Errors
    ///
    /// The verdict has no presentation order, lacks a criterion, or contains a number that is not
    /// finite.
    pub fn from_verdict(verdict: &Verdict, form: Form) -> anyhow::Result<Self> {
        let responses = verdict.responses();
        anyhow::ensure!(
            (form.min_responses()..=form.max_responses()).contains(&responses)
                || verdict.orders.is_empty(),
            "the judge returned a verdict on {responses} responses"
        );
        anyhow::ensure!(
            !verdict.orders.is_empty(),
            "the judge returned a verdict without a presentation order"
        );
        let branches = verdict.orders.first().map_or(&[][..], |order| &order.branches);
        let ratings = branches.iter().flat_map(|branch| &branch.ratings);
        let criteria: Vec<Criterion> = ratings.map(|(criterion, _)| *criterion).collect();
        let is_rated = |o: &OrderVerdict, criterion: Criterion| {
            let mut ratings = o.branches.iter().flat_map(|b| &b.ratings);
            ratings.any(|(c, ratings)| *c == criterion && ratings.len() == responses)
        };
        let missing = verdict
            .orders
            .iter()
            .find_map(|order| criteria.iter().find(|criterion| !is_rated(order, **criterion)));
        if let Some(criterion) = missing {
            anyhow::bail!("the judge returned a verdict without the criterion {}", criterion.key());
        }
        anyhow::ensure!(
            verdict.orders.iter().all(|order| order.conclusion.len() == responses),
            "the judge returned a verdict without a final score for each response"
        );
        let all_finite = |o: &OrderVerdict| {
            let branches = o.branches.iter().flat_map(|b| b.ratings.iter().map(|(_, all)| all));
            branches.chain([&o.conclusion]).flatten().all(is_finite)
        };
        anyhow::ensure!(
            verdict.orders.iter().all(all_finite),
            "the judge returned a probability that is not a finite number\n\
             hint: check the weights of the panel, or use --dtype f32"
        );
        Ok(Self {
            order: form.is_pair().then(|| verdict.preference().into()),
            scores: round_all(&verdict.scores()),
            expected: round_all(&verdict.expected_scores()),
            aspects: branches
                .iter()
                .map(|b| (b.aspect, round_all(&verdict.aspect_scores(b.aspect))))
                .collect(),
            criteria: criteria
                .into_iter()
                .map(|c| (c, round_all(&verdict.criterion_scores(c))))
                .collect(),
            flip: verdict.is_flipped(),
            reproducible: None,
            orders: verdict.orders.iter().map(RecordedOrder::from_order).collect(),
        })
    }
}

impl RecordedOrder {
    fn from_order(order: &OrderVerdict) -> Self {
        let branches = order.branches.iter().map(|branch| {
            let criteria =
                branch.ratings.iter().map(|(c, all)| (*c, ResponseScores::from_ratings(all)));
            (branch.aspect, criteria.collect())
        });
        let conclusion = ResponseScores::from_ratings(&order.conclusion);
        Self {
            swapped: order.swapped,
            first_shown: order.first_shown,
            scores: conclusion.scores.clone(),
            expected: conclusion.expected.clone(),
            aspects: branches.collect(),
            conclusion,
        }
    }
}

impl ResponseScores {
    fn from_ratings(ratings: &[Rating]) -> Self {
        let is_analysed = ratings.iter().any(|rating| !rating.analysis.is_empty());
        let is_cut = ratings.iter().any(|rating| rating.cut);
        let has_mass = ratings.iter().any(|rating| rating.score.label_mass.is_some());
        let is_partial = ratings.iter().any(|rating| rating.score.is_partial);
        let has_lookups = ratings.iter().any(|rating| !rating.lookups.is_empty());
        let lookups = |rating: &Rating| rating.lookups.iter().map(RecordedLookup::from).collect();
        let differs = ratings.iter().any(|rating| !rating.alternatives.is_empty());
        let alternatives =
            |rating: &Rating| rating.alternatives.iter().map(RecordedAlternative::from).collect();
        let label_mass = |rating: &Rating| {
            rating.score.label_mass.map(|mass| round_to_4_decimals(f64::from(mass)))
        };
        let probabilities = |rating: &Rating| {
            let all = rating.score.probabilities.iter();
            all.map(|p| round_to_4_decimals(f64::from(*p))).collect()
        };
        let rounded = |value: fn(&Score) -> f64| {
            ratings.iter().map(|rating| round_to_4_decimals(value(&rating.score))).collect()
        };
        let analyses = || ratings.iter().map(|rating| rating.analysis.clone()).collect();
        Self {
            scores: ratings.iter().map(|rating| rating.score.value).collect(),
            expected: rounded(Score::expected),
            spread: rounded(Score::std_dev),
            analyses: is_analysed.then(analyses),
            cut: is_cut.then(|| ratings.iter().map(|rating| rating.cut).collect()),
            lookups: has_lookups.then(|| ratings.iter().map(lookups).collect()),
            alternatives: differs.then(|| ratings.iter().map(alternatives).collect()),
            between: differs
                .then(|| ratings.iter().map(|r| round_to_4_decimals(r.spread_between())).collect()),
            probabilities: ratings.iter().map(probabilities).collect(),
            label_mass: has_mass.then(|| ratings.iter().map(label_mass).collect()),
            partial: is_partial.then(|| ratings.iter().map(|r| r.score.is_partial).collect()),
        }
    }
}

impl From<&Lookup> for RecordedLookup {
    fn from(lookup: &Lookup) -> Self {
        let Lookup { question, passages, position } = lookup.clone();
        Self { question, passages, position }
    }
}

fn round_all(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| round_to_4_decimals(*value)).collect()
}

/// Returns the values of a pair of responses. A missing value is 0.
pub fn pair_values<T: Copy + Into<f64>>(values: &[T]) -> [f64; 2] {
    [0, 1].map(|r| values.get(r).map_or(0.0, |value| (*value).into()))
}

fn is_finite(rating: &Rating) -> bool {
    rating.score.probabilities.iter().all(|p| p.is_finite())
}

#[cfg(test)]
mod tests {
    use acem3_experts::BranchEvaluation;

    use super::*;

    fn rating(value: u8, analysis: &str) -> Rating {
        let mut logits = [0.1; 6];
        logits[usize::from(value)] = 3.3;
        Rating::new(analysis.into(), Score::from_logits(&logits))
    }

    fn order(swapped: bool, scores: [u8; 2]) -> OrderVerdict {
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: aspect
                .criteria()
                .iter()
                .map(|c| (*c, scores.map(|v| rating(v, "so")).into()))
                .collect(),
        };
        OrderVerdict {
            swapped,
            first_shown: None,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: scores.map(|v| rating(v, "")).into(),
        }
    }

    #[test]
    fn recorded_verdict_round_trips_through_json() {
        let verdict = Verdict { orders: vec![order(false, [4, 1]), order(true, [2, 3])] };
        let recorded = RecordedVerdict::from_verdict(&verdict, Form::Pair).unwrap();
        assert_eq!(recorded.order, Some(PairOrder::FirstBetter));
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
        assert!(
            RecordedVerdict::from_verdict(&Verdict { orders: vec![broken] }, Form::Pair).is_err()
        );
        assert!(RecordedVerdict::from_verdict(&Verdict { orders: vec![] }, Form::Pair).is_err());
    }
}
