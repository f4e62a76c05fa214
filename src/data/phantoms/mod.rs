//! Phantoms: synthetic medical images with known lesions, a question, two responses of known
//! quality, and the exact evaluation of each response.
//!
//! Phantoms serve as training data, as a demo and as a test of any judge. Rules define the right
//! verdict, so errors of a judge that ignores the image are visible. A phantom is a pure function
//! of a seed and an index, with equal bytes on every platform.

pub mod case_folder;
mod draw;
mod random_choice;
mod scene;
pub mod text;

pub use crate::data::phantoms::scene::lesion::{
    Lesion, LesionSide, LesionSize, LesionTone, PhantomKind,
};
pub use crate::data::phantoms::text::claim::Claim;
pub use crate::data::phantoms::text::fact::{Concern, Fact};
pub use crate::data::phantoms::text::question::{Question, QuestionKind};
pub use crate::data::phantoms::text::response_writer::{ExactRating, WrittenResponse};
pub use crate::data::phantoms::text::rules::Defect;
pub use draw::draw;
pub use scene::{Attributes, SIDE, Scene, generate_scene};

use std::io::Cursor;
use std::path::Path;

use anyhow::{Context as _, Result};
use image::{ImageFormat, RgbImage};
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::text::response::FactMix;
use crate::support::files::atomic_file::write_atomic;

/// A synthetic case with a known right verdict.
#[derive(Clone, Debug)]
pub struct Phantom {
    /// Content of the image.
    pub scene: Scene,
    /// Question.
    pub question: Question,
    /// Image, 128×128 pixels.
    pub image: RgbImage,
    /// Two responses with their evaluations.
    pub responses: [WrittenResponse; 2],
    /// Reference answer, as a sentence.
    pub reference: String,
}

impl Phantom {
    /// Writes the image as a PNG file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn write_image(&self, path: &Path) -> Result<()> {
        let mut bytes = Cursor::new(Vec::new());
        let context = || format!("cannot write {}", path.display());
        self.image.write_to(&mut bytes, ImageFormat::Png).with_context(context)?;
        write_atomic(path, bytes.get_ref())
    }
}

/// Generates phantom `index` of a seed, for measurement.
pub fn generate_phantom(seed: u64, index: u64) -> Phantom {
    generate_with_mix(seed, index, FactMix::MEASUREMENT)
}

/// Generates phantom `index` of a seed, for training. In contrast to [`generate_phantom`], the
/// correctness of one response reveals less about that of the other.
pub fn training_phantom(seed: u64, index: u64) -> Phantom {
    generate_with_mix(seed, index, FactMix::TRAINING)
}

/// Generates the responses of [`training_phantom`] without drawing the image.
pub fn training_responses(seed: u64, index: u64) -> [WrittenResponse; 2] {
    let scene = generate_scene(seed, index);
    question_and_responses(&scene, (seed, index), FactMix::TRAINING).1
}

fn generate_with_mix(seed: u64, index: u64, mix: FactMix) -> Phantom {
    let scene = generate_scene(seed, index);
    let (question, responses, mut rng) = question_and_responses(&scene, (seed, index), mix);
    let truth = question.correct_facts(&scene);
    let reference = crate::data::phantoms::text::claim::write_sentence(
        &question,
        &truth,
        scene.lesion_count() > 1,
        &mut rng,
    );
    let image = draw(&scene);
    Phantom { scene, question, image, responses, reference }
}

/// Returns the question, the responses, and the random generator that continues after them.
fn question_and_responses(
    scene: &Scene,
    (seed, index): (u64, u64),
    mix: FactMix,
) -> (Question, [WrittenResponse; 2], ChaCha8Rng) {
    let mut rng = crate::data::phantoms::random_choice::stream_rng(
        seed,
        index,
        u64::from_le_bytes(*b"words\0\0\0"),
    );
    let question = Question::sample_applicable(scene, &mut rng);
    let responses =
        crate::data::phantoms::text::response::response_pair(scene, &question, mix, &mut rng);
    (question, responses, rng)
}
