//! Which analyses begin with a finding that both presentation orders share.

use std::sync::Arc;

/// Which analyses begin with a finding, and where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FindingSettings {
    /// The expert that states it.
    pub(super) member: usize,
    /// Text at which the finding ends.
    pub(super) end: Arc<str>,
}
