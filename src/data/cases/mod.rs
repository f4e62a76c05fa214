//! Reads cases from files as a stream.
//!
//! [`open`] detects the layout of a path and returns a [`CaseSource`], an iterator over cases. An
//! unreadable case is an [`InputProblem`] with its line and does not end the stream. Only answers
//! files are held in memory; cases and images are read one by one.
//!
//! Each layout has a reader (`jsonl`, `csv`, `vqa_rad`, `slake`, `hub_parquet`, or an import) that returns
//! drafts: cases without the responses of answers files. The `CaseAssembler` completes all drafts
//! by the same rules.

pub mod answers;
pub(crate) mod case;
mod case_assembler;
mod case_digest;
pub(crate) mod draft;
pub mod formats;
pub(crate) mod image_fields;
mod layout;
pub mod layouts;
mod misspelt_fields;
mod removed_responses;
mod source;
pub(crate) mod source_options;
mod unknown_file;
mod unknown_folder;

pub(crate) use crate::data::cases::answers::answer_index::MissingResponse;
pub(crate) use crate::data::cases::case::case_id::{json_type, parse_id};
pub(crate) use crate::data::cases::case::case_labels::parse as parse_labels;
pub(crate) use crate::data::cases::formats::csv_rows::CsvSheet;
pub(crate) use crate::data::cases::formats::json_array::Elements;
pub(crate) use crate::data::cases::formats::lines::Lines;
pub(crate) use crate::data::cases::formats::parquet::isolated_rows as parquet_rows;
pub(crate) use removed_responses::{RemovedResponse, join_reasons, remove_responses};
pub(crate) use source::base_folder;

pub use crate::data::cases::case::case_line::CaseLine;
pub use crate::data::cases::case::unlisted_pairs::{AffectedPairs, UnlistedPairs};
pub use case::{
    Case, CaseLabels, ImageSource, InputProblem, ProblemScope, Response, UnscoredReason,
};
pub use case_digest::CaseHasher;
pub use source::{CaseSource, open, open_imports, open_questions};
pub use source_options::{CaseResult, Lang, SourceKind, SourceOptions, SourceSpec};
