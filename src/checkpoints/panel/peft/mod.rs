//! Export of a panel for serving: one base in the layout of the hub, and an adapter of PEFT for each
//! member.

mod adapted_panel;
mod adapter_files;
mod base_config;
mod base_tensors;
mod export;
mod served_tokenizer;
mod serving_files;

pub use export::{ExportedPanel, PeftExport};
