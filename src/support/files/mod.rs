//! File helpers: atomic writes, files that grow by lines, checked output files, edited files, locked
//! output folders, checks for regular files, and protection against CSV injection.

pub mod append_file;
pub mod atomic_file;
pub(crate) mod csv_formula;
pub mod edited_file;
pub mod file_form;
pub mod file_identity;
pub mod folder;
pub(crate) mod junit;
pub mod out_file;
pub mod regular_file;
