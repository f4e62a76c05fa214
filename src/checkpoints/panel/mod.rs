//! Files of a panel: `panel.toml`, the members file, and the definition read from them.

pub mod definition;
pub mod files;
pub mod initial_model;
pub mod limits;
pub mod member;
pub mod member_entry;
pub mod member_files;
pub mod member_names;
pub mod members_file;
pub mod peft;
pub mod prompt_config;
pub mod sample_count;
pub mod spec;
pub mod trained_forms;
pub(crate) mod trained_rubrics;
