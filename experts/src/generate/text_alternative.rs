//! The texts that a task becomes with several samples, and their average.

use super::opening::WrittenOpening;
use crate::evaluation::RatingAlternative;
use crate::{Error, Rating, Score};

/// The texts of a task in the order of their samples, or the error that ended one of them. There is one
/// text, or with several samples those that differ.
pub type TaskTexts = Result<Vec<TextAlternative>, Error>;

/// One of the texts that a task becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct TextAlternative {
    /// Probability of the text among the alternatives of its task.
    pub weight: f64,
    /// Number of the first sample that has this text, from 0.
    pub first_sample: usize,
    /// Number of samples with this text.
    pub samples: usize,
    /// Its ratings.
    pub ratings: Vec<Rating>,
    /// Its opening, if the task asked for it.
    pub opening: Option<WrittenOpening>,
}

impl TextAlternative {
    /// Returns the average of alternatives: each score has the mean distribution, and each analysis is
    /// the most probable one. The ratings list what they were averaged of. A single alternative is
    /// its own average.
    ///
    /// Weights need not sum to one. Alternatives of one task have equally many ratings; others are
    /// left out.
    pub fn average(mut alternatives: Vec<Self>) -> Vec<Rating> {
        if alternatives.len() < 2 {
            return alternatives.pop().map(|alternative| alternative.ratings).unwrap_or_default();
        }
        let count = alternatives.iter().map(|a| a.ratings.len()).min().unwrap_or(0);
        let ratings = (0..count).map(|i| {
            let weighted = alternatives.iter().filter_map(|a| Some((a.weight, a.ratings.get(i)?)));
            average_ratings(weighted)
        });
        ratings.flatten().collect()
    }
}

/// Returns the average of weighted ratings; `None` without ratings.
fn average_ratings<'a>(weighted: impl Iterator<Item = (f64, &'a Rating)>) -> Option<Rating> {
    // Texts that differ later have the same rating here.
    let mut different: Vec<(f64, &Rating)> = Vec::new();
    for (weight, rating) in weighted {
        match different.iter_mut().find(|(_, other)| *other == rating) {
            Some((total, _)) => *total += weight,
            None => different.push((weight, rating)),
        }
    }
    let total: f64 = different.iter().map(|(weight, _)| weight).sum();
    for (weight, _) in &mut different {
        *weight /= total;
    }
    // The first of equally probable ones.
    let (_, heaviest) = different
        .iter()
        .copied()
        .reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    if different.len() == 1 {
        return Some(heaviest.clone());
    }
    let scores: Vec<(f64, &Score)> = different.iter().map(|(w, r)| (*w, &r.score)).collect();
    let alternatives = different.iter().map(|(weight, rating)| RatingAlternative {
        weight: *weight,
        analysis: rating.analysis.clone(),
        value: rating.score.value,
        expected: rating.score.expected(),
    });
    Some(Rating {
        score: Score::mixture(&scores),
        alternatives: alternatives.collect(),
        ..heaviest.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alternative(weight: f64, analyses: [&str; 2], values: [u8; 2]) -> TextAlternative {
        let ratings = analyses.into_iter().zip(values);
        let ratings = ratings.map(|(a, v)| Rating::new(a.to_owned(), Score::from_value(v)));
        TextAlternative {
            weight,
            first_sample: 0,
            samples: 1,
            ratings: ratings.collect(),
            opening: None,
        }
    }

    #[test]
    fn scores_are_mixed_by_weight_and_analyses_are_the_most_probable() {
        let average = TextAlternative::average(vec![
            alternative(0.5, ["same", "a mass"], [4, 5]),
            alternative(0.3, ["same", "a cyst"], [4, 1]),
            alternative(0.2, ["same", "a mass"], [4, 3]),
        ]);
        assert_eq!(average[0].alternatives, []);
        assert_eq!(average[0].score, Score::from_value(4));
        let second = &average[1];
        assert_eq!((second.analysis.as_str(), second.score.value), ("a mass", 5));
        assert!((second.score.expected() - (2.5 + 0.3 + 0.6)).abs() < 1e-6, "{second:?}");
        let weights: Vec<f64> = second.alternatives.iter().map(|a| a.weight).collect();
        assert_eq!(weights, [0.5, 0.3, 0.2]);
        // A single text stays as it is.
        let one = alternative(0.4, ["a", "b"], [1, 2]);
        assert_eq!(TextAlternative::average(vec![one.clone()]), one.ratings);
        assert_eq!(TextAlternative::average(Vec::new()), []);
    }
}
