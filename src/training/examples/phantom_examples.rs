//! What phantoms teach: attributes, answers and evaluations.

use acem3_experts::train::Observation;
use acem3_vision::ImageProcessor;
use anyhow::Result;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::pixels::drawn;
use crate::data::phantoms::{draw, practice, practice_responses, scene};
use crate::training::examples::example::{PairExample, Pixels, ResponseExample};

/// Questions asked about one image in one sequence.
const QUESTIONS: usize = 8;

/// An image with its five attributes, and its lesions in a grid of `grid·grid` patches.
pub(crate) fn observation(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    grid: usize,
) -> Result<Observation> {
    let scene = scene(seed, index);
    let classes = scene.attributes().classes().into_iter().map(Some).collect();
    Ok(Observation {
        pixels: drawn(&draw(&scene), processor)?,
        classes,
        marks: scene.marks(grid),
    })
}

/// An image with questions and right answers.
pub(crate) fn answers(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    rng: &mut ChaCha8Rng,
) -> Result<(Pixels, Vec<(String, String)>)> {
    let scene = scene(seed, index);
    let mut facts: Vec<(String, String)> = scene
        .facts()
        .into_iter()
        .map(|(question, answer)| (question.text, answer))
        .collect();
    facts.shuffle(rng);
    facts.truncate(QUESTIONS);
    Ok((drawn(&draw(&scene), processor)?, facts))
}

/// A judged pair, in either order.
pub(crate) fn pair(
    seed: u64,
    index: u64,
    processor: &ImageProcessor,
    rng: &mut ChaCha8Rng,
) -> Result<PairExample> {
    let phantom = practice(seed, index);
    let mut responses = phantom.responses.map(Into::into);
    if rng.random_bool(0.5) {
        responses.reverse();
    }
    Ok(PairExample {
        pixels: Some(drawn(&phantom.image, processor)?),
        question: phantom.question.text,
        responses,
    })
}

/// The responses of some cases with their evaluations, without images.
pub(crate) fn responses(
    seed: u64,
    indices: std::ops::Range<u64>,
) -> impl Iterator<Item = ResponseExample> {
    indices.flat_map(move |index| practice_responses(seed, index).map(Into::into))
}
