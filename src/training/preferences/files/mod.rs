//! Files of preferences and evaluations.

pub(crate) mod asked_questions;
pub(crate) mod copied_images;
pub(crate) mod evaluations_file;
pub(crate) mod file_sequences;
pub(crate) mod jsonl_line;
pub(crate) mod preference_folder;
pub(crate) mod preferences_file;
pub(crate) mod rated_file;
pub(crate) mod source_evaluations;
