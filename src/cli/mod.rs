//! The command line: arguments and commands.

pub mod args;
pub mod commands;
