//! How good evaluations are, as far as some that people have rated tell (`AutoMedEval` §3.2: a classifier on
//! features of sentences; here a logistic one).
//!
//! What it is asked is only whether an evaluation belongs to the better half: a curriculum wants no more.

use std::collections::BTreeSet;

use acem3_experts::prompt::Piece;
use anyhow::{Result, bail};

use super::evaluations_file::EvaluationExample;
use crate::statistics::{
    Bootstrap, Clusters, Estimate, Logistic, LogisticObservation, mean, share_interval,
};

/// So many rated evaluations are wanted at least.
const FEWEST: usize = 20;
/// Places for words; words that share one are told apart by their sign, mostly.
const PLACES: usize = 128;
/// Parts of which each is rated by what the others teach.
const FOLDS: usize = 5;
/// How strongly coefficients are drawn to zero.
const RIDGE: f64 = 1.0;

/// What was found of evaluations.
#[derive(Clone, Debug)]
pub struct QualityReport {
    /// The chance of each to be of the better half, 0 to 1; of rated ones, by what the other folds teach.
    pub chances: Vec<f64>,
    /// How many were rated.
    pub rated: usize,
    /// How many of those are of the better half.
    pub better: usize,
    /// From this rating on.
    pub from: f64,
    /// The share of rated ones that are told right by what the other folds teach.
    pub right: Estimate,
}

/// Rates all evaluations by those that are rated already.
///
/// # Errors
///
/// If too few are rated, or all alike.
pub fn rate(evaluations: &[EvaluationExample], bootstrap: Bootstrap) -> Result<QualityReport> {
    let rated: Vec<(usize, f64)> = evaluations
        .iter()
        .enumerate()
        .filter_map(|(i, evaluation)| Some((i, evaluation.quality?)))
        .collect();
    if rated.len() < FEWEST {
        bail!(
            "{} of {} evaluations have a `quality`, at least {FEWEST} are needed\n\
             hint: rate some lines by hand, on any scale, more being better",
            rated.len(),
            evaluations.len()
        );
    }
    let Some(from) = better_from(rated.iter().map(|(_, quality)| *quality)) else {
        bail!("all ratings are equal\nhint: `quality` must tell better lines from worse");
    };
    let features: Vec<Vec<f64>> = evaluations.iter().map(features).collect();
    let all: Vec<LogisticObservation> = rated
        .iter()
        .map(|(i, quality)| LogisticObservation {
            features: features[*i].clone(),
            outcome: f64::from(u8::from(*quality >= from)),
        })
        .collect();
    let mut ridge = vec![RIDGE; all[0].features.len()];
    ridge[0] = 0.0;
    let clusters = Clusters::new(rated.iter().map(|(i, _)| source(&evaluations[*i])));
    let folds = clusters.folds(FOLDS, bootstrap.seed);
    let whole = Logistic::ridged(&all, &vec![1.0; all.len()], &ridge)?;
    let mut chances: Vec<f64> = features.iter().map(|of| whole.at(of)).collect();
    for fold in 0..FOLDS {
        let others = folds.iter().map(|f| f64::from(u8::from(*f != fold)));
        let fit = Logistic::ridged(&all, &others.collect::<Vec<_>>(), &ridge)?;
        let own = rated.iter().zip(&folds).filter(|(_, f)| **f == fold);
        own.for_each(|((i, _), _)| chances[*i] = fit.at(&features[*i]));
    }
    let right = |((i, _), of): (&(usize, f64), &LogisticObservation)| {
        Some(f64::from(u8::from(
            (chances[*i] >= 0.5) == (of.outcome > 0.5),
        )))
    };
    let right: Vec<Option<f64>> = rated.iter().zip(&all).map(right).collect();
    let mut found = bootstrap.estimate(&clusters, right.len(), |w| mean(&right, w));
    if let Ok(share) = found.value {
        found.interval = share_interval(share, found.interval, found.clusters);
    }
    Ok(QualityReport {
        rated: rated.len(),
        better: all.iter().filter(|of| of.outcome > 0.5).count(),
        chances,
        from,
        right: found,
    })
}

/// The least rating of the better half; `None` where all are equal.
fn better_from(ratings: impl Iterator<Item = f64>) -> Option<f64> {
    let mut ratings: Vec<f64> = ratings.collect();
    ratings.sort_by(f64::total_cmp);
    let (least, middle) = (*ratings.first()?, *ratings.get(ratings.len() / 2)?);
    if middle > least {
        return Some(middle);
    }
    // Most have the least: what is above it is better.
    ratings.into_iter().find(|rating| *rating > least)
}

