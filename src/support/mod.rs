//! Files, requests, terminal, digests, text, charts and devices. Nothing here depends on the task of
//! judging.

pub mod chart;
pub mod device;
pub mod digest;
pub mod files;
pub mod network;
pub mod tables;
pub mod terminal;
pub mod text;
