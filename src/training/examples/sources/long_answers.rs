//! Long answers around a known claim, as multimodal models write them: an opening, the claim as a
//! sentence, and sentences about other things in the image or in other images.
//!
//! The length, the opening and the other sentences do not depend on whether the claim is right.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::support::text::letters::{capitalize, lower_first_letter};
use crate::training::examples::sources::statement::statement;

/// Maximum number of sentences besides the claim.
const MAX_OTHER_SENTENCES: usize = 3;
/// Maximum number of words of a sentence from the responses of models.
const MAX_SENTENCE_WORDS: usize = 24;

/// Phrases before a claim.
const OPENINGS: &[&str] = &[
    "Based on the image,",
    "In this image,",
    "From the image,",
    "It appears that",
    "It seems that",
    "The findings suggest that",
    "Looking at the image,",
    "In my view,",
];
/// Sentences that models write about any image.
const REMARKS: &[&str] = &[
    "This may help the doctor to understand the condition of the patient.",
    "The clinical history of the patient should be considered as well.",
    "Further examinations may be necessary.",
    "The image gives a detailed view of the structures.",
    "It is important to consult a healthcare professional.",
    "A radiologist should confirm this.",
];
/// Answers that state nothing.
const REFUSALS: &[&str] = &[
    "I'm sorry, but I cannot determine this from the image alone.",
    "As an AI model, I am not able to interpret medical images.",
    "The image does not provide enough information to answer this question.",
    "It is difficult to say without more context.",
    "I cannot provide a medical opinion on this image.",
];
/// Words before a second claim that contradicts the first.
const TURNS: &[&str] = &["However,", "On the other hand,", "At the same time,", "But"];

/// A question about the image with the answer that a text gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageFact<'a> {
    /// The question.
    pub(crate) question: &'a str,
    /// The answer in a few words.
    pub(crate) answer: &'a str,
}

impl ImageFact<'_> {
    fn statement(&self, rng: &mut ChaCha8Rng) -> String {
        statement(self.question, self.answer, rng)
    }
}

/// Writes long answers.
pub(crate) struct LongAnswers {
    /// Sentences from responses of models, without the first of each response, which has the claim.
    sentences: Vec<String>,
}

impl LongAnswers {
    /// Takes sentences from responses of models.
    pub(crate) fn new<'a>(responses: impl Iterator<Item = &'a str>) -> Self {
        let sentences = responses.flat_map(|text| text.split_inclusive(". ").skip(1));
        let sentences = sentences.map(str::trim).filter(|sentence| {
            sentence.ends_with('.') && sentence.split(' ').count() <= MAX_SENTENCE_WORDS
        });
        let mut sentences: Vec<String> = sentences.map(str::to_owned).collect();
        sentences.sort();
        sentences.dedup();
        Self { sentences }
    }

    /// Writes a text that answers a question. `facts`: other questions about the image.
    pub(crate) fn answer(
        &self,
        answered: ImageFact,
        facts: &[ImageFact],
        rng: &mut ChaCha8Rng,
    ) -> String {
        let claim = open(answered.statement(rng), rng);
        self.surround(claim, facts, rng)
    }

    /// Writes a text with two contradicting answers.
    pub(crate) fn contradiction(
        &self,
        answers: [ImageFact; 2],
        facts: &[ImageFact],
        rng: &mut ChaCha8Rng,
    ) -> String {
        let [first, second] = answers.map(|answered| answered.statement(rng));
        let turn = TURNS.choose(rng).copied().unwrap_or("But");
        let claim = format!("{} {turn} {}", open(first, rng), lower_first_letter(&second));
        self.surround(claim, facts, rng)
    }

    /// Writes a text that states nothing.
    pub(crate) fn refusal(rng: &mut ChaCha8Rng) -> String {
        let refusal = REFUSALS.choose(rng).copied().unwrap_or_default().to_owned();
        match REMARKS.choose(rng).filter(|_| rng.random_bool(0.4)) {
            Some(remark) => format!("{refusal} {remark}"),
            None => refusal,
        }
    }

    /// Adds sentences around a claim.
    fn surround(&self, claim: String, facts: &[ImageFact], rng: &mut ChaCha8Rng) -> String {
        let count = rng.random_range(0..=MAX_OTHER_SENTENCES);
        let mut sentences: Vec<String> =
            (0..count).filter_map(|_| self.other_sentence(facts, rng)).collect();
        // Models mostly begin with the claim.
        let place = if rng.random_bool(0.75) { 0 } else { sentences.len().min(1) };
        sentences.insert(place, claim);
        sentences.join(" ")
    }

    fn other_sentence(&self, facts: &[ImageFact], rng: &mut ChaCha8Rng) -> Option<String> {
        match rng.random_range(0..5) {
            0 | 1 => facts.choose(rng).map(|fact| fact.statement(rng)),
            2 | 3 => self.sentences.choose(rng).cloned(),
            _ => REMARKS.choose(rng).map(|remark| (*remark).to_owned()),
        }
    }
}

/// Puts an opening before some claims.
fn open(claim: String, rng: &mut ChaCha8Rng) -> String {
    match OPENINGS.choose(rng).filter(|_| rng.random_bool(0.35)) {
        // "Yes" and "No" begin a sentence.
        Some(opening) if !claim.starts_with("Yes") && !claim.starts_with("No,") => {
            capitalize(&format!("{opening} {}", lower_first_letter(&claim)))
        }
        _ => claim,
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn texts_contain_their_claims() {
        let responses = ["The image shows a cell. It is round. It is very", "Yes. No."];
        let long = LongAnswers::new(responses.into_iter());
        assert_eq!(long.sentences, ["It is round.", "No."]);
        let facts = [ImageFact { question: "What is the organ?", answer: "Liver" }];
        let answered = ImageFact { question: "Where is the lesion?", answer: "On the left" };
        let other = ImageFact { answer: "On the right", ..answered };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut lengths = Vec::new();
        for _ in 0..100 {
            let text = long.answer(answered, &facts, &mut rng);
            assert!(text.to_lowercase().contains("on the left"), "{text}");
            assert!(text.starts_with(char::is_uppercase) && text.ends_with('.'), "{text}");
            lengths.push(text.split(' ').count());
            let text = long.contradiction([answered, other], &facts, &mut rng).to_lowercase();
            assert!(text.contains("on the left") && text.contains("on the right"), "{text}");
            let text = LongAnswers::refusal(&mut rng).to_lowercase();
            assert!(!text.contains("left") && !text.contains("liver"), "{text}");
        }
        assert!(lengths.iter().any(|n| *n < 8) && lengths.iter().any(|n| *n > 20), "{lengths:?}");
    }
}
