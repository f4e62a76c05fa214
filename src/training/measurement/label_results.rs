//! Results of a comparison with labels of aspects, criteria and final scores (`HDCEval` §4.2,
//! `AutoMedEval` §4.3).

use serde::Serialize;

use super::interval::Proportion;

/// Agreement with the labels of a test set. A part without labels is empty or absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabelResults {
    /// Order accuracy of each labelled aspect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aspects: Vec<TargetAccuracy>,
    /// Order accuracy of each labelled criterion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<TargetAccuracy>,
    /// Mean of the accuracies of the criteria, each with the same weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria_mean: Option<f64>,
    /// Spearman's correlation of final scores with labels, over responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spearman: Option<ScoreCorrelation>,
    /// Pearson's correlation of final scores with labels, over responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pearson: Option<ScoreCorrelation>,
}

/// Order accuracy of an aspect or a criterion. A tie counts as an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetAccuracy {
    /// Key of the aspect or criterion.
    pub target: String,
    /// Proportion of pairs with the order of the labels.
    pub accuracy: Proportion,
}

impl TargetAccuracy {
    /// Returns the name in tables.
    pub fn name(&self) -> String {
        self.target.replace('_', " ")
    }
}

/// Correlation of scores with labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScoreCorrelation {
    /// The correlation, −1 to 1.
    pub value: f64,
    /// The 95 % bootstrap interval, clustered by image; `None` if there are too few images.
    pub interval: Option<[f64; 2]>,
    /// Number of responses.
    pub n: usize,
    /// Number of images (clusters).
    pub images: usize,
}
