//! Cases from files: what people bring, read as a stream.
//!
//! [`open`] recognises the layout of a path and returns a [`CaseSource`]: an iterator over cases, in
//! which a case that cannot be read is a [`InputProblem`] with its line and never the end of the stream.
//! Only the answers of models are held in memory; cases and images pass through one by one.
//!
//! A reader per layout (`jsonl`, `csv`, `vqa_rad`, `slake`, `hub`) makes drafts; one
//! `draft::CaseAssembler` makes cases of them by the same rules for all.

mod answer;
mod answers;
mod case;
mod case_line;
mod csv;
mod draft;
mod elements;
mod guard;
mod hub;
mod ident;
mod jsonl;
mod labels;
mod layout;
mod lines;
mod loose;
mod met;
mod parquet;
mod python_json;
mod rows;
mod slake;
mod source;
mod unusable;
mod vqa_rad;

pub(crate) use ident::{id_text, kind};
pub(crate) use labels::parse as parse_labels;
pub(crate) use lines::Lines;
pub(crate) use rows::CsvSheet;
pub(crate) use source::root;

pub use case::{
    Case, CaseLabels, ImageSource, InputProblem, ProblemScope, Response, UnscoredReason,
};
pub use case_line::CaseLine;
pub use source::{CaseResult, CaseSource, Lang, SourceKind, SourceOptions, SourceSpec, open};
