//! Comparisons of trainings that differ in one setting, or in the vision encoder.

pub mod ablation;
pub mod encoders;
