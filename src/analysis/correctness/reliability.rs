//! Reliability of probabilities: how often responses are correct that the judge calls probably
//! correct.

use serde::Serialize;

use super::labelled::LabelledResponse;
use super::model_accuracy::{estimate_proportion, indicator};
use crate::analysis::calibration::reliability_table::reliability_table;
use crate::statistics::{Bootstrap, Defined, Estimate, Reliability, reliability};
use crate::support::tables::TableSection;

/// Number of bins from 0 to 1.
const BINS: u8 = 10;

/// Reliability of the probabilities of correctness, against labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbabilityReliability {
    /// Brier score: mean squared difference between probability and label, 0 to 1.
    pub brier: Estimate,
    /// Expected calibration error and bins; `score` is a mean probability, `truth` the proportion of
    /// responses that the raters call correct.
    #[serde(flatten)]
    pub reliability: Reliability,
}

impl ProbabilityReliability {
    /// Compares the probabilities of responses with their labels.
    ///
    /// # Errors
    ///
    /// There is no response.
    pub fn new(responses: &[LabelledResponse<'_>], bootstrap: Bootstrap) -> Defined<Self> {
        let probabilities: Vec<f64> = responses.iter().map(|l| l.probability).collect();
        Self::of_probabilities(&probabilities, responses, bootstrap)
    }

    /// Compares other probabilities of the same responses, such as calibrated ones, with the labels.
    ///
    /// # Errors
    ///
    /// There is no response.
    pub fn of_probabilities(
        probabilities: &[f64],
        responses: &[LabelledResponse<'_>],
        bootstrap: Bootstrap,
    ) -> Defined<Self> {
        let labels: Vec<f64> = responses.iter().map(|l| indicator(l.is_correct)).collect();
        let edges: Vec<f64> = (0..=BINS).map(|i| f64::from(i) / f64::from(BINS)).collect();
        let squares = probabilities.iter().zip(&labels).map(|(p, label)| (p - label).powi(2));
        let clusters = responses.iter().map(|l| l.response.cluster.as_str());
        let squares: Vec<(&str, f64)> = clusters.zip(squares).collect();
        Ok(Self {
            brier: estimate_proportion(&squares, bootstrap),
            reliability: reliability(probabilities, &labels, &edges)?,
        })
    }

    /// Returns the bins as a table.
    pub fn table(&self, title: &str) -> TableSection {
        let header =
            ["probability", "n", "mean probability", "correct by the labels", "difference"];
        let table = reliability_table(header, &self.reliability);
        let brier = self.brier.value.map_or_else(|_| "unknown".to_owned(), |b| format!("{b:.3}"));
        TableSection::new(title, table).with_notes(vec![
            format!(
                "expected calibration error {:.3}: mean absolute difference of the bins, weighted by their \
                 responses; 0 is perfect",
                self.reliability.error
            ),
            format!(
                "Brier score {brier}: mean squared difference between probability and label (1 or 0); 0 is \
                 perfect, 0.25 is that of a constant probability of one half"
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::response;
    use super::*;

    #[test]
    fn brier_score_and_error_equal_hand_computation() {
        let graded = [(0.9, true), (0.8, false), (0.1, false), (0.15, true)];
        let responses: Vec<_> =
            graded.iter().enumerate().map(|(i, (p, _))| response(i, "a", Some(*p))).collect();
        let labelled = responses.iter().zip(graded).map(|(response, (probability, is_correct))| {
            LabelledResponse { response, probability, is_correct }
        });
        let labelled: Vec<_> = labelled.collect();
        let found = ProbabilityReliability::new(&labelled, Bootstrap::default()).unwrap();
        // (0.1² + 0.8² + 0.1² + 0.85²) / 4
        assert!((found.brier.value.unwrap() - 0.345_625).abs() < 1e-12);
        // Bins 0.1 (two responses, mean 0.125 against 0.5), 0.8 and 0.9.
        assert_eq!(found.reliability.bins.len(), 3);
        assert!((found.reliability.error - (2.0 * 0.375 + 0.8 + 0.1) / 4.0).abs() < 1e-12);
    }
}
