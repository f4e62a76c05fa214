//! File helpers: atomic writes, locked output folders, checks for regular files, and protection
//! against CSV injection.

pub mod atomic_file;
pub(crate) mod csv_formula;
pub mod folder;
pub mod regular_file;
