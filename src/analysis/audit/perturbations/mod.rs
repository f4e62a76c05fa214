//! Changes to a pair before it is judged again.
//!
//! [`Perturbation`] names them; each has a row in the table of [`perturbation`] with its probe, its
//! control, its title and its edit.

mod image_perturbation;
mod medical_errors;
mod perturbation;
mod response_perturbation;
mod word_sequence;

pub use image_perturbation::ImagePerturbation;
pub(crate) use medical_errors::insert_error;
pub(crate) use perturbation::Edit;
pub use perturbation::Perturbation;
pub(crate) use response_perturbation::{append, with_neutral_clause};
