//! Files, requests, processes, terminal, digests, text, charts and devices. Nothing here depends on
//! the task of judging.

pub mod device;
pub mod digest;
pub mod files;
pub mod network;
pub mod process;
pub mod tables;
pub mod terminal;
pub mod text;
