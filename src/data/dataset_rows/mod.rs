//! Pairs with a known better answer from public data sets, used to train and measure panels.
//!
//! The two answers of a pair are the reference answer and a plausible wrong one
//! ([`DistractorPool`]), or two models' answers of which exactly one agrees with the reference
//! ([`path_vqa_model_pairs`]).

mod answer_terms;
mod dataset_items;
mod distractors;
mod model_answers;
mod question_options;
mod reference_match;

pub(crate) use crate::data::dataset_rows::answer_terms::parse_yes_no;
pub use crate::data::dataset_rows::dataset_items::{
    DatasetItem, DatasetSplit, TRAINING_SETS, load_dataset_items, load_training_items,
};
pub use crate::data::dataset_rows::distractors::DistractorPool;
pub use crate::data::dataset_rows::reference_match::matches_reference;
pub use model_answers::{
    ModelPair, PATH_VQA_TEST_ROWS, PATH_VQA_TRAINING_ROWS, path_vqa_model_pairs,
};
