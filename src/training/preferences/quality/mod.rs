//! Predicts the quality of evaluations from rated evaluations.
//!
//! The outcome is whether an evaluation belongs to the better half, which is sufficient for a
//! curriculum. There are two classifiers: logistic regression on text statistics and hashed words,
//! and, as in AutoMedEval (§3.2, appendix B), a support vector machine on sentence embeddings. The
//! embedded text is the evaluation without its prompt: prompts are longer than the input of sentence
//! encoders, and similar in all evaluations.

mod rated;
mod svm_classifier;
mod text_features;

use anyhow::{Result, ensure};
use serde::Serialize;

use self::rated::{RatedEvaluations, TrainingSplit};
use self::svm_classifier::{SvmClassifier, SvmRows};
use self::text_features::extract_features;
use crate::statistics::{
    Bootstrap, Clusters, Estimate, Logistic, LogisticObservation, MeanDifference, paired_difference,
};
use crate::training::preferences::files::evaluations_file::EvaluationExample;

/// Ridge penalty of the coefficients of logistic regression.
const RIDGE: f64 = 1.0;

/// Predicted qualities of evaluations.
#[derive(Clone, Debug)]
pub struct QualityReport {
    /// Number of rated evaluations.
    pub rated: usize,
    /// Number of rated evaluations in the better half.
    pub better: usize,
    /// Lowest rating of the better half.
    pub better_from: f64,
    /// Logistic regression on text statistics and hashed words.
    pub text: ClassifierQualities,
    /// The support vector machine on embeddings, if there are embeddings.
    pub embeddings: Option<EmbeddingQualities>,
}

/// Predictions of one classifier.
#[derive(Clone, Debug)]
pub struct ClassifierQualities {
    /// Probability that each evaluation belongs to the better half, 0 to 1. Cross-fitted for rated
    /// evaluations.
    pub probabilities: Vec<f64>,
    /// Cross-fitted accuracy on the rated evaluations: proportion of probabilities on the correct
    /// side of one half.
    pub accuracy: Estimate,
}

/// Predictions of the support vector machine.
#[derive(Clone, Debug)]
pub struct EmbeddingQualities {
    /// The predictions. Platt scaling turns the decision values of a fit into probabilities and keeps
    /// their order.
    pub qualities: ClassifierQualities,
    /// Cost that the grid search chose on all rated evaluations.
    pub cost: f64,
    /// Accuracy of the support vector machine − accuracy of the logistic regression.
    pub difference: MeanDifference,
}

/// A classifier of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QualityClassifier {
    /// Logistic regression on text statistics and hashed words.
    Text,
    /// The support vector machine on embeddings.
    Embeddings,
}

impl QualityReport {
    /// Returns the classifier whose predictions are the result: embeddings, if there are any.
    pub fn classifier(&self) -> QualityClassifier {
        match self.embeddings {
            Some(_) => QualityClassifier::Embeddings,
            None => QualityClassifier::Text,
        }
    }

    /// Returns the probabilities that are the result.
    pub fn probabilities(&self) -> &[f64] {
        let embeddings = self.embeddings.as_ref().map(|embeddings| &embeddings.qualities);
        &embeddings.unwrap_or(&self.text).probabilities
    }
}

/// Checks that there are enough ratings for [`predict_quality`].
///
/// # Errors
/// If too few evaluations are rated, all ratings are equal, or they are of too few images.
pub fn check_ratings(evaluations: &[EvaluationExample], bootstrap: Bootstrap) -> Result<()> {
    RatedEvaluations::select(evaluations, bootstrap.seed).map(|_| ())
}

/// Predicts the quality of all evaluations from the rated ones. `embeddings` has one vector for each
/// evaluation.
///
/// # Errors
/// If too few evaluations are rated, all ratings are equal, or they are of too few images.
pub fn predict_quality(
    evaluations: &[EvaluationExample],
    embeddings: Option<&[Vec<f64>]>,
    bootstrap: Bootstrap,
) -> Result<QualityReport> {
    let rated = RatedEvaluations::select(evaluations, bootstrap.seed)?;
    let text_probabilities = predict_from_text(evaluations, &rated)?;
    let text_correct = rated.correct(&text_probabilities);
    let embeddings = match embeddings {
        None => None,
        Some(vectors) => {
            let (probabilities, cost) = predict_from_embeddings(vectors, &rated, bootstrap.seed)?;
            let correct = rated.correct(&probabilities);
            let pairs: Vec<(f64, f64)> =
                correct.iter().copied().zip(text_correct.iter().copied()).collect();
            let accuracy = rated.accuracy(&correct, bootstrap);
            Some(EmbeddingQualities {
                qualities: ClassifierQualities { probabilities, accuracy },
                cost,
                difference: paired_difference(&rated.clusters, &pairs)?,
            })
        }
    };
    Ok(QualityReport {
        rated: rated.indices.len(),
        better: rated.better(),
        better_from: rated.better_from,
        text: ClassifierQualities {
            probabilities: text_probabilities,
            accuracy: rated.accuracy(&text_correct, bootstrap),
        },
        embeddings,
    })
}

