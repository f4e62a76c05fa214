//! Arguments and commands.

pub mod args;
pub mod commands;
