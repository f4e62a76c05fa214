//! Panels with one base and different encoders: trains a projector for each encoder, and by choice
//! upper layers or adapters of the base, and judges held-out pairs.

mod base_panel;
mod context_fit;
mod cost;
mod encoder_run;
mod encoder_training;
mod experiment;
mod held_out;
mod journal;
mod pair_outcome;
mod panel_writer;
mod results;
mod training_plan;

pub use context_fit::ContextFit;
pub use cost::EncoderCost;
pub use experiment::{EncoderExperiment, ExperimentOutput};
pub use results::{
    EncoderComparisonKind, JudgedComparison, JudgedRow, MEASURE, MajorityRow, PairedComparison,
    SeedAccuracy,
};
pub use training_plan::{EncoderPlan, MemberTraining};
