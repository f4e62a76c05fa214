//! Real questions with a known better answer: material for training a panel and measuring it.
//!
//! A row of a public data set gives a pair when its reference answer is put against a plausible
//! wrong one ([`DistractorPool`]), or when exactly one of two models' real answers agrees with the
//! reference ([`path_vqa_model_pairs`]).

mod agree;
mod choices;
mod model_answers;
mod real;
mod terms;
mod wrong;

pub use agree::agrees;
pub use model_answers::{ModelPair, path_vqa_model_pairs};
pub use real::{DatasetItem, DatasetSplit, load_real};
pub use wrong::DistractorPool;
