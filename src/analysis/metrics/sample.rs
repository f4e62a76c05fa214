//! Values of one column and their estimate.

use super::bleu::BleuCounts;
use super::metric::MetricColumn;
use crate::statistics::{Bootstrap, Clusters, Defined, Estimate, mean, share_interval};

/// Values of answers with their images.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnSample<'a> {
    clusters: Vec<&'a str>,
    values: Vec<Option<f64>>,
    counts: Vec<BleuCounts>,
}

impl<'a> ColumnSample<'a> {
    /// Adds the value of an answer with its image and, for BLEU, its counts.
    pub(super) fn push(&mut self, image: &'a str, value: f64, counts: Option<BleuCounts>) {
        self.clusters.push(image);
        self.values.push(Some(value));
        self.counts.push(counts.unwrap_or_default());
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Estimates the mean of a column, or corpus BLEU, with a bootstrap interval clustered by image.
    pub(super) fn estimate(&self, column: &MetricColumn) -> Estimate {
        let clusters = Clusters::new(&self.clusters);
        let bootstrap = Bootstrap::default();
        if let Some(order) = column.corpus {
            return bootstrap.estimate(&clusters, self.len(), |weights| self.bleu(order, weights));
        }
        let mean = |weights: &[f64]| mean(&self.values, weights);
        let mut found = bootstrap.estimate(&clusters, self.len(), mean);
        if let (Ok(value), true) = (found.value, column.is_share()) {
            found.interval = share_interval(value, found.interval, found.clusters);
        }
        found
    }

    fn bleu(&self, order: usize, weights: &[f64]) -> Defined<f64> {
        // Without answers, corpus BLEU is undefined like the mean.
        mean(&self.values, weights)?;
        let drawn = self.counts.iter().zip(weights);
        let drawn = drawn.map(|(counts, weight)| counts.times(*weight as u64));
        Ok(drawn.sum::<BleuCounts>().corpus(order))
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{COLUMNS, Metric};
    use super::*;

    fn column(name: &str) -> &'static MetricColumn {
        COLUMNS.iter().find(|c| c.name == name).unwrap()
    }

    /// Half of the answers equal their reference, the other half have no word in common with it.
    fn halves(images: &[String]) -> ColumnSample<'_> {
        let mut sample = ColumnSample::default();
        for (i, image) in images.iter().enumerate() {
            let right = u64::from(i % 2 == 0);
            let counts = BleuCounts {
                correct: [4 * right, 3 * right, 2 * right, right],
                total: [4, 3, 2, 1],
                answer: 4,
                reference: 4,
            };
            sample.push(image, right as f64, Some(counts));
        }
        sample
    }

    #[test]
    fn corpus_bleu_interval_matches_binomial() {
        let images: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let sample = halves(&images);
        // All four precisions equal the proportion of right answers, so the interval is that of a binomial.
        let found = sample.estimate(column("corpus_bleu4"));
        assert!((found.value.unwrap() - 50.0).abs() < 1e-9);
        let [low, high] = found.interval.unwrap();
        assert!(
            (low - 40.0).abs() < 2.0 && (high - 60.0).abs() < 2.0,
            "{low} {high}"
        );
        let share = sample.estimate(column("exact_match")).interval.unwrap();
        assert!((share[0] - low / 100.0).abs() < 1e-9, "{share:?} {low}");
    }

    #[test]
    fn few_images_give_wide_intervals() {
        let images: Vec<String> = (0..4).map(|i| i.to_string()).collect();
        let share = halves(&images)
            .estimate(column("exact_match"))
            .interval
            .unwrap();
        assert!(share[0] < 0.16 && share[1] > 0.84, "{share:?}");
        let none = ColumnSample::default().estimate(column("corpus_bleu1"));
        assert!(none.value.is_err() && none.interval.is_err());
        assert_eq!(column("corpus_bleu1").metric, Metric::Bleu);
    }
}
