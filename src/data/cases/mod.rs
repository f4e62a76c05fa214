//! Reads cases from files as a stream.
//!
//! [`open`] detects the layout of a path and returns a [`CaseSource`], an iterator over cases. An
//! unreadable case is an [`InputProblem`] with its line and does not end the stream. Only answers
//! files are held in memory; cases and images are read one by one.
//!
//! Each layout has a reader (`jsonl`, `csv`, `vqa_rad`, `slake`, `hub_parquet`) that returns
//! drafts: cases without the responses of answers files. The `CaseAssembler` completes all drafts
//! by the same rules.

mod answer_index;
mod answer_line;
mod answer_matches;
mod case;
mod case_assembler;
mod case_id;
mod case_labels;
mod case_line;
mod csv;
mod csv_rows;
mod hub_parquet;
mod json_array;
mod jsonl;
mod layout;
mod lines;
mod panic_guard;
mod parquet;
mod python_json;
mod removed_responses;
mod slake;
mod source;
mod source_options;
mod unusable_lines;
mod vqa_rad;

pub(crate) use crate::data::cases::case_id::{json_type, parse_id};
pub(crate) use crate::data::cases::case_labels::parse as parse_labels;
pub(crate) use crate::data::cases::csv_rows::CsvSheet;
pub(crate) use lines::Lines;
pub(crate) use source::base_folder;

pub use case::{
    Case, CaseLabels, ImageSource, InputProblem, ProblemScope, Response, UnscoredReason,
};
pub use case_line::CaseLine;
pub use source::{CaseSource, open};
pub use source_options::{CaseResult, Lang, SourceKind, SourceOptions, SourceSpec};
