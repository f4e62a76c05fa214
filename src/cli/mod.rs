//! Arguments and commands.

pub mod args;
pub mod commands;
pub mod environment_hint;
pub mod secret_arguments;
