//! Files and folders as a program must treat them that may be killed at any moment.
//!
//! Written whole or not at all, never somebody else's, and no pipe for a file.

pub mod folder;
pub(crate) mod formula;
pub mod regular;
pub mod whole_file;
