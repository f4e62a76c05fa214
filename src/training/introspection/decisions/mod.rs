//! Decisions of people about pairs that the discussion leaves unresolved (the jury in Figure 3 of
//! AutoMedEval).

pub(crate) mod decision_line;
pub(super) mod decisions_file;
mod labelled_pairs;
pub(crate) mod pair_evaluation;
pub(crate) mod unresolved_file;
pub(crate) mod unresolved_pair;
