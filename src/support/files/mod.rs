//! Files and folders as a program must treat them that may be killed at any moment.
//!
//! Written whole or not at all, never somebody else's, and no pipe for a file.

pub mod atomic_file;
pub(crate) mod csv_formula;
pub mod folder;
pub mod regular_file;
