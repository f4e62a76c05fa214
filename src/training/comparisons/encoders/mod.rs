//! Comparison of vision encoders with equal training budgets.
//!
//! There are two comparisons. The fast one, [`probe`], fits linear classifiers on frozen features.
//! The slow one, [`panels`], trains a projector from each encoder to the decoders of a base, and by
//! choice the upper part of these decoders, and judges held-out pairs. The first encoder is the
//! baseline; paired tests compare the others with it.

pub mod candidate;
pub mod panels;
pub mod peak_memory;
pub mod probe;

pub use candidate::Candidate;

use std::path::PathBuf;

/// Training and test images of linear probes.
#[derive(Clone, Debug)]
pub struct EncoderTestConfig {
    /// Folder of the public data sets; `None` for phantoms.
    pub data: Option<PathBuf>,
    /// Number of training phantoms. A data set uses its whole training split.
    pub train_count: u64,
    /// Number of held-out phantoms. A data set uses all its test images.
    pub test_count: u64,
    /// Seed of the phantoms.
    pub seed: u64,
}
