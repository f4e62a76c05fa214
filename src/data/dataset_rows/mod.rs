//! Real questions with a known better answer: material for training a panel and measuring it.
//!
//! A row of a public data set gives a pair when its reference answer is put against a plausible
//! wrong one ([`DistractorPool`]), or when exactly one of two models' real answers agrees with the
//! reference ([`path_vqa_model_pairs`]).

mod answer_terms;
mod dataset_items;
mod distractors;
mod model_answers;
mod question_options;
mod reference_match;

pub use crate::data::dataset_rows::dataset_items::{DatasetItem, DatasetSplit, load_real};
pub use crate::data::dataset_rows::distractors::DistractorPool;
pub use crate::data::dataset_rows::reference_match::agrees;
pub use model_answers::{ModelPair, path_vqa_model_pairs};
