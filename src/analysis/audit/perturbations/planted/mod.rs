//! Texts that an author could add to a response to raise its score, and neutral texts of the same
//! length.
//!
//! [`PlantedText::generate`] draws a text from the seed of the audit and the index of the pair:
//! each kind has several templates, and junk is random. So a judge cannot pass because it resists
//! one fixed text.

mod control_phrases;
mod forged_headings;
mod forged_record;
mod junk;
mod kind;
mod neutral;
mod planted_text;
mod text_variant;

pub use kind::PlantedKind;
pub(crate) use planted_text::{PairSeed, PlantedAddition, PlantedText};
