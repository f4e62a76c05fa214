//! Holm's correction for several tests.

/// The p-values of several tests, corrected so that the chance of a single false finding among them all
/// stays what it was for one (Holm 1979): the smallest times their number, the next times one fewer,
/// and so on, never falling.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, i) in order.into_iter().enumerate() {
        least = least.max((p[i] * (p.len() - rank) as f64).min(1.0));
        corrected[i] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 0.01, 0.02, 0.04 of three become 0.03, 0.04, 0.04.
    #[test]
    fn holm_by_hand() {
        let corrected = holm(&[0.04, 0.01, 0.02]);
        let rounded: Vec<i64> = corrected
            .iter()
            .map(|p| (p * 1000.0).round() as i64)
            .collect();
        assert_eq!(rounded, [40, 30, 40]);
        assert!(holm(&[]).is_empty());
    }
}