/// What is drawn as a whole: the evaluations about an image.
fn source(evaluation: &EvaluationExample) -> String {
    match &evaluation.image {
        Some(image) => image.display().to_string(),
        None => format!("line {}", evaluation.line),
    }
}

/// A constant, what the text is like, and its words.
fn features(evaluation: &EvaluationExample) -> Vec<f64> {
    let words = words(&evaluation.text);
    let given: BTreeSet<String> = evaluation.prompt.iter().flat_map(given).collect();
    let different: BTreeSet<&String> = words.iter().collect();
    let n = words.len().max(1) as f64;
    let share =
        |of: &dyn Fn(&String) -> bool| words.iter().filter(|word| of(word)).count() as f64 / n;
    let sentences = evaluation.text.matches(['.', '!', '?', '。']).count();
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    let mut features = vec![
        1.0,
        (1.0 + words.len() as f64).ln(),
        (1.0 + sentences as f64).ln(),
        letters as f64 / n / 10.0,
        different.len() as f64 / n,
        share(&|word| given.contains(word)),
        share(&|word| word.chars().all(char::is_numeric)),
    ];
    let mut places = vec![0.0; PLACES];
    for word in different {
        let (place, sign) = place(word);
        places[place] += sign;
    }
    let length = places.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0);
    features.extend(places.into_iter().map(|v| v / length));
    features
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric());
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

fn given(piece: &Piece) -> Vec<String> {
    match piece {
        Piece::Fixed(text) => words(text),
        _ => Vec::new(),
    }
}

/// The place of a word and its sign there: the FNV-1a hash.
fn place(word: &str) -> (usize, f64) {
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    ((hash % PLACES as u64) as usize, sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(line: usize, text: &str, quality: Option<f64>) -> EvaluationExample {
        EvaluationExample {
            line,
            member: None,
            prompt: vec![Piece::Fixed("Which side is the lesion on?".to_owned())],
            text: text.to_owned(),
            image: None,
            quality,
        }
    }

    /// Good ones say what the image shows; bad ones repeat themselves.
    fn mixed(rated: usize, all: usize) -> Vec<EvaluationExample> {
        let one = |i: usize| {
            let good = i.is_multiple_of(2);
            let quality = (i < rated).then_some(if good { 4.0 } else { 1.0 });
            let text = if good {
                format!(
                    "The response claims the left side. The image shows a lesion {i} on the left: they agree."
                )
            } else {
                format!("Good good answer {i} good answer good.")
            };
            evaluation(i + 1, &text, quality)
        };
        (0..all).map(one).collect()
    }

    #[test]
    fn what_people_rated_tells_the_rest() {
        let found = rate(&mixed(40, 60), Bootstrap::default()).unwrap();
        assert_eq!((found.rated, found.better), (40, 20));
        assert!(found.right.value.unwrap() > 0.95, "{:?}", found.right);
        for (i, chance) in found.chances.iter().enumerate() {
            assert_eq!(i.is_multiple_of(2), *chance > 0.5, "{i}: {chance}");
        }
    }

    /// Ratings that follow nothing are told right no more often than by chance.
    #[test]
    fn nothing_is_learned_from_noise() {
        let mut all = mixed(60, 60);
        for (i, evaluation) in all.iter_mut().enumerate() {
            evaluation.quality = Some(((i * 7 + i / 2 * 5) % 11) as f64);
        }
        let found = rate(&all, Bootstrap::default()).unwrap();
        let [low, high] = found.right.interval.unwrap();
        assert!(low < 0.5 && 0.5 < high, "{:?}", found.right);
    }

    #[test]
    fn too_little_is_said() {
        let said =
            |all: &[EvaluationExample]| rate(all, Bootstrap::default()).unwrap_err().to_string();
        assert!(said(&mixed(19, 40)).contains("19 of 40 evaluations have a `quality`"));
        let mut alike = mixed(30, 30);
        for evaluation in &mut alike {
            evaluation.quality = Some(2.0);
        }
        assert!(said(&alike).contains("all ratings are equal"));
        assert_eq!(better_from([1.0, 1.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(better_from([3.0, 1.0, 2.0].into_iter()), Some(2.0));
    }
}
