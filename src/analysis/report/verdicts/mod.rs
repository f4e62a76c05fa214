//! Summaries of the verdicts in the records.

pub(crate) mod case_lists;
pub(crate) mod counts;
pub(crate) mod deciding;
pub(crate) mod groups;
pub(crate) mod histogram;
pub(crate) mod record_summary;
pub(crate) mod scores;
pub(crate) mod verdict_table;
