//! The rated evaluations: their halves, clusters and folds.

use anyhow::{Result, bail};

use crate::statistics::{Bootstrap, Clusters, Estimate, mean, proportion_interval};
use crate::training::preferences::files::evaluations_file::EvaluationExample;

/// Minimum number of rated evaluations.
const MIN_RATED: usize = 20;
/// Number of cross-fitting folds.
pub(super) const FOLDS: usize = 5;

/// The rated evaluations of a file.
#[derive(Clone, Debug)]
pub(super) struct RatedEvaluations {
    /// Index of each rated evaluation in the file.
    pub(super) indices: Vec<usize>,
    /// True for each one in the better half.
    pub(super) outcomes: Vec<bool>,
    /// Lowest rating of the better half.
    pub(super) better_from: f64,
    /// Evaluations of one image are a cluster.
    pub(super) clusters: Clusters,
    /// Fold of each one. A cluster is in one fold.
    folds: Vec<usize>,
}

impl RatedEvaluations {
    /// Selects the rated evaluations.
    ///
    /// # Errors
    /// If too few evaluations are rated, all ratings are equal, or they are of too few images.
    pub(super) fn select(evaluations: &[EvaluationExample], seed: u64) -> Result<Self> {
        let rated = |(i, evaluation): (usize, &EvaluationExample)| Some((i, evaluation.quality?));
        let rated: Vec<(usize, f64)> = evaluations.iter().enumerate().filter_map(rated).collect();
        if rated.len() < MIN_RATED {
            bail!(
                "{} of {} evaluations have a `quality`, expected at least {MIN_RATED}\n\
                 hint: rate more lines by hand, on any scale where higher is better",
                rated.len(),
                evaluations.len()
            );
        }
        let Some(better_from) = better_half_threshold(rated.iter().map(|(_, quality)| *quality))
        else {
            bail!(
                "all ratings are equal\nhint: use different `quality` values for better and worse lines"
            );
        };
        let clusters = Clusters::new(rated.iter().map(|(i, _)| cluster(&evaluations[*i])));
        if clusters.count() < FOLDS {
            bail!(
                "the {} rated evaluations are of {} images, expected at least {FOLDS}: evaluations of \
                 one image are held out together\n\
                 hint: rate evaluations of more images",
                rated.len(),
                clusters.count()
            );
        }
        let folds = clusters.folds(FOLDS, seed);
        let outcomes = rated.iter().map(|(_, quality)| *quality >= better_from).collect();
        let indices = rated.into_iter().map(|(i, _)| i).collect();
        Ok(Self { indices, outcomes, better_from, clusters, folds })
    }

    /// Returns the number of evaluations in the better half.
    pub(super) fn better(&self) -> usize {
        self.outcomes.iter().filter(|outcome| **outcome).count()
    }

    /// Computes the probabilities of `n` evaluations. Each rated one comes from a fit without its
    /// fold, the others from the fit to all rated ones. `fit` returns the probabilities of the
    /// evaluations at `predicted` (indices in the file) after a fit to the rated ones at `training`.
    ///
    /// # Errors
    /// Those of `fit`.
    pub(super) fn cross_fit(
        &self,
        n: usize,
        fit: impl Fn(&TrainingSplit) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let all = (0..self.indices.len()).collect();
        let mut probabilities = fit(&TrainingSplit { training: all, predicted: (0..n).collect() })?;
        for fold in 0..FOLDS {
            let (held_out, training): (Vec<usize>, Vec<usize>) =
                (0..self.indices.len()).partition(|position| self.folds[*position] == fold);
            let predicted: Vec<usize> =
                held_out.iter().map(|position| self.indices[*position]).collect();
            let held_out = fit(&TrainingSplit { training, predicted: predicted.clone() })?;
            for (i, probability) in predicted.into_iter().zip(held_out) {
                probabilities[i] = probability;
            }
        }
        Ok(probabilities)
    }

    /// Returns 1 for each rated evaluation whose probability is on the correct side of one half,
    /// and 0 for the others.
    pub(super) fn correct(&self, probabilities: &[f64]) -> Vec<f64> {
        let is_correct = |(i, outcome): (&usize, &bool)| (probabilities[*i] >= 0.5) == *outcome;
        let correct = self.indices.iter().zip(&self.outcomes).map(is_correct);
        correct.map(|correct| f64::from(u8::from(correct))).collect()
    }

    /// Computes the accuracy with its interval, clustered by image.
    pub(super) fn accuracy(&self, correct: &[f64], bootstrap: Bootstrap) -> Estimate {
        let correct: Vec<Option<f64>> = correct.iter().copied().map(Some).collect();
        let mut accuracy = bootstrap.estimate(&self.clusters, correct.len(), |w| mean(&correct, w));
        if let Ok(value) = accuracy.value {
            accuracy.interval = proportion_interval(value, accuracy.interval, accuracy.clusters);
        }
        accuracy
    }
}

/// What a fit uses and predicts.
#[derive(Clone, Debug)]
pub(super) struct TrainingSplit {
    /// Positions among the rated evaluations.
    pub(super) training: Vec<usize>,
    /// Indices in the file.
    pub(super) predicted: Vec<usize>,
}

/// Returns the lowest rating of the better half; `None` if all ratings are equal.
fn better_half_threshold(ratings: impl Iterator<Item = f64>) -> Option<f64> {
    let mut ratings: Vec<f64> = ratings.collect();
    ratings.sort_by(f64::total_cmp);
    let (lowest, median) = (*ratings.first()?, *ratings.get(ratings.len() / 2)?);
    if median > lowest {
        return Some(median);
    }
    // More than half of the ratings are the lowest one, so all other ratings are the better half.
    ratings.into_iter().find(|rating| *rating > lowest)
}

/// Returns the bootstrap cluster of an evaluation: its image, or its line without an image.
fn cluster(evaluation: &EvaluationExample) -> String {
    match &evaluation.image {
        Some(image) => image.display().to_string(),
        None => format!("line {}", evaluation.line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_half_starts_at_the_median() {
        assert_eq!(better_half_threshold([1.0, 1.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(better_half_threshold([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(better_half_threshold([2.0; 3].into_iter()), None);
    }
}
