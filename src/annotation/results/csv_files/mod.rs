//! Results as tables: scores, preferences, decisions and details.

pub(super) mod adjudicated_tables;
pub(super) mod detail_table;
pub(super) mod evaluation_tables;
pub(super) mod preference_table;
pub(super) mod score_table;
