//! Outcome of a metric for one answer: a value or the reason why there is none.

use std::fmt;

use super::metric::Metric;
use crate::analysis::metrics::lexical::bleu::BleuCounts;

/// Outcome of a metric for one answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricOutcome {
    /// A value.
    Value(f64),
    /// The metric does not apply to this type of question. The answer does not affect its coverage.
    NotApplicable,
    /// No value; lowers the coverage of the metric.
    Uncounted(UncountedReason),
}

/// Reason why an answer has no value although the metric applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UncountedReason {
    /// The case has no reference, or an empty one.
    NoReference,
    /// The model has no answer to the case, or an empty one.
    NoAnswer,
    /// The reference has no word that the metric uses.
    NoWords,
    /// The published code excludes this answer from its mean.
    Excluded,
    /// All words have weight 0, because every reference contains them.
    NoWeight,
}

impl UncountedReason {
    /// Returns the reason in JSON, which stays when its wording in tables changes.
    pub fn key(self) -> &'static str {
        match self {
            Self::NoReference => "the case has no reference",
            Self::NoAnswer => "the model has no answer",
            Self::NoWords => "the reference has no word that the metric sees",
            Self::Excluded => "left out by the published code",
            Self::NoWeight => "every reference has all words of it",
        }
    }
}

impl MetricOutcome {
    /// Returns the value, if any.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::NotApplicable | Self::Uncounted(_) => None,
        }
    }
}

/// Outcomes of an answer by column name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerScores {
    /// Counts for corpus BLEU, if requested.
    pub bleu: Option<BleuCounts>,
    outcomes: Vec<(&'static str, MetricOutcome)>,
}

impl AnswerScores {
    /// Adds the same outcome for all columns of a metric.
    pub fn add_all(&mut self, metric: Metric, outcome: MetricOutcome) {
        let names = metric.columns().map(|column| column.name);
        self.outcomes.extend(names.map(|name| (name, outcome)));
    }

    /// Adds values with their column names.
    pub fn add_values(&mut self, values: impl IntoIterator<Item = (&'static str, f64)>) {
        let values = values.into_iter();
        self.outcomes.extend(values.map(|(name, value)| (name, MetricOutcome::Value(value))));
    }

    /// Returns the outcome in a column.
    pub fn get(&self, column: &str) -> Option<MetricOutcome> {
        let entry = self.outcomes.iter().find(|(name, _)| *name == column);
        entry.map(|(_, outcome)| *outcome)
    }

    /// Returns all outcomes with their column names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, MetricOutcome)> {
        self.outcomes.iter().copied()
    }
}

impl fmt::Display for UncountedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWords => "the reference has no word that the metric uses",
            Self::Excluded => "the published code excludes such answers",
            Self::NoWeight => "all words have weight 0, because every reference contains them",
            Self::NoReference | Self::NoAnswer => self.key(),
        })
    }
}
