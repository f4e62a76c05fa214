//! Comparing vision encoders: what can be read off their features, and what a panel that looks
//! through them is worth, each with the same budget.
//!
//! Two measures: a cheap one, [`probe`], fits a linear classifier on frozen features; the other,
//! [`judged`], trains a projector for each encoder under the embedded panel's decoder and judges held-out
//! cases. Rows are compared with the first one, pair by pair.

pub mod candidate;
mod classifier;
mod encoder_comparison;
mod features;
mod labelled_images;
pub mod linear_probe;
pub mod panel_comparison;
pub mod peak_memory;

pub use crate::training::encoders::encoder_comparison::{
    EncoderComparison, EncoderRow, NamedProportion,
};
pub use candidate::Candidate;

use std::path::PathBuf;

/// What encoders are compared on.
#[derive(Clone, Debug)]
pub struct EncoderTestConfig {
    /// The folder of public data sets; phantoms where absent.
    pub data: Option<PathBuf>,
    /// Phantoms to learn from; a data set has its own number.
    pub train: u64,
    /// Held-out phantoms, or questions of a data set.
    pub test: u64,
    /// The seed of the held-out part.
    pub seed: u64,
}
