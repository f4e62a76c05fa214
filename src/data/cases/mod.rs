//! Cases from files: what people bring, read as a stream.
//!
//! [`open`] recognises the layout of a path and returns a [`CaseSource`]: an iterator over cases, in
//! which a case that cannot be read is a [`InputProblem`] with its line and never the end of the stream.
//! Only the answers of models are held in memory; cases and images pass through one by one.
//!
//! A reader per layout (`jsonl`, `csv`, `vqa_rad`, `slake`, `hub`) makes drafts; one
//! `draft::CaseAssembler` makes cases of them by the same rules for all.

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
mod unusable_lines;
mod vqa_rad;

pub(crate) use crate::data::cases::case_id::{id_text, kind};
pub(crate) use crate::data::cases::case_labels::parse as parse_labels;
pub(crate) use crate::data::cases::csv_rows::CsvSheet;
pub(crate) use lines::Lines;
pub(crate) use source::root;

pub use case::{
    Case, CaseLabels, ImageSource, InputProblem, ProblemScope, Response, UnscoredReason,
};
pub use case_line::CaseLine;
pub use source::{CaseResult, CaseSource, Lang, SourceKind, SourceOptions, SourceSpec, open};
