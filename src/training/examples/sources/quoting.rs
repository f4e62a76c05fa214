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
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::examples::example::{PairExample, ResponseExample};
use crate::training::examples::proportion::is_chosen;
use crate::training::examples::sources::varied_text::in_other_script;

/// Minimum and maximum number of words of a list to copy.
const LIST_WORDS: [usize; 2] = [3, 24];

/// Length and words of the claims in quoting examples, and words of the lists to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotedWords {
    /// Maximum number of words of a claim.
    pub(crate) max_claim: usize,
    /// Proportion of words that no text contains.
    pub(crate) invented: f64,
}

impl QuotedWords {
    /// Returns the settings of a stage.
    pub(crate) fn of_stage(stage: &StageConfig) -> Self {
        Self { max_claim: stage.max_claim_words, invented: stage.invented_proportion }
    }
}

/// Kinds of invented words, with their weights.
const INVENTED_KINDS: &[(InventedKind, u32)] = &[
    (InventedKind::PartsOfWords, 45),
    (InventedKind::Letters, 15),
    (InventedKind::Number, 10),
    (InventedKind::Compound, 5),
    (InventedKind::OtherScript, 25),
];

/// A kind of invented word.
#[derive(Clone, Copy, Debug)]
enum InventedKind {
    /// Beginnings of one or two words and the end of another.
    PartsOfWords,
    /// Random Latin letters.
    Letters,
    /// A decimal number.
    Number,
    /// Two words with a hyphen, or a word in parentheses.
    Compound,
    /// Characters of one script other than Latin, or symbols.
    OtherScript,
}

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
    pub(crate) fn pair(
        &self,
        question: String,
        quoted: QuotedWords,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let claims = [self.claim_words(quoted, rng)?, self.claim_words(quoted, rng)?];
        let claims =
            if rng.random_bool(0.15) { [claims[0].clone(), claims[0].clone()] } else { claims };
        let finding = match rng.random_range(0..5) {
            0 | 1 => claims[0].clone(),
            2 | 3 => claims[1].clone(),
            _ => self.claim_words(quoted, rng)?,
        };
        let mut responses = claims.map(|text| -> ResponseExample {
            let claim = Claim::with_one_concern(&text, &text, &finding, text == finding);
            response_writer::write(&claim, &[Defect::Bare], rng).into()
        });
        if let Some(rating) = responses[0].rating_mut(Criterion::FACTUAL_ACCURACY) {
            rating.trains_finding = false;
        }
        Some(PairExample { image: None, question, responses })
    }

    /// Generates a list of random words to copy. Returns `None` without words.
    pub(crate) fn list(&self, quoted: QuotedWords, rng: &mut ChaCha8Rng) -> Option<String> {
        let [min, max] = LIST_WORDS;
        let n = rng.random_range(min..=max);
        self.sample_words(n, quoted.invented, rng)
    }

    /// Samples the words of a claim; `None` if the vocabulary is empty.
    fn claim_words(&self, quoted: QuotedWords, rng: &mut ChaCha8Rng) -> Option<String> {
        let n = rng.random_range(1..=quoted.max_claim.max(1));
        self.sample_words(n, quoted.invented, rng)
    }

    fn sample_words(&self, n: usize, invented: f64, rng: &mut ChaCha8Rng) -> Option<String> {
        let mut words = Vec::with_capacity(n);
        for _ in 0..n {
            words.push(if is_chosen(invented, rng) {
                self.invented_word(rng)?
            } else {
                self.0.choose(rng)?.clone()
            });
        }
        Some(words.join(" "))
    }

    /// Invents a word; `None` if the vocabulary is empty.
    fn invented_word(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        let (kind, _) = INVENTED_KINDS.choose_weighted(rng, |(_, weight)| *weight).ok()?;
        Some(match kind {
            InventedKind::PartsOfWords => {
                let mut word = String::new();
                for _ in 0..rng.random_range(1..=2) {
                    let letters: Vec<char> = self.0.choose(rng)?.chars().collect();
                    word.extend(letters.iter().take(letters.len().div_ceil(2)));
                }
                let letters: Vec<char> = self.0.choose(rng)?.chars().collect();
                word.extend(letters.iter().skip(letters.len() / 2));
                word
            }
            InventedKind::Letters => {
                let length = rng.random_range(1..=9);
                (0..length).map(|_| rng.random_range('a'..='z')).collect()
            }
            InventedKind::Number => {
                let number = rng.random_range(0..10_000);
                if rng.random_bool(0.5) {
                    format!("{number}")
                } else {
                    format!("{}.{}", number / 100, number % 100)
                }
            }
            InventedKind::Compound => {
                let word = self.0.choose(rng)?;
                if rng.random_bool(0.5) {
                    format!("({word})")
                } else {
                    format!("{word}-{}", self.0.choose(rng)?)
                }
            }
            InventedKind::OtherScript => in_other_script(1, rng).to_lowercase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::data::phantoms::text::response_writer::{claim_range, finding_range};

    #[test]
    fn claims_quote_responses_and_agree_with_equal_findings() {
        let quoting = QuotingExamples::new(
            ["Left kidney, T2".to_owned(), "the left lung".to_owned()].into_iter(),
        );
        assert_eq!(quoting.0, ["kidney", "left", "lung", "t2", "the"]);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let quoted = QuotedWords { max_claim: 4, invented: 0.0 };
        let (mut agreeing, mut differing) = (0, 0);
        for _ in 0..40 {
            let pair = quoting.pair("Why?".to_owned(), quoted, &mut rng).unwrap();
            for (i, response) in pair.responses.iter().enumerate() {
                let rating = response.factual_rating().unwrap();
                let text = response.text.to_lowercase();
                let analysis = &rating.analysis;
                let [finding, claim] = [finding_range, claim_range]
                    .map(|range| analysis[range(analysis).unwrap()].trim_start());
                assert_eq!(claim, text, "{analysis}");
                let agrees = finding == text;
                assert_eq!(rating.score == 5, agrees, "{}", rating.analysis);
                assert_eq!(rating.trains_finding, i == 1);
                *(if agrees { &mut agreeing } else { &mut differing }) += 1;
            }
        }
        assert!(agreeing > 20 && differing > 20, "{agreeing} {differing}");
    }

    #[test]
    fn invented_words_are_of_all_kinds() {
        let quoting = QuotingExamples::new(["Kidney, lung".to_owned()].into_iter());
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let words: Vec<String> =
            (0..400).map(|_| quoting.invented_word(&mut rng).unwrap()).collect();
        for expected in ["kidng", "luney", "lukidney", "kidkidng", "(lung)", "lung-kidney"] {
            assert!(words.iter().any(|word| word == expected), "{expected}: {words:?}");
        }
        let numbers = words.iter().filter(|word| word.parse::<f64>().is_ok()).count();
        let other_scripts = words.iter().filter(|word| !word.is_ascii()).count();
        assert!((20..70).contains(&numbers), "{numbers}");
        assert!((60..140).contains(&other_scripts), "{other_scripts}");
        assert!(words.iter().all(|word| !word.is_empty() && !word.contains(' ')), "{words:?}");

        let quoted = QuotedWords { max_claim: 9, invented: 1.0 };
        let lengths: Vec<usize> = (0..100)
            .map(|_| quoting.claim_words(quoted, &mut rng).unwrap().split(' ').count())
            .collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&1), Some(&9)));
        assert_eq!(QuotingExamples(Vec::new()).claim_words(quoted, &mut rng), None);
    }
}
