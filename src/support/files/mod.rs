//! Crash-safe file helpers: atomic writes, locked output folders, and reads of regular files only.

pub mod atomic_file;
pub(crate) mod csv_formula;
pub mod folder;
pub mod regular_file;
