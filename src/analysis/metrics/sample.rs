//! Values of one column and their estimate.

use super::metric::MetricColumn;
use crate::analysis::metrics::lexical::bleu::BleuCounts;
use crate::statistics::{Bootstrap, Clusters, Defined, Estimate, mean, proportion_interval};

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

    /// Estimates the mean of a column, or corpus BLEU, with a bootstrap interval clustered by
    /// image.
    pub(super) fn estimate(&self, column: &MetricColumn) -> Estimate {
        let clusters = Clusters::new(&self.clusters);
        let bootstrap = Bootstrap::default();
        if let Some(order) = column.corpus_order {
            return bootstrap
                .estimate(&clusters, self.len(), |weights| self.corpus_bleu(order, weights));
        }
        let mean = |weights: &[f64]| mean(&self.values, weights);
        let mut estimate = bootstrap.estimate(&clusters, self.len(), mean);
        if let (Ok(value), true) = (estimate.value, column.is_proportion()) {
            estimate.interval = proportion_interval(value, estimate.interval, estimate.clusters);
        }
        estimate
    }

    fn corpus_bleu(&self, order: usize, weights: &[f64]) -> Defined<f64> {
        // Without answers, corpus BLEU is undefined like the mean.
        mean(&self.values, weights)?;
        let resampled = self.counts.iter().zip(weights);
        let resampled = resampled.map(|(counts, weight)| counts.scaled(*weight as u64));
        Ok(resampled.sum::<BleuCounts>().corpus(order))
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{COLUMNS, Metric};
    use super::*;

    fn column(name: &str) -> &'static MetricColumn {
        COLUMNS.iter().find(|c| c.name == name).unwrap()
    }

    /// Creates answers: half equal their reference, half have no word in common with it.
    fn halves(images: &[String]) -> ColumnSample<'_> {
        let mut sample = ColumnSample::default();
        for (i, image) in images.iter().enumerate() {
            let is_correct = u64::from(i % 2 == 0);
            let counts = BleuCounts {
                correct: [4 * is_correct, 3 * is_correct, 2 * is_correct, is_correct],
                total: [4, 3, 2, 1],
                answer: 4,
                reference: 4,
            };
            sample.push(image, is_correct as f64, Some(counts));
        }
        sample
    }

    #[test]
    fn corpus_bleu_interval_matches_binomial() {
        let images: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let sample = halves(&images);
        // All four precisions equal the proportion of correct answers, so the interval is that of a
        // binomial.
        let estimate = sample.estimate(column("corpus_bleu4"));
        assert!((estimate.value.unwrap() - 50.0).abs() < 1e-9);
        let [low, high] = estimate.interval.unwrap();
        assert!((low - 40.0).abs() < 2.0 && (high - 60.0).abs() < 2.0, "{low} {high}");
        let interval = sample.estimate(column("exact_match")).interval.unwrap();
        assert!((interval[0] - low / 100.0).abs() < 1e-9, "{interval:?} {low}");
    }

    #[test]
    fn few_images_give_wide_intervals() {
        let images: Vec<String> = (0..4).map(|i| i.to_string()).collect();
        let interval = halves(&images).estimate(column("exact_match")).interval.unwrap();
        assert!(interval[0] < 0.16 && interval[1] > 0.84, "{interval:?}");
        let none = ColumnSample::default().estimate(column("corpus_bleu1"));
        assert!(none.value.is_err() && none.interval.is_err());
        assert_eq!(column("corpus_bleu1").metric, Metric::Bleu);
    }
}
