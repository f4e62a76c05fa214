//! Settings of an audit.

use super::probe::Probe;
use super::result::Threshold;
use crate::statistics::Bootstrap;

/// Settings of an audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// The probes, in the order in which they are listed.
    pub probes: Vec<Probe>,
    /// Bootstrap settings; the seed also selects the perturbed responses.
    pub bootstrap: Bootstrap,
    /// The thresholds.
    pub limits: Vec<Threshold>,
}