/// Returns the probabilities of logistic regression.
fn predict_from_text(
    evaluations: &[EvaluationExample],
    rated: &RatedEvaluations,
) -> Result<Vec<f64>> {
    let features: Vec<Vec<f64>> = evaluations.iter().map(extract_features).collect();
    let observation = |(i, outcome): (&usize, &bool)| LogisticObservation {
        features: features[*i].clone(),
        outcome: f64::from(u8::from(*outcome)),
    };
    let observations: Vec<LogisticObservation> =
        rated.indices.iter().zip(&rated.outcomes).map(observation).collect();
    let mut ridge = vec![RIDGE; observations[0].features.len()];
    ridge[0] = 0.0;
    rated.cross_fit(evaluations.len(), |split: &TrainingSplit| {
        let mut weights = vec![0.0; observations.len()];
        split.training.iter().for_each(|position| weights[*position] = 1.0);
        let fit = Logistic::fit_ridge(&observations, &weights, &ridge)?;
        Ok(split.predicted.iter().map(|i| fit.predict(&features[*i])).collect())
    })
}

/// Returns the probabilities of the support vector machine, and the cost chosen on all rated
/// evaluations.
fn predict_from_embeddings(
    vectors: &[Vec<f64>],
    rated: &RatedEvaluations,
    seed: u64,
) -> Result<(Vec<f64>, f64)> {
    let fit = |training: &[usize]| {
        let rows = SvmRows {
            vectors: training.iter().map(|p| vectors[rated.indices[*p]].as_slice()).collect(),
            outcomes: training.iter().map(|position| rated.outcomes[*position]).collect(),
            clusters: Clusters::new(training.iter().map(|p| rated.clusters.cluster_of(*p))),
        };
        SvmClassifier::fit(&rows, seed)
    };
    ensure!(
        rated.indices.last().is_some_and(|last| *last < vectors.len()),
        "{} embeddings, expected one for each evaluation",
        vectors.len()
    );
    let cost = std::cell::Cell::new(0.0);
    let probabilities = rated.cross_fit(vectors.len(), |split: &TrainingSplit| {
        let classifier = fit(&split.training)?;
        if split.training.len() == rated.indices.len() {
            cost.set(classifier.cost);
        }
        Ok(split.predicted.iter().map(|i| classifier.probability(&vectors[*i])).collect())
    })?;
    Ok((probabilities, cost.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acem3_experts::prompt::PromptPiece;
    use std::path::PathBuf;

    fn evaluation(line: usize, text: &str, quality: Option<f64>) -> EvaluationExample {
        EvaluationExample {
            line,
            member: None,
            prompt: vec![PromptPiece::Trusted("Which side is the lesion on?".to_owned())],
            text: text.to_owned(),
            image: None,
            quality,
        }
    }

    /// Returns good evaluations that describe the image and bad ones that repeat words.
    fn mixed_evaluations(rated: usize, all: usize) -> Vec<EvaluationExample> {
        let numbered = |i: usize| {
            let is_good = i.is_multiple_of(2);
            let quality = (i < rated).then_some(if is_good { 4.0 } else { 1.0 });
            let text = if is_good {
                format!(
                    "The response claims the left side. The image shows a lesion {i} on the left: they agree."
                )
            } else {
                format!("Good good answer {i} good answer good.")
            };
            evaluation(i + 1, &text, quality)
        };
        (0..all).map(numbered).collect()
    }

    #[test]
    fn quality_is_predicted_from_rated_evaluations() {
        let evaluations = mixed_evaluations(40, 60);
        let report = predict_quality(&evaluations, None, Bootstrap::default()).unwrap();
        assert_eq!((report.rated, report.better), (40, 20));
        assert_eq!(report.classifier(), QualityClassifier::Text);
        let accuracy = &report.text.accuracy;
        assert!(accuracy.value.unwrap() > 0.95, "{accuracy:?}");
        for (i, probability) in report.probabilities().iter().enumerate() {
            assert_eq!(i.is_multiple_of(2), *probability > 0.5, "{i}: {probability}");
        }
    }

    /// The accuracy on random ratings is not significantly different from chance.
    #[test]
    fn random_ratings_are_not_predicted() {
        let mut evaluations = mixed_evaluations(60, 60);
        for (i, evaluation) in evaluations.iter_mut().enumerate() {
            evaluation.quality = Some(((i * 7 + i / 2 * 5) % 11) as f64);
        }
        let report = predict_quality(&evaluations, None, Bootstrap::default()).unwrap();
        let [low, high] = report.text.accuracy.interval.unwrap();
        assert!(low < 0.5 && 0.5 < high, "{:?}", report.text.accuracy);
    }

    /// The texts have no information about the ratings, the embeddings have all.
    #[test]
    fn embeddings_are_compared_with_text_statistics() {
        let mut evaluations = mixed_evaluations(60, 80);
        let is_better = |i: usize| (i / 2).is_multiple_of(2);
        for (i, evaluation) in evaluations.iter_mut().enumerate() {
            "The same text.".clone_into(&mut evaluation.text);
            evaluation.quality = (i < 60).then_some(f64::from(u8::from(is_better(i))));
        }
        let vector = |i: usize| {
            let noise = |k: usize| ((i * k) % 7) as f64 / 7.0;
            vec![noise(3), if is_better(i) { 2.0 } else { 0.5 } + noise(2), noise(5)]
        };
        let vectors: Vec<Vec<f64>> = (0..80).map(vector).collect();
        let report = predict_quality(&evaluations, Some(&vectors), Bootstrap::default()).unwrap();
        assert_eq!(report.classifier(), QualityClassifier::Embeddings);
        let embeddings = report.embeddings.as_ref().unwrap();
        assert!(embeddings.qualities.accuracy.value.unwrap() > 0.95, "{embeddings:?}");
        assert!(embeddings.difference.value > 0.3 && embeddings.difference.p < 0.01);
        for (i, probability) in report.probabilities().iter().enumerate() {
            assert_eq!(is_better(i), *probability > 0.5, "{i}: {probability}");
        }
        let few = predict_quality(&evaluations, Some(&vectors[..9]), Bootstrap::default());
        assert!(few.unwrap_err().to_string().contains("expected one for each evaluation"));
    }

    /// Each image has four equal evaluations and random ratings. A split by line would learn the
    /// rating of each image from its copies.
    #[test]
    fn copies_of_an_image_are_held_out_together() {
        let mut evaluations = mixed_evaluations(160, 160);
        let group = |i: usize| i / 4;
        for (i, evaluation) in evaluations.iter_mut().enumerate() {
            evaluation.image = Some(PathBuf::from(format!("{}.png", group(i))));
            evaluation.quality = Some(f64::from(u8::from(group(i) * 7 % 11 % 2 == 0)));
        }
        let vector = |i: usize| (0..40).map(|k| f64::from(u8::from(k == group(i)))).collect();
        let vectors: Vec<Vec<f64>> = (0..160).map(vector).collect();
        let report = predict_quality(&evaluations, Some(&vectors), Bootstrap::default()).unwrap();
        let accuracy = &report.embeddings.unwrap().qualities.accuracy;
        assert!(accuracy.value.unwrap() < 0.7, "{accuracy:?}");
        assert_eq!(accuracy.clusters, 40);
    }

    #[test]
    fn too_few_or_equal_ratings_are_rejected() {
        let error = |evaluations: &[EvaluationExample]| {
            let report = predict_quality(evaluations, None, Bootstrap::default());
            report.unwrap_err().to_string()
        };
        assert!(
            error(&mixed_evaluations(19, 40)).contains("19 of 40 evaluations have a `quality`")
        );
        let mut equal = mixed_evaluations(30, 30);
        for evaluation in &mut equal {
            evaluation.quality = Some(2.0);
        }
        assert!(error(&equal).contains("all ratings are equal"));
        let mut same_images = mixed_evaluations(30, 30);
        for (i, evaluation) in same_images.iter_mut().enumerate() {
            evaluation.image = Some(PathBuf::from(format!("{}.png", i % 4)));
        }
        assert!(error(&same_images).contains("of 4 images, expected at least 5"));
    }
}
