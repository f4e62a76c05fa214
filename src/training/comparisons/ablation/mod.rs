//! Ablation studies: the same training with one setting changed, over several seeds (ACE-M³ §4.4,
//! `HDCEval` §4.4, `AutoMedEval` §4.5).

mod ablation_config;
mod ablation_result;
mod ablation_table;
mod ablation_trial;
mod evaluation_variants;
mod preference_variants;
mod study;
mod variants;

pub use crate::training::comparisons::ablation::ablation_config::AblationConfig;
pub use crate::training::comparisons::ablation::ablation_table::{
    AblationRow, AblationTable, SeedStatistic,
};
pub use crate::training::comparisons::ablation::ablation_trial::Ablation;
pub use crate::training::comparisons::ablation::study::AblationStudy;
pub use crate::training::comparisons::ablation::variants::{StudyInputs, StudyVariants, Variant};
