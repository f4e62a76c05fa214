//! Area under the ROC curve: how well a value separates two groups.

use crate::statistics::undefined::{Defined, require_at_least};

/// Computes the area under the ROC curve: the probability that a value of the positive group is above
/// one of the negative group, with one half for equal values (Mann and Whitney 1947). Each case counts
/// with its weight.
///
/// # Errors
///
/// One of the groups is empty.
pub fn auc(values: &[f64], is_positive: &[bool], weights: &[f64]) -> Defined<f64> {
    let mut cases: Vec<(f64, bool, f64)> = values
        .iter()
        .zip(is_positive)
        .zip(weights)
        .filter(|(_, weight)| **weight > 0.0)
        // Adding 0 makes −0 equal to 0.
        .map(|((value, positive), weight)| (*value + 0.0, *positive, *weight))
        .collect();
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut positive, mut area) = (0.0, 0.0, 0.0);
    for equal in cases.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let weight_of = |group: bool| -> f64 {
            equal.iter().filter(|(_, is, _)| *is == group).map(|(_, _, weight)| weight).sum()
        };
        let (in_positive, in_negative) = (weight_of(true), weight_of(false));
        area += in_positive * (below + in_negative / 2.0);
        below += in_negative;
        positive += in_positive;
    }
    require_at_least(1, positive as usize, ["positive case", "positive cases"])?;
    require_at_least(1, below as usize, ["negative case", "negative cases"])?;
    Ok(area / (positive * below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct GoldenAuc {
        values: Vec<f64>,
        labels: Vec<u8>,
        weights: Vec<f64>,
        auc: f64,
    }

    #[test]
    fn auc_equals_scikit_learn() {
        let golden = include_str!("../../../assets/golden/auc.json");
        let golden: Vec<GoldenAuc> = serde_json::from_str(golden).unwrap();
        assert_eq!(golden.len(), 8);
        for case in golden {
            let is_positive: Vec<bool> = case.labels.iter().map(|label| *label == 1).collect();
            let found = auc(&case.values, &is_positive, &case.weights).unwrap();
            assert!((found - case.auc).abs() < 1e-12, "{found}, expected {}", case.auc);
        }
    }

    #[test]
    fn equal_values_separate_nothing_and_one_group_is_undefined() {
        let values = [0.1, 0.4, 0.35, 0.8];
        let groups = [false, false, true, true];
        assert_eq!(auc(&[0.5; 4], &groups, &[1.0; 4]), Ok(0.5));
        assert!(auc(&values, &[true; 4], &[1.0; 4]).is_err());
        assert!(auc(&values, &groups, &[1.0, 1.0, 0.0, 0.0]).is_err());
    }
}
