//! The files of a panel: `panel.toml`, the members file, and what a panel is made of.

pub mod files;
pub mod member;
pub mod members_file;
pub mod recipe;
pub mod spec;
pub mod start;
