//! Predicts the quality of evaluations from rated evaluations with logistic regression on text
//! features.
//!
//! The outcome is whether an evaluation belongs to the better half, which is sufficient for a
//! curriculum. AutoMedEval §3.2 uses a classifier on sentence features instead.

use std::collections::BTreeSet;

use acem3_experts::prompt::PromptPiece;
use anyhow::{Result, bail};

use crate::statistics::{
    Bootstrap, Clusters, Estimate, Logistic, LogisticObservation, mean, proportion_interval,
};
use crate::support::digest::fnv1a;
use crate::training::preferences::files::evaluations_file::EvaluationExample;

/// Minimum number of rated evaluations.
const MIN_RATED: usize = 20;
/// Number of features for hashed words. Words that share a feature may differ in sign, which
/// reduces the bias of collisions.
const WORD_FEATURES: usize = 128;
/// Number of cross-fitting folds.
const FOLDS: usize = 5;
/// Ridge penalty of the coefficients.
const RIDGE: f64 = 1.0;

/// Predicted qualities of evaluations.
#[derive(Clone, Debug)]
pub struct QualityReport {
    /// Probability that each evaluation belongs to the better half, 0 to 1. Cross-fitted for rated
    /// evaluations.
    pub probabilities: Vec<f64>,
    /// Number of rated evaluations.
    pub rated: usize,
    /// Number of rated evaluations in the better half.
    pub better: usize,
    /// Lowest rating of the better half.
    pub better_from: f64,
    /// Cross-fitted accuracy on the rated evaluations.
    pub accuracy: Estimate,
}

/// Predicts the quality of all evaluations from the rated ones.
///
/// # Errors
/// If too few evaluations are rated, or all ratings are equal.
pub fn predict_quality(
    evaluations: &[EvaluationExample],
    bootstrap: Bootstrap,
) -> Result<QualityReport> {
    let rated: Vec<(usize, f64)> = evaluations
        .iter()
        .enumerate()
        .filter_map(|(i, evaluation)| Some((i, evaluation.quality?)))
        .collect();
    if rated.len() < MIN_RATED {
        bail!(
            "{} of {} evaluations have a `quality`, expected at least {MIN_RATED}\n\
             hint: rate more lines by hand, on any scale where higher is better",
            rated.len(),
            evaluations.len()
        );
    }
    let Some(better_from) = better_half_threshold(rated.iter().map(|(_, quality)| *quality)) else {
        bail!(
            "all ratings are equal\nhint: use different `quality` values for better and worse lines"
        );
    };
    let features: Vec<Vec<f64>> = evaluations.iter().map(extract_features).collect();
    let observations: Vec<LogisticObservation> = rated
        .iter()
        .map(|(i, quality)| LogisticObservation {
            features: features[*i].clone(),
            outcome: f64::from(u8::from(*quality >= better_from)),
        })
        .collect();
    let mut ridge = vec![RIDGE; observations[0].features.len()];
    ridge[0] = 0.0;
    let clusters = Clusters::new(rated.iter().map(|(i, _)| cluster(&evaluations[*i])));
    let folds = clusters.folds(FOLDS, bootstrap.seed);
    let fit = Logistic::fit_ridge(&observations, &vec![1.0; observations.len()], &ridge)?;
    let mut probabilities: Vec<f64> = features.iter().map(|row| fit.predict(row)).collect();
    for fold in 0..FOLDS {
        let weights = folds.iter().map(|f| f64::from(u8::from(*f != fold)));
        let fit = Logistic::fit_ridge(&observations, &weights.collect::<Vec<_>>(), &ridge)?;
        let held_out = rated.iter().zip(&folds).filter(|(_, f)| **f == fold);
        held_out.for_each(|((i, _), _)| probabilities[*i] = fit.predict(&features[*i]));
    }
    let is_correct = |((i, _), observation): (&(usize, f64), &LogisticObservation)| {
        let predicted = probabilities[*i] >= 0.5;
        Some(f64::from(u8::from(predicted == (observation.outcome > 0.5))))
    };
    let correct: Vec<Option<f64>> = rated.iter().zip(&observations).map(is_correct).collect();
    let mut accuracy = bootstrap.estimate(&clusters, correct.len(), |w| mean(&correct, w));
    if let Ok(value) = accuracy.value {
        accuracy.interval = proportion_interval(value, accuracy.interval, accuracy.clusters);
    }
    Ok(QualityReport {
        rated: rated.len(),
        better: observations.iter().filter(|row| row.outcome > 0.5).count(),
        probabilities,
        better_from,
        accuracy,
    })
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

/// Returns the features of an evaluation: a constant, text statistics and hashed words.
fn extract_features(evaluation: &EvaluationExample) -> Vec<f64> {
    let words = split_words(&evaluation.text);
    let in_prompt: BTreeSet<String> = evaluation.prompt.iter().flat_map(prompt_words).collect();
    let distinct: BTreeSet<&String> = words.iter().collect();
    let n = words.len().max(1) as f64;
    let proportion = |matches: &dyn Fn(&String) -> bool| {
        words.iter().filter(|word| matches(word)).count() as f64 / n
    };
    let sentences = evaluation.text.matches(['.', '!', '?', '。']).count();
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    let mut features = vec![
        1.0,
        (1.0 + words.len() as f64).ln(),
        (1.0 + sentences as f64).ln(),
        letters as f64 / n / 10.0,
        distinct.len() as f64 / n,
        proportion(&|word| in_prompt.contains(word)),
        proportion(&|word| word.chars().all(char::is_numeric)),
    ];
    let mut hashed = vec![0.0; WORD_FEATURES];
    for word in distinct {
        let HashedWord { feature, sign } = hash_word(word);
        hashed[feature] += sign;
    }
    let norm = hashed.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    features.extend(hashed.into_iter().map(|v| v / norm));
    features
}

/// Splits a text into lower-case words.
fn split_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Returns the words of a trusted prompt piece; no words for other pieces.
fn prompt_words(piece: &PromptPiece) -> Vec<String> {
    match piece {
        PromptPiece::Trusted(text) => split_words(text),
        _ => Vec::new(),
    }
}

/// Feature of a hashed word.
struct HashedWord {
    /// Index of the feature.
    feature: usize,
    /// 1 or −1.
    sign: f64,
}

/// Computes the feature of a word from its hash.
fn hash_word(word: &str) -> HashedWord {
    let hash = fnv1a(word);
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    HashedWord { feature: (hash % WORD_FEATURES as u64) as usize, sign }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let report = predict_quality(&mixed_evaluations(40, 60), Bootstrap::default()).unwrap();
        assert_eq!((report.rated, report.better), (40, 20));
        assert!(report.accuracy.value.unwrap() > 0.95, "{:?}", report.accuracy);
        for (i, probability) in report.probabilities.iter().enumerate() {
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
        let report = predict_quality(&evaluations, Bootstrap::default()).unwrap();
        let [low, high] = report.accuracy.interval.unwrap();
        assert!(low < 0.5 && 0.5 < high, "{:?}", report.accuracy);
    }

    #[test]
    fn too_few_or_equal_ratings_are_rejected() {
        let error = |evaluations: &[EvaluationExample]| {
            let report = predict_quality(evaluations, Bootstrap::default());
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
        assert_eq!(better_half_threshold([1.0, 1.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(better_half_threshold([3.0, 1.0, 2.0].into_iter()), Some(2.0));
    }
}
