//! The trainer: updates weights from sequences of tokens. Apart from checkpoints, it reads no
//! files; the crate `acem3` prepares the examples.

mod adamw;
mod attribute_classifier;
mod checkpoint;
mod consistency;
mod image_layers;
mod lora;
mod loss;
mod muon;
mod optimizer;
mod optimizer_config;
mod packing;
mod parallel;
mod parameters;
mod preference;
mod recompute;
mod schedule;
mod sequence;
mod sequence_input;
mod trainable_model;
mod trainer;
mod training_image;
mod weight_names;

pub use attribute_classifier::{AttributeClassifier, AttributeExample, PATCH_CLASSES};
pub use checkpoint::{load_checkpoint, load_shared_checkpoint, save_checkpoint};
pub use consistency::OtherOrder;
pub use lora::LoraConfig;
pub use loss::{Hits, ShardLoss};
pub use optimizer::Optimizer;
pub use optimizer_config::{MatrixRule, OptimizerConfig};
pub use parallel::{map_on_device, parallel_map};
pub use parameters::Parameters;
pub use preference::{DpoLossConfig, PreferenceExample};
pub use recompute::RecomputeTape;
pub use schedule::Schedule;
pub use sequence::{EqualPrediction, Sequence, TargetToken};
pub use sequence_input::SequenceInput;
pub use trainable_model::{Batch, TrainableModel};
pub use trainer::{StepReport, Trainer};
pub use training_image::{ImageSpan, TrainingImage};
pub use weight_names::weight_names;
