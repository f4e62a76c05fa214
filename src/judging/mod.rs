//! Judging: the `Judge` trait, panels in memory, and runs with their journal and records.

pub mod judge;
pub mod key;
pub mod panel;
pub mod run;
pub mod summary;
