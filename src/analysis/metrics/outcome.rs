//! What a metric gives for one answer: a number, or why there is none.

use std::fmt;

use super::bleu::BleuCounts;
use super::metric::Metric;

/// What a metric gives for one answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricOutcome {
    /// A number.
    Value(f64),
    /// The metric is not about this kind of question; the answer is not missed.
    Elsewhere,
    /// There is no number, and the metric's coverage is the lower for it.
    Uncounted(UncountedReason),
}

/// Why an answer that a metric is about has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UncountedReason {
    /// The case has no reference, or an empty one.
    NoReference,
    /// The model has no answer to the case, or an empty one.
    NoAnswer,
    /// The reference has no word in it that the metric sees.
    NoWords,
    /// The published code leaves this answer out of its mean.
    LeftOut,
    /// All words weigh nothing, because every reference has them.
    NoWeight,
}

impl MetricOutcome {
    /// The number.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Elsewhere | Self::Uncounted(_) => None,
        }
    }
}

/// The outcomes of an answer, each under the name of its column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerScores {
    /// What BLEU over many answers is made of, where it was asked for.
    pub bleu: Option<BleuCounts>,
    outcomes: Vec<(&'static str, MetricOutcome)>,
}

impl AnswerScores {
    /// Gives all columns of a metric the same outcome.
    pub fn add_all(&mut self, metric: Metric, outcome: MetricOutcome) {
        let names = metric.columns().map(|column| column.name);
        self.outcomes.extend(names.map(|name| (name, outcome)));
    }

    /// Takes in numbers, each under the name of its column.
    pub fn add_values(&mut self, values: impl IntoIterator<Item = (&'static str, f64)>) {
        let values = values.into_iter();
        self.outcomes
            .extend(values.map(|(name, value)| (name, MetricOutcome::Value(value))));
    }

    /// The outcome in a column.
    pub fn get(&self, column: &str) -> Option<MetricOutcome> {
        let found = self.outcomes.iter().find(|(name, _)| *name == column);
        found.map(|(_, outcome)| *outcome)
    }

    /// All outcomes with the names of their columns.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, MetricOutcome)> {
        self.outcomes.iter().copied()
    }
}

impl fmt::Display for UncountedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReference => "the case has no reference",
            Self::NoAnswer => "the model has no answer",
            Self::NoWords => "the reference has no word that the metric sees",
            Self::LeftOut => "left out by the published code",
            Self::NoWeight => "every reference has all words of it",
        })
    }
}
