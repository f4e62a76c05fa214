//! Result of one trial of an ablation.

use serde::{Deserialize, Serialize};

use crate::support::digest::Digest;
use crate::training::measurement::{MeasurementReport, SetResults};

/// Result of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationResult {
    /// Seed of the training.
    pub seed: u64,
    /// Hash of the training configuration and the test sets.
    #[serde(default, rename = "of")]
    pub fingerprint: Option<Digest>,
    /// Duration of the training in seconds; `None` if the training was interrupted and resumed.
    pub seconds: Option<f64>,
    /// Statistics of the test sets.
    #[serde(default)]
    pub statistics: Vec<TrialStatistic>,
}

/// A statistic of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialStatistic {
    /// Name of the test set, followed by the part of its table (such as an aspect) if it has parts.
    pub group: String,
    /// Name of the statistic in the group.
    pub name: String,
    /// The value: a proportion, or a correlation.
    pub value: f64,
    /// True for a correlation, −1 to 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_correlation: bool,
}

impl TrialStatistic {
    fn proportion(group: &str, name: &str, value: f64) -> Self {
        Self { group: group.to_owned(), name: name.to_owned(), value, is_correlation: false }
    }

    /// Returns the statistics that tables show, grouped by test set. Undefined ones are omitted.
    pub(super) fn of_report(report: &MeasurementReport) -> Vec<Self> {
        report.sets.iter().flat_map(Self::of_set).collect()
    }

    fn of_set(results: &SetResults) -> Vec<Self> {
        let set = results.set.as_str();
        let proportions = [
            ("order right", results.order),
            ("knowledge right", results.knowledge),
            ("better preferred", results.preferred),
            ("flips", results.flips),
            ("right, better first", results.better_shown[0]),
            ("right, better second", results.better_shown[1]),
            ("longer preferred wrongly", results.longer),
        ];
        let proportions = proportions
            .into_iter()
            .filter_map(|(name, value)| Some(Self::proportion(set, name, value?.value)));
        let labels = &results.labels;
        let correlations = [("Spearman", labels.spearman), ("Pearson", labels.pearson)];
        let correlations = correlations.into_iter().filter_map(|(name, correlation)| {
            let statistic = Self::proportion(set, name, correlation?.value);
            Some(Self { is_correlation: true, ..statistic })
        });
        let mut statistics: Vec<Self> = proportions.chain(correlations).collect();
        for (part, targets) in [("aspects", &labels.aspects), ("criteria", &labels.criteria)] {
            let group = format!("{set}, order right by {part}");
            let values = targets.iter().map(|target| (target.name(), target.accuracy.value));
            statistics.extend(values.map(|(name, value)| Self::proportion(&group, &name, value)));
        }
        let group = format!("{set}, order right by criteria");
        let mean = labels.criteria_mean.map(|mean| Self::proportion(&group, "mean", mean));
        statistics.extend(mean);
        statistics
    }
}
