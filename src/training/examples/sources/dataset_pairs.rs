//! Pairs of responses to a question of a data set, with correct evaluations.

use acem3_experts::Criterion;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::data::dataset_rows::{DatasetItem, ModelPair};
use crate::data::phantoms::text::response_writer;
use crate::data::phantoms::{Claim, Defect};
use crate::training::config::data_shares::DataShares;
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::examples::example::{PairExample, ResponseExample};
use crate::training::examples::proportion::is_chosen;
use crate::training::examples::sources::dataset_examples::{DatasetExamples, MAX_WORDS, PATH_VQA};
use crate::training::examples::sources::dataset_responses::{
    claim, corrupt_finding, lower_perfect_tone, sample_defects,
};
use crate::training::examples::sources::long_answers::{ImageFact, LongAnswers};
use crate::training::examples::sources::unrelated_answers::unrelated_answer;

/// Proportion of pairs with the responses of two models.
const MODEL_RESPONSES_RATE: f64 = 0.1;
/// Probability that both responses are equal, either correct or wrong.
const EQUAL_RESPONSES_RATE: f64 = 0.15;
/// Probability that both responses are sampled from the wrong answers. Most of these pairs have two different ones.
const BOTH_WRONG_RATE: f64 = 0.1;
/// Probability that a response of a pair with long answers is long. Otherwise it is the bare answer.
const LONG_RATE: f64 = 0.8;
/// Proportion of long answers that state nothing.
const REFUSAL_RATE: f64 = 0.06;
/// Proportion of long answers that contradict themselves.
const CONTRADICTION_RATE: f64 = 0.05;

/// Proportions of kinds of pairs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairMixture {
    /// Proportion of factual analyses with a wrong finding.
    pub(crate) wrong_findings: f64,
    /// Proportion of pairs with long answers.
    pub(crate) long_answers: f64,
    /// Proportion of wrong answers that have nothing to do with the question.
    pub(crate) unrelated_answers: f64,
    /// Proportion of wrong answers that answer any question of the same type.
    pub(crate) other_answers: f64,
}

/// An answer and whether it is the right one.
#[derive(Clone, Debug)]
struct Answer {
    text: String,
    is_correct: bool,
}

impl PairMixture {
    /// Returns the mixture of a stage.
    pub(crate) fn of_stage(stage: &StageConfig) -> Self {
        Self {
            wrong_findings: stage.wrong_finding_proportion,
            long_answers: stage.long_answer_proportion,
            unrelated_answers: stage.unrelated_answer_proportion,
            other_answers: stage.other_answer_proportion,
        }
    }
}

impl DatasetExamples {
    /// Samples a pair with correct evaluations: two answers as in [`Self::answers`], or the responses of two
    /// models.
    pub(crate) fn pair(
        &self,
        mixture: PairMixture,
        shares: &DataShares,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        if rng.random_bool(MODEL_RESPONSES_RATE)
            && self.weight_of(PATH_VQA, shares) > 0.0
            && let Some(pair) = self.model_pairs.choose(rng)
        {
            return self.model_pair(pair, mixture.wrong_findings, rng);
        }
        let item = self.sample_item(shares, rng)?;
        self.item_pair(item, &item.image_key, mixture, rng)
    }

    /// Samples a pair without a right answer. Its question begins like one question of a data set and ends
    /// like another, and its image belongs to a third. The answers and their evaluations are those of the
    /// first question.
    pub(crate) fn unanswerable_pair(
        &self,
        mixture: PairMixture,
        shares: &DataShares,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let item = self.sample_item(shares, rng)?;
        let end = self.other_item(item, rng)?;
        let image = &self.other_item(item, rng)?.image_key;
        let mut pair = self.item_pair(item, image, mixture, rng)?;
        pair.question = spliced_question(&item.question, &end.question);
        Some(pair)
    }

    /// Returns a pair of [`Self::answers`] with correct evaluations. `image`: key of the image that the panel
    /// sees.
    fn item_pair(
        &self,
        item: &DatasetItem,
        image: &str,
        mixture: PairMixture,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let answers = self.answers(item, mixture, rng)?;
        let has_right_answer = answers.iter().any(|answer| answer.is_correct);
        let is_long = is_chosen(mixture.long_answers, rng);
        let is_bare = rng.random_bool(0.5);
        let responses = answers.map(|answer| {
            let Answer { text, is_correct } = &answer;
            let claim = claim(text, &item.answer, *is_correct, rng);
            let mut response = if is_long && rng.random_bool(LONG_RATE) {
                self.long_response(item, &answer, &claim, rng)
            } else {
                let is_bare = is_bare || is_long;
                let defects = if is_bare { vec![Defect::Bare] } else { sample_defects(rng) };
                response_writer::write(&claim, &defects, rng).into()
            };
            if let Some(other) = self
                .distractors
                .sample(item, rng)
                .filter(|_| rng.random_bool(mixture.wrong_findings))
            {
                corrupt_finding(&mut response, &claim.short, &other.to_lowercase());
            }
            // The panel must compare with such a finding, but not learn to state it.
            if !has_right_answer
                && let Some(rating) = response.rating_mut(Criterion::FACTUAL_ACCURACY)
            {
                rating.trains_finding = false;
            }
            response
        });
        Some(PairExample {
            image: Some(self.images.augmented(image, rng)?),
            question: item.question.clone(),
            responses,
        })
    }

