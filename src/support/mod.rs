//! The ground floor: files, the terminal, digests, text, charts and devices. Nothing here knows what acem3 judges.

pub mod chart;
pub mod device;
pub mod digest;
pub(crate) mod escape;
pub mod files;
pub mod tables;
pub mod terminal;
pub mod text;
pub mod threads;
