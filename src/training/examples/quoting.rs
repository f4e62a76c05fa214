//! Quoting and comparing, without a picture: what is claimed is some words of the response, and
//! whether a finding agrees with it can be read.
//!
//! In the evaluations of phantoms a claim is one of few, so that it is learned sooner to guess it than
//! to copy it. Words drawn at random can only be copied.

use acem3_experts::Criterion;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::{Claim, Defect, response_writer};
use crate::training::examples::example::{PairExample, ResponseExample};

/// Most words of a claim.
const WORDS: usize = 4;

/// The words that claims are made of.
pub(crate) struct QuotingExamples(Vec<String>);

impl QuotingExamples {
    /// The distinct words of some texts.
    pub(crate) fn new(texts: impl Iterator<Item = String>) -> Self {
        let mut words: Vec<String> = texts
            .flat_map(|text| {
                let words = text
                    .split(|c: char| !c.is_alphanumeric())
                    .map(str::to_lowercase);
                words.collect::<Vec<_>>()
            })
            .filter(|word| !word.is_empty())
            .collect();
        words.sort();
        words.dedup();
        Self(words)
    }

    /// A question and two responses of random words. What the image shows is one response's claim or
    /// a third; of the first response it is given, of the second it is the same again.
    pub(crate) fn pair(&self, question: String, rng: &mut ChaCha8Rng) -> Option<PairExample> {
        let claims = [self.words(rng)?, self.words(rng)?];
        let claims = if rng.random_bool(0.15) {
            [claims[0].clone(), claims[0].clone()]
        } else {
            claims
        };
        let shown = match rng.random_range(0..5) {
            0 | 1 => claims[0].clone(),
            2 | 3 => claims[1].clone(),
            _ => self.words(rng)?,
        };
        let mut responses = claims.map(|claimed| -> ResponseExample {
            let claim = Claim::single(&claimed, &claimed, &shown, claimed == shown);
            response_writer::write(&claim, &[Defect::Bare], rng).into()
        });
        let given = responses[0].ratings.iter_mut();
        for rating in given.filter(|r| r.criterion == Some(Criterion::FactualAccuracy)) {
            rating.learned = false;
        }
        Some(PairExample {
            pixels: None,
            question,
            responses,
        })
    }

    fn words(&self, rng: &mut ChaCha8Rng) -> Option<String> {
        let n = rng.random_range(1..=WORDS);
        let words: Option<Vec<&str>> = (0..n)
            .map(|_| self.0.choose(rng).map(String::as_str))
            .collect();
        Some(words?.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn claims_are_what_is_said_and_agree_where_they_are_the_same() {
        let drills = QuotingExamples::new(
            ["Left kidney, T2".to_owned(), "the left lung".to_owned()].into_iter(),
        );
        assert_eq!(drills.0, ["kidney", "left", "lung", "t2", "the"]);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut agreed, mut differed) = (0, 0);
        for _ in 0..40 {
            let pair = drills.pair("Why?".to_owned(), &mut rng).unwrap();
            for (i, response) in pair.responses.iter().enumerate() {
                let rating = response.finding().unwrap();
                let said = response.text.to_lowercase();
                let rest = rating
                    .analysis
                    .strip_prefix(&format!("Claims {said}"))
                    .unwrap();
                let same =
                    rest.starts_with(&format!("{} {said}: they agree", response_writer::SHOWN));
                assert_eq!(rating.score == 5, same, "{}", rating.analysis);
                assert_eq!(rating.learned, i == 1);
                *(if same { &mut agreed } else { &mut differed }) += 1;
            }
        }
        assert!(agreed > 20 && differed > 20, "{agreed} {differed}");
    }
}
