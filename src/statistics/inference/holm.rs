//! Holm's correction for multiple tests.

/// Corrects p-values so that the family-wise error rate is that of one test (Holm 1979): the
/// smallest is multiplied by the number of tests, the next by one less, and so on; the results
/// never decrease.
pub fn holm_adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, i) in order.into_iter().enumerate() {
        largest = largest.max((p[i] * (p.len() - rank) as f64).min(1.0));
        corrected[i] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: 0.01, 0.02, 0.04 become 0.03, 0.04, 0.04.
    #[test]
    fn holm_equals_hand_computation() {
        let corrected = holm_adjust(&[0.04, 0.01, 0.02]);
        let rounded: Vec<i64> = corrected.iter().map(|p| (p * 1000.0).round() as i64).collect();
        assert_eq!(rounded, [40, 30, 40]);
        assert!(holm_adjust(&[]).is_empty());
    }

    #[test]
    fn holm_equals_statsmodels() {
        let golden = include_str!("../../../assets/golden/holm.json");
        let golden: Vec<(Vec<f64>, Vec<f64>)> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 10);
        for (p, expected) in golden {
            let corrected = holm_adjust(&p);
            let is_near = corrected.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(is_near && corrected.len() == expected.len(), "{p:?}: {corrected:?}");
        }
    }
}
