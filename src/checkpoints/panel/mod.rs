//! The files of a panel: `panel.toml`, the members file, and what a panel is made of.

pub mod definition;
pub mod files;
pub mod initial_model;
pub mod member;
pub mod members_file;
pub mod prompt_config;
pub mod spec;
