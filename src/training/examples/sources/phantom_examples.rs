//! Examples from phantoms: attributes, answers and evaluations.

use acem3_experts::train::AttributeExample;
use acem3_vision::ImageProcessor;
use anyhow::Result;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::pixels::preprocess_phantom;
use crate::data::phantoms::{draw, generate_scene, training_phantom, training_responses};
use crate::training::examples::example::{
    AnswerExample, PairExample, QuestionWithAnswer, ResponseExample,
};

/// Maximum number of questions about an image in one sequence.
const MAX_QUESTIONS: usize = 8;

/// Generates an image with its five attributes and the lesion map of its `grid·grid` patches.
pub(crate) fn attribute_example(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    grid: usize,
) -> Result<AttributeExample> {
    let scene = generate_scene(seed, index);
    let classes = scene.attributes().class_indices().into_iter().map(Some).collect();
    Ok(AttributeExample {
        pixels: preprocess_phantom(&draw(&scene), processor)?,
        classes,
        patch_classes: scene.lesion_map(grid),
    })
}

/// Generates an image with questions and correct answers.
pub(crate) fn answer_example(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    rng: &mut ChaCha8Rng,
) -> Result<AnswerExample> {
    let scene = generate_scene(seed, index);
    let mut questions: Vec<QuestionWithAnswer> = scene
        .all_questions()
        .into_iter()
        .map(|(question, answer)| QuestionWithAnswer { question: question.text, answer })
        .collect();
    questions.shuffle(rng);
    questions.truncate(MAX_QUESTIONS);
    Ok(AnswerExample { pixels: preprocess_phantom(&draw(&scene), processor)?, questions })
}

/// Generates a pair with the correct evaluation of each response. The presentation order is
/// random.
pub(crate) fn pair_example(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    rng: &mut ChaCha8Rng,
) -> Result<PairExample> {
    let phantom = training_phantom(seed, index);
    let mut responses = phantom.responses.map(Into::into);
    if rng.random_bool(0.5) {
        responses.reverse();
    }
    Ok(PairExample {
        pixels: Some(preprocess_phantom(&phantom.image, processor)?),
        question: phantom.question.text,
        responses,
    })
}

/// Generates the responses of the phantoms `indices` with correct evaluations, without images.
pub(crate) fn response_examples(
    seed: u64,
    indices: std::ops::Range<u64>,
) -> impl Iterator<Item = ResponseExample> {
    indices.flat_map(move |index| training_responses(seed, index).map(Into::into))
}
