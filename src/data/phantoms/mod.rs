//! Phantoms: synthetic medical-like images with known lesions, questions about them, answers of
//! known quality, and the exact evaluation a perfect judge would write.
//!
//! They are training data, a demo, and a test of *any* judge: since the right verdict is known by
//! rule, a judge that does not look at the image is found out. Everything is a pure function of
//! a seed and an index, with the same bytes on every platform.

pub(crate) mod body_frame;
pub mod case_folder;
mod claim;
pub mod defect_table;
mod draw;
mod fact;
pub mod lesion;
mod lesion_layout;
mod question;
mod random_choice;
mod response;
pub mod response_writer;
pub mod rules;
mod scene;
mod scene_facts;

pub use crate::data::phantoms::response_writer::{ExactRating, WrittenResponse};
pub use claim::Claim;
pub use draw::draw;
pub use fact::{Concern, Fact};
pub use lesion::{Lesion, LesionSide, LesionSize, LesionTone, PhantomKind};
pub use question::{Question, QuestionKind};
pub use rules::Defect;
pub use scene::{Attributes, SIDE, Scene, scene};

use image::RgbImage;
use rand_chacha::ChaCha8Rng;
use response::FactMix;

/// One synthetic case whose right verdict is known.
#[derive(Clone, Debug)]
pub struct Phantom {
    /// What is true of the image.
    pub scene: Scene,
    /// The question asked.
    pub question: Question,
    /// The image, 128×128.
    pub image: RgbImage,
    /// Two answers with their evaluations.
    pub responses: [WrittenResponse; 2],
    /// The right answer, as a sentence.
    pub reference: String,
}

/// Phantom `index` of a seed: a pure function of the two.
pub fn phantom(seed: u64, index: u64) -> Phantom {
    with_mix(seed, index, FactMix::MEASURED)
}

/// A phantom to learn from: like [`phantom`], but one response being right tells less about the
/// other.
pub fn practice(seed: u64, index: u64) -> Phantom {
    with_mix(seed, index, FactMix::TAUGHT)
}

/// The responses of [`practice`], without drawing the image.
pub fn practice_responses(seed: u64, index: u64) -> [WrittenResponse; 2] {
    let scene = scene(seed, index);
    words(&scene, (seed, index), FactMix::TAUGHT).1
}

fn with_mix(seed: u64, index: u64, mix: FactMix) -> Phantom {
    let scene = scene(seed, index);
    let (question, responses, mut rng) = words(&scene, (seed, index), mix);
    let truth = question.truth(&scene);
    let reference = claim::sentence(&question, &truth, scene.count() > 1, &mut rng);
    let image = draw(&scene);
    Phantom {
        scene,
        question,
        image,
        responses,
        reference,
    }
}

/// Question and responses, with the dice as they lie after them.
fn words(
    scene: &Scene,
    (seed, index): (u64, u64),
    mix: FactMix,
) -> (Question, [WrittenResponse; 2], ChaCha8Rng) {
    let mut rng = crate::data::phantoms::random_choice::dice(
        seed,
        index,
        u64::from_le_bytes(*b"words\0\0\0"),
    );
    let question = Question::any(scene, &mut rng);
    let responses = response::pair(scene, &question, mix, &mut rng);
    (question, responses, rng)
}
