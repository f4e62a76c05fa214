//! Examples from phantoms: attributes, answers and evaluations.

use acem3_experts::train::AttributeExample;
use anyhow::Result;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::pixels::{ImagePreparation, decode_phantom};
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
    images: &ImagePreparation,
    grid: usize,
) -> Result<AttributeExample> {
    let scene = generate_scene(seed, index);
    let classes = scene.attributes().class_indices().into_iter().map(Some).collect();
    Ok(AttributeExample {
        pixels: images.prepare_whole(&decode_phantom(&draw(&scene))?)?,
        classes,
        patch_classes: scene.lesion_map(grid),
    })
}

/// Generates an image with questions and correct answers.
pub(crate) fn answer_example(
    seed: u64,
    index: u64,
    images: &ImagePreparation,
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
    Ok(AnswerExample { image: images.prepare_phantom(&draw(&scene))?, questions })
}

/// Generates a pair with the correct evaluation of each response. The presentation order is
/// random.
pub(crate) fn pair_example(
    seed: u64,
    index: u64,
    images: &ImagePreparation,
    rng: &mut ChaCha8Rng,
) -> Result<PairExample> {
    let phantom = training_phantom(seed, index);
    let mut responses = phantom.responses.map(Into::into);
    if rng.random_bool(0.5) {
        responses.reverse();
    }
    Ok(PairExample {
        image: Some(images.prepare_phantom(&phantom.image)?),
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
