//! Layouts of imported files: how to recognise one and read its rows.

mod batch;
mod helm;
pub(crate) mod import_layout;
mod llava;
mod lm_eval;
mod lmms_eval;
mod med_eval;
pub(crate) mod post_prompt;
pub(crate) mod row_context;
mod table;
mod vlm_eval;
mod vlm_images;
