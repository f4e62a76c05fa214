//! Which texts of a panel begin with a finding that both presentation orders share.

use std::sync::Arc;

/// Which texts of a panel begin with a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::judging::panel) struct FindingSettings {
    /// The expert that states it.
    pub(in crate::judging::panel) member: usize,
    /// The marker after it.
    pub(in crate::judging::panel) end: Arc<str>,
}
