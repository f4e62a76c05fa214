//! Settings of a run.

use std::path::PathBuf;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Maximum pairs per batch of a judge without a queue.
    pub batch_size: usize,
    /// Model that all others are compared with; `None` to compare all pairs.
    pub baseline: Option<String>,
    /// Maximum number of cases.
    pub limit: Option<u64>,
    /// Base folder of the file names in records.
    pub root: PathBuf,
    /// True if the earlier records are some shards of the source, so that cases are missing between them.
    pub fills_gaps: bool,
}
