//! Linear probes: classifiers on the frozen features of each encoder.

mod classifier;
mod encoder_comparison;
mod features;
mod labelled_images;
pub mod linear_probe;

pub use encoder_comparison::{EncoderComparison, EncoderRow, NamedProportion};
