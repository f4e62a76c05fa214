//! Decisions of people about pairs that the discussion leaves unresolved (the jury in Figure 3 of
//! AutoMedEval).

mod decision_line;
pub(super) mod decisions_file;
mod labelled_pairs;
mod pair_evaluation;
pub(super) mod unresolved_file;
