//! Linear support vector machine on embeddings, with a grid search and probabilities (AutoMedEval,
//! appendix B).
//!
//! Cross-validation inside the training rows gives each cost of the grid its accuracy, and the
//! chosen cost the decision values to which Platt scaling is fitted, as in scikit-learn's
//! `CalibratedClassifierCV(ensemble=False)`. No row outside the training rows has a part in it.

use rayon::prelude::*;

use crate::statistics::{Clusters, Defined, LinearSvm, PlattScaling, SvmSettings};

/// The grid of costs. Features are scaled, so it does not depend on the encoder.
const COSTS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// Number of cross-validation folds inside the training rows.
const INNER_FOLDS: usize = 5;

/// Training rows.
pub(super) struct SvmRows<'a> {
    /// The embedding of each row.
    pub(super) vectors: Vec<&'a [f64]>,
    /// The class of each row.
    pub(super) outcomes: Vec<bool>,
    /// Rows of a cluster are held out together.
    pub(super) clusters: Clusters,
}

/// A fitted classifier.
pub(super) struct SvmClassifier {
    /// The cost that the grid search chose.
    pub(super) cost: f64,
    scaled: ScaledSvm,
    curve: PlattScaling,
}

impl SvmClassifier {
    /// Fits the classifier.
    ///
    /// # Errors
    /// If there are too few clusters for cross-validation.
    pub(super) fn fit(rows: &SvmRows, seed: u64) -> Defined<Self> {
        let folds = rows.clusters.folds(INNER_FOLDS, seed);
        let held_out = |cost: f64| -> Defined<Vec<f64>> {
            let parts: Vec<Vec<(usize, f64)>> = (0..INNER_FOLDS)
                .into_par_iter()
                .map(|fold| {
                    let (held_out, training): (Vec<usize>, Vec<usize>) =
                        (0..folds.len()).partition(|row| folds[*row] == fold);
                    if held_out.is_empty() {
                        return Ok(Vec::new());
                    }
                    let fit = ScaledSvm::fit(rows, &training, cost, seed)?;
                    Ok(held_out
                        .into_iter()
                        .map(|row| (row, fit.decide(rows.vectors[row])))
                        .collect())
                })
                .collect::<Defined<_>>()?;
            let mut decisions = vec![0.0; folds.len()];
            for (row, decision) in parts.into_iter().flatten() {
                decisions[row] = decision;
            }
            Ok(decisions)
        };
        let candidates: Vec<Vec<f64>> =
            COSTS.par_iter().map(|cost| held_out(*cost)).collect::<Defined<_>>()?;
        let correct = |decisions: &[f64]| {
            let pairs = decisions.iter().zip(&rows.outcomes);
            pairs.filter(|(decision, outcome)| (**decision > 0.0) == **outcome).count()
        };
        // The lowest of equally good costs: the strongest penalty.
        let mut best = 0;
        for (i, decisions) in candidates.iter().enumerate() {
            if correct(decisions) > correct(&candidates[best]) {
                best = i;
            }
        }
        let cost = COSTS[best];
        let curve = PlattScaling::fit(&candidates[best], &rows.outcomes)?;
        // If held-out decisions point the wrong way, they have no information.
        let curve = if curve.slope > 0.0 { curve } else { PlattScaling::constant(&rows.outcomes)? };
        let all: Vec<usize> = (0..folds.len()).collect();
        Ok(Self { cost, scaled: ScaledSvm::fit(rows, &all, cost, seed)?, curve })
    }

    /// Returns the probability of the positive class. It rises with the decision value.
    pub(super) fn probability(&self, vector: &[f64]) -> f64 {
        self.curve.probability(self.scaled.decide(vector))
    }
}

/// A support vector machine on centred features of unit mean square length.
struct ScaledSvm {
    center: Vec<f64>,
    factor: f64,
    svm: LinearSvm,
}

impl ScaledSvm {
    /// Fits the training rows.
    fn fit(rows: &SvmRows, training: &[usize], cost: f64, seed: u64) -> Defined<Self> {
        let vectors = || training.iter().map(|row| rows.vectors[*row]);
        let n = training.len().max(1) as f64;
        let mut center = vec![0.0; vectors().next().map_or(0, <[f64]>::len)];
        for vector in vectors() {
            center.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x / n);
        }
        let squares = vectors().flat_map(|vector| vector.iter().zip(&center));
        let square = squares.map(|(x, c)| (x - c) * (x - c)).sum::<f64>() / n;
        // Equal vectors stay zero.
        let factor = if square > 1e-24 { 1.0 / square.sqrt() } else { 0.0 };
        let scaled: Vec<Vec<f64>> =
            vectors().map(|vector| scale(vector, &center, factor)).collect();
        let scaled: Vec<&[f64]> = scaled.iter().map(Vec::as_slice).collect();
        let outcomes: Vec<bool> = training.iter().map(|row| rows.outcomes[*row]).collect();
        let settings = SvmSettings { cost, seed, ..SvmSettings::default() };
        let svm = LinearSvm::fit(&scaled, &outcomes, settings)?;
        Ok(Self { center, factor, svm })
    }

    fn decide(&self, vector: &[f64]) -> f64 {
        self.svm.decide(&scale(vector, &self.center, self.factor))
    }
}

fn scale(vector: &[f64], center: &[f64], factor: f64) -> Vec<f64> {
    vector.iter().zip(center).map(|(x, c)| (x - c) * factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    /// Draws vectors far from the origin whose first component is `signal` higher for positives.
    fn draw(n: usize, signal: f64) -> (Vec<Vec<f64>>, Vec<bool>) {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let outcomes: Vec<bool> = (0..n).map(|i| i.is_multiple_of(2)).collect();
        let vector = |outcome: &bool| {
            let mut vector: Vec<f64> =
                (0..8).map(|_| 50.0 + random.random_range(-1.0..1.0)).collect();
            vector[0] += if *outcome { signal } else { 0.0 };
            vector
        };
        (outcomes.iter().map(vector).collect(), outcomes)
    }

    fn fit(vectors: &[Vec<f64>], outcomes: &[bool]) -> SvmClassifier {
        let rows = SvmRows {
            vectors: vectors.iter().map(Vec::as_slice).collect(),
            outcomes: outcomes.to_vec(),
            clusters: Clusters::new(0..outcomes.len()),
        };
        SvmClassifier::fit(&rows, 1).unwrap()
    }

    #[test]
    fn classes_are_separated_at_any_scale() {
        let (vectors, outcomes) = draw(60, 3.0);
        let classifier = fit(&vectors, &outcomes);
        let probabilities: Vec<f64> =
            vectors.iter().map(|vector| classifier.probability(vector)).collect();
        for (probability, outcome) in probabilities.iter().zip(&outcomes) {
            assert_eq!(*probability > 0.5, *outcome);
            assert!(*probability > 0.0 && *probability < 1.0);
        }
        let tiny: Vec<Vec<f64>> =
            vectors.iter().map(|v| v.iter().map(|x| x / 1024.0).collect()).collect();
        let scaled = fit(&tiny, &outcomes);
        assert!((scaled.cost - classifier.cost).abs() < 1e-12);
        for (vector, expected) in tiny.iter().zip(&probabilities) {
            assert!((scaled.probability(vector) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn equal_vectors_have_the_rate_of_the_classes() {
        let classifier = fit(&vec![vec![1.0, 2.0]; 40], &draw(40, 0.0).1);
        assert!((classifier.probability(&[1.0, 2.0]) - 0.5).abs() < 1e-6);
    }
}
