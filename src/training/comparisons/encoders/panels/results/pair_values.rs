//! Values of pairs, their means, and paired differences.

use serde::Serialize;

use crate::statistics::{Clusters, MeanDifference, holm_adjust, paired_difference};
use crate::training::measurement::{Proportion, proportion_with_interval};

/// One value per pair, from 0 to 1; `None` for an unscored pair.
pub(super) type PairValues = Vec<Option<f64>>;

/// Returns the mean of the scored pairs with its interval, clustered by image. `includes` selects
/// pairs.
pub(super) fn mean_of_pairs(
    clusters: &[String],
    values: &PairValues,
    includes: impl Fn(usize) -> bool,
) -> Option<Proportion> {
    let pairs = clusters.iter().zip(values).enumerate().filter(|(i, _)| includes(*i));
    let scored = pairs.filter_map(|(_, (cluster, value))| Some((cluster.clone(), (*value)?)));
    proportion_with_interval(&scored.collect::<Vec<_>>())
}

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EncoderComparisonKind {
    /// Two encoders.
    Encoders,
    /// An encoder with the images of the pairs, and the same encoder with blank images.
    BlankImage,
    /// An encoder and the baseline that always chooses the most frequent answer.
    MajorityClass,
}

/// Difference of order accuracy on the pairs that both have scored.
#[derive(Clone, Debug, Serialize)]
pub struct PairedComparison {
    /// What is compared.
    pub kind: EncoderComparisonKind,
    /// Name of the encoder.
    pub encoder: String,
    /// Name of what it is compared with.
    pub baseline: String,
    /// Pairs that both have scored.
    pub n: usize,
    /// Difference with interval and p-values; `None` if no pair is scored by both.
    pub difference: Option<MeanDifference>,
}

/// Two lists of values to compare.
pub(super) struct ComparedValues<'a> {
    pub(super) kind: EncoderComparisonKind,
    pub(super) encoder: &'a str,
    pub(super) baseline: &'a str,
    pub(super) values: [&'a PairValues; 2],
}

/// Compares values pair by pair, and corrects all p-values together with Holm's method.
pub(super) fn compare_all(
    clusters: &[String],
    comparisons: &[ComparedValues<'_>],
) -> Vec<PairedComparison> {
    let mut compared: Vec<PairedComparison> = comparisons
        .iter()
        .map(|ComparedValues { kind, encoder, baseline, values: [values, base] }| {
            let pairs = clusters.iter().zip(values.iter().zip(base.iter()));
            let scored: Vec<(&str, (f64, f64))> = pairs
                .filter_map(|(cluster, (value, base))| {
                    Some((cluster.as_str(), ((*value)?, (*base)?)))
                })
                .collect();
            let images = Clusters::new(scored.iter().map(|(cluster, _)| *cluster));
            let pairs: Vec<(f64, f64)> = scored.iter().map(|(_, pair)| *pair).collect();
            PairedComparison {
                kind: *kind,
                encoder: (*encoder).to_owned(),
                baseline: (*baseline).to_owned(),
                n: pairs.len(),
                difference: paired_difference(&images, &pairs).ok(),
            }
        })
        .collect();
    let differences = compared.iter_mut().filter_map(|c| c.difference.as_mut());
    let mut differences: Vec<&mut MeanDifference> = differences.collect();
    let p_values: Vec<f64> = differences.iter().map(|difference| difference.p).collect();
    for (difference, p) in differences.iter_mut().zip(holm_adjust(&p_values)) {
        difference.p_holm = p;
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unscored_pairs_are_left_out_and_images_are_clusters() {
        let clusters: Vec<String> = (0..40).map(|i| (i / 2).to_string()).collect();
        let all: PairValues = (0..40).map(|i| Some(f64::from(u8::from(i % 4 != 0)))).collect();
        let half: PairValues = (0..40).map(|i| all[i].filter(|_| i < 20)).collect();
        let mean = mean_of_pairs(&clusters, &all, |_| true).unwrap();
        assert_eq!((mean.n, mean.images), (40, 20));
        let scored = mean_of_pairs(&clusters, &half, |_| true).unwrap();
        // Unscored pairs would give half of this accuracy if they counted as wrong.
        assert_eq!((scored.value, scored.n, scored.images), (0.75, 20, 10));
        let part = mean_of_pairs(&clusters, &all, |i| i >= 30).unwrap();
        assert_eq!((part.n, part.images), (10, 5));
        assert!(mean_of_pairs(&clusters, &vec![None; 40], |_| true).is_none());
        let zero: PairValues = vec![Some(0.0); 40];
        let compared = |kind, values| ComparedValues { kind, encoder: "a", baseline: "b", values };
        let results = compare_all(
            &clusters,
            &[
                compared(EncoderComparisonKind::Encoders, [&half, &zero]),
                compared(EncoderComparisonKind::BlankImage, [&all, &all]),
                compared(EncoderComparisonKind::MajorityClass, [&vec![None; 40], &all]),
            ],
        );
        assert_eq!(results.iter().map(|c| c.n).collect::<Vec<_>>(), [20, 40, 0]);
        let [first, second] = [0, 1].map(|i| results[i].difference.unwrap());
        assert!((first.value - 0.75).abs() < 1e-12 && results[2].difference.is_none());
        // The functions of the statistics give the same values.
        let images = Clusters::new((0..20).map(|i| i / 2));
        let pairs: Vec<(f64, f64)> = (0..20).map(|i| (half[i].unwrap(), 0.0)).collect();
        let expected = paired_difference(&images, &pairs).unwrap();
        assert_eq!(
            (first.value, first.interval, first.p),
            (expected.value, expected.interval, expected.p)
        );
        assert_eq!(vec![first.p_holm, second.p_holm], holm_adjust(&[first.p, second.p]));
    }
}