    /// Samples the answers of a pair: the right one and a wrong one, one of them twice, or two wrong ones.
    fn answers(
        &self,
        item: &DatasetItem,
        mixture: PairMixture,
        rng: &mut ChaCha8Rng,
    ) -> Option<[Answer; 2]> {
        let wrong = self.wrong_answer(item, mixture, rng)?;
        let first = if rng.random_bool(BOTH_WRONG_RATE) {
            self.wrong_answer(item, mixture, rng)?
        } else {
            Answer { text: item.answer.clone(), is_correct: true }
        };
        let mut answers = [first, wrong];
        if rng.random_bool(EQUAL_RESPONSES_RATE) {
            let answer = answers[usize::from(rng.random_bool(0.5))].clone();
            answers = [answer.clone(), answer];
        }
        if rng.random_bool(0.5) {
            answers.reverse();
        }
        Some(answers)
    }

    /// Samples a wrong answer.
    fn wrong_answer(
        &self,
        item: &DatasetItem,
        mixture: PairMixture,
        rng: &mut ChaCha8Rng,
    ) -> Option<Answer> {
        let mut text = self.distractors.sample(item, rng)?;
        if is_chosen(mixture.unrelated_answers, rng) {
            text = unrelated_answer(rng);
        } else if is_chosen(mixture.other_answers, rng)
            && let Some(other) = self.distractors.sample_of_type(item, rng)
        {
            text = other;
        }
        Some(Answer { text, is_correct: false })
    }

    /// Writes a long response. A few state nothing, or contradict themselves.
    fn long_response(
        &self,
        item: &DatasetItem,
        answer: &Answer,
        claim: &Claim,
        rng: &mut ChaCha8Rng,
    ) -> ResponseExample {
        let facts = self.other_questions(item);
        let answered = |answer| ImageFact { question: &item.question, answer };
        let (mut claim, mut defects) = (claim.clone(), Vec::new());
        let text = if rng.random_bool(REFUSAL_RATE) {
            defects.push(Defect::Evasive);
            LongAnswers::refusal(rng)
        } else if rng.random_bool(CONTRADICTION_RATE)
            && let Some(other) = self.contradicting_answer(item, answer, rng)
        {
            claim.short = format!("{} but also {}", claim.short, other.to_lowercase());
            // One of both claims is right.
            (claim.concerns_answered, claim.right_answers) = (2, 1);
            let answers = [&answer.text, &other].map(|answer| answered(answer));
            self.long_answers.contradiction(answers, &facts, rng)
        } else {
            self.long_answers.answer(answered(&answer.text), &facts, rng)
        };
        let mut response = response_writer::write(&claim, &defects, rng).into();
        replace_text(&mut response, &text);
        response
    }

    /// Returns another answer, so that one of both is right.
    fn contradicting_answer(
        &self,
        item: &DatasetItem,
        answer: &Answer,
        rng: &mut ChaCha8Rng,
    ) -> Option<String> {
        if answer.is_correct {
            return self.distractors.sample(item, rng);
        }
        Some(item.answer.clone())
    }

    /// Builds a pair from the responses of two models.
    fn model_pair(
        &self,
        pair: &ModelPair,
        wrong_findings: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<PairExample> {
        let reference = pair.reference.to_lowercase();
        let opposite = if reference.starts_with("yes") { "no" } else { "yes" };
        let mut responses = [0, 1].map(|i| {
            let is_correct = i == pair.better;
            let answer = if is_correct { reference.as_str() } else { opposite };
            let text = &pair.responses[i].text;
            let is_bare = text.split_whitespace().count() < 3;
            let defects = if is_bare { vec![Defect::Bare] } else { Vec::new() };
            let claim = Claim::with_one_concern(text, answer, &reference, is_correct);
            let mut response: ResponseExample =
                response_writer::write(&claim, &defects, rng).into();
            replace_text(&mut response, text);
            if rng.random_bool(wrong_findings) {
                corrupt_finding(&mut response, answer, opposite);
            }
            response
        });
        if rng.random_bool(0.5) {
            responses.reverse();
        }
        Some(PairExample {
            image: Some(self.images.augmented(&pair.image_key, rng)?),
            question: pair.question.clone(),
            responses,
        })
    }
}

/// Joins the first half of a question, by words, with the second half of another.
fn spliced_question(first: &str, second: &str) -> String {
    let [first, second] = [first, second].map(|text| text.split_whitespace().collect::<Vec<_>>());
    let begin = first.iter().take(first.len().div_ceil(2));
    let words: Vec<&str> = begin.chain(second.iter().skip(second.len() / 2)).copied().collect();
    words.join(" ")
}

/// Gives a response a text like those of models. They lack the friendly closing words that a perfect
/// score of tone requires.
fn replace_text(response: &mut ResponseExample, text: &str) {
    let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
    response.text = words.join(" ");
    lower_perfect_tone(response);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spliced_questions_have_the_beginning_of_one_and_the_end_of_another() {
        let splice = |first, second| spliced_question(first, second);
        assert_eq!(
            splice("Is there a mass?", "Where is the largest organ?"),
            "Is there the largest organ?"
        );
        assert_eq!(splice("Why?", "What plane?"), "Why? plane?");
        assert_eq!(splice("", "Why?"), "Why?");
    }
}
