//! Changes to a pair before it is judged again.
//!
//! [`Perturbation`] lists them; the module [`perturbation`] defines the probe, control, title and
//! edit of each.

mod image_perturbation;
mod medical_errors;
mod perturbation;
mod planted;
mod reference_perturbation;
mod response_perturbation;
mod word_sequence;

pub use image_perturbation::ImagePerturbation;
pub(crate) use medical_errors::insert_error;
pub(crate) use perturbation::Edit;
pub use perturbation::Perturbation;
pub use planted::PlantedKind;
pub(crate) use planted::{PairSeed, PlantedAddition};
pub use reference_perturbation::ReferencePerturbation;
pub(crate) use response_perturbation::{append_sentence, with_neutral_clause};
