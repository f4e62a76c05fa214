//! Readers of the layouts of cases. Each returns drafts.

pub(crate) mod csv;
pub(crate) mod hub_parquet;
pub(crate) mod jsonl;
pub(crate) mod slake;
pub(crate) mod vqa_rad;
