//! Answers as other programs write them: evaluation harnesses, batch interfaces and tables.
//!
//! An [`ImportSet`](import_set::ImportSet) joins the files of one data set by id to drafts of
//! cases. A file is read row by row; only ids, answers and the starts of questions are in memory.

pub mod case_writer;
pub(crate) mod columns;
mod folders;
pub(crate) mod image_value;
pub(crate) mod import_file;
pub(crate) mod import_set;
pub(crate) mod imported_row;
mod join;
mod layouts;
mod model_names;
pub mod question_images;
pub(crate) mod rows;
mod unanswered_requests;
pub(crate) mod unknown_layout;

pub use columns::column_roles::{AnswerColumn, ColumnEntry, ColumnRole, ColumnRoles};
