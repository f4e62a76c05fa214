//! Examples that teach quoting and comparing without an image. The claim quotes the response, and
//! its agreement with the finding follows from the text.
//!
//! Phantoms have few different claims, so a model would learn to guess claims instead of copying
//! them. Random words cannot be guessed.

use acem3_experts::Criterion;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::text::response_writer;
use crate::data::phantoms::{Claim, Defect};
use crate::training::examples::example::{PairExample, ResponseExample};

/// Maximum number of words of a claim.
const MAX_WORDS: usize = 4;

/// Minimum and maximum number of words of a list to copy.
const LIST_WORDS: [usize; 2] = [3, 24];

/// Generator of quoting examples. The field contains the words of claims.
pub(crate) struct QuotingExamples(Vec<String>);

impl QuotingExamples {
    /// Collects the distinct words of some texts.
    pub(crate) fn new(texts: impl Iterator<Item = String>) -> Self {
        let mut words: Vec<String> = texts
            .flat_map(|text| {
                let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
                words.collect::<Vec<_>>()
            })
            .filter(|word| !word.is_empty())
            .collect();
        words.sort();
        words.dedup();
        Self(words)
    }

    /// Generates a pair whose responses are random words. The finding is the claim of a response or
    /// other words. Only the finding of the second evaluation has a loss, because it repeats the
    /// first one. Returns `None` without words.
    pub(crate) fn pair(&self, question: String, rng: &mut ChaCha8Rng) -> Option<PairExample> {
        let claims = [self.random_words(rng)?, self.random_words(rng)?];
        let claims =
            if rng.random_bool(0.15) { [claims[0].clone(), claims[0].clone()] } else { claims };
        let finding = match rng.random_range(0..5) {
            0 | 1 => claims[0].clone(),
            2 | 3 => claims[1].clone(),
            _ => self.random_words(rng)?,
        };
        let mut responses = claims.map(|text| -> ResponseExample {
            let claim = Claim::with_one_concern(&text, &text, &finding, text == finding);
            response_writer::write(&claim, &[Defect::Bare], rng).into()
        });
        let first_ratings = responses[0].ratings.iter_mut();
        for rating in first_ratings.filter(|r| r.criterion == Some(Criterion::FACTUAL_ACCURACY)) {
            rating.trains_finding = false;
        }
        Some(PairExample { image: None, question, responses })
    }

    /// Generates a list of random words to copy. Returns `None` without words.
    pub(crate) fn list(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        let [min, max] = LIST_WORDS;
        let n = rng.random_range(min..=max);
        self.sample_words(n, rng)
    }

    /// Samples the words of a claim; `None` if the vocabulary is empty.
    fn random_words(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        let n = rng.random_range(1..=MAX_WORDS);
        self.sample_words(n, rng)
    }

    fn sample_words(&self, n: usize, rng: &mut ChaCha8Rng) -> Option<String> {
        let words: Option<Vec<&str>> =
            (0..n).map(|_| self.0.choose(rng).map(String::as_str)).collect();
        Some(words?.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn claims_quote_responses_and_agree_with_equal_findings() {
        let quoting = QuotingExamples::new(
            ["Left kidney, T2".to_owned(), "the left lung".to_owned()].into_iter(),
        );
        assert_eq!(quoting.0, ["kidney", "left", "lung", "t2", "the"]);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut agreeing, mut differing) = (0, 0);
        for _ in 0..40 {
            let pair = quoting.pair("Why?".to_owned(), &mut rng).unwrap();
            for (i, response) in pair.responses.iter().enumerate() {
                let rating = response.factual_rating().unwrap();
                let text = response.text.to_lowercase();
                let rest = rating.analysis.strip_prefix(&format!("Claims {text}")).unwrap();
                let agrees = rest.starts_with(&format!(
                    "{} {text}: they agree",
                    response_writer::FINDING_SEPARATOR
                ));
                assert_eq!(rating.score == 5, agrees, "{}", rating.analysis);
                assert_eq!(rating.trains_finding, i == 1);
                *(if agrees { &mut agreeing } else { &mut differing }) += 1;
            }
        }
        assert!(agreeing > 20 && differing > 20, "{agreeing} {differing}");
    }
}
