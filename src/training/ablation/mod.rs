//! Ablation studies: the same training with one setting changed, over several seeds (ACE-M³ §4.4,
//! `HDCEval` §4.4).

mod ablation_config;
mod ablation_result;
mod ablation_table;
mod ablation_trial;
mod preference_variants;
mod study;

pub use crate::training::ablation::ablation_config::AblationConfig;
pub use crate::training::ablation::ablation_table::{AblationRow, AblationTable, SeedStatistic};
pub use crate::training::ablation::ablation_trial::Ablation;
pub use crate::training::ablation::study::{AblationStudy, StudyVariants, Variant};
