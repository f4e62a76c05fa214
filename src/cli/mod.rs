//! Arguments and commands.

pub mod args;
pub mod commands;
pub mod secret_arguments;
