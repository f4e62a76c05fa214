//! Training of panels: configuration, examples, stages, and experiments on trainings.
//!
//! The mathematics of training is in `acem3_experts::train`.

pub mod comparisons;
pub mod config;
pub mod construction;
pub mod examples;
pub mod introspection;
pub mod measurement;
pub mod preferences;
pub mod stages;

pub use crate::training::config::activation_dtype::ActivationDtype;
pub use crate::training::config::precision::Precision;
pub use crate::training::config::reward_tokens::{RewardTokenPair, RewardTokens};
pub use crate::training::config::stage::curriculum::Curriculum;
pub use crate::training::config::stage::evaluation_config::EvaluationConfig;
pub use crate::training::config::stage::negative::Negative;
pub use crate::training::config::stage::preference_config::PreferenceConfig;
pub use crate::training::config::stage::reward_token::RewardTokenRole;
pub use crate::training::config::stage::stage_config::StageConfig;
pub use crate::training::config::stage::stage_kind::StageKind;
pub use crate::training::config::train_config::TrainConfig;
pub use crate::training::config::train_paths::TrainPaths;
pub use crate::training::examples::sources::pixels::ImagePreparation;
pub use crate::training::preferences::files::file_sequences::FileSequenceBuilder;
pub use crate::training::stages::metrics::progress::TrainingProgress;
pub(crate) use crate::training::stages::run::adapt::{AdaptedModel, adapt};
pub use crate::training::stages::run::training_run::train;
