//! Comparison of vision encoders with equal training budgets.
//!
//! There are two comparisons. The fast one, [`linear_probe`], fits linear classifiers on frozen
//! features. The slow one, [`panel_comparison`], trains a projector from each encoder to the
//! decoder of the embedded panel and judges held-out cases. The first encoder is the baseline;
//! paired tests compare the others with it.

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

/// Training and test data of an encoder comparison.
#[derive(Clone, Debug)]
pub struct EncoderTestConfig {
    /// Folder of the public data sets; `None` for phantoms.
    pub data: Option<PathBuf>,
    /// Number of training phantoms. A data set uses its whole training split.
    pub train_count: u64,
    /// Number of held-out phantoms, or of held-out questions of a data set. Linear probes use all
    /// test images of a data set.
    pub test_count: u64,
    /// Seed of the phantoms, of the choice of held-out questions and of training.
    pub seed: u64,
}
