//! Arguments that several commands share.

mod bootstrap;
mod bound_value;
mod complete;
mod device;
mod dicom;
mod form;
pub(super) mod judge_panel;
mod knowledge;
mod labels;
mod output_format;
mod prompt_layout;
pub(super) mod requests;
mod samples;
mod served;
mod shard;
mod source;
pub(super) mod value_parsers;

pub use bootstrap::BootstrapArgs;
pub use bound_value::BoundValue;
pub use complete::CompleteArgs;
pub use device::DeviceArgs;
pub use dicom::DicomArgs;
pub use form::{FormArg, FormArgs, ReferenceUse, read_rubric};
pub use judge_panel::JudgePanelArgs;
pub(super) use knowledge::KnowledgeArgs;
pub use labels::{LabelArgs, LabelScale};
pub use output_format::{OutputFormat, TableFormat};
pub(super) use prompt_layout::{PromptLayoutArg, RubricDetailArg};
pub(super) use samples::SamplesArgs;
pub use shard::{ShardArg, ShardSource};
pub(super) use source::RECORDS_OR_CASES;
pub use source::SourceArgs;
