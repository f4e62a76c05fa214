//! The `Judge` trait, panels in memory, and runs with their journal and records.

pub mod judge;
pub mod knowledge;
pub mod merge;
pub mod panel;
pub mod provenance;
pub mod run;
pub mod served;
pub mod verification;
