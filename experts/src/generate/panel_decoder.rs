//! Decoder of a panel: a trunk that all members share and a head for each member.

use crate::Error;
use crate::decoder::{Head, Trunk};

/// Trunk and heads of a panel.
pub(super) struct PanelDecoder {
    pub(super) trunk: Trunk,
    pub(super) heads: Vec<Head>,
}

impl PanelDecoder {
    /// Returns the head of a member.
    pub(super) fn head(&self, member: usize) -> Result<&Head, Error> {
        let missing = || {
            Error::Candle(candle::Error::Msg(format!("the panel has no head for member {member}")))
        };
        self.heads.get(member).ok_or_else(missing)
    }

    /// Returns the smallest number of heads that a thread computes. On a GPU it is all of them: the
    /// device computes one after the other, and cuBLAS has one workspace for all threads.
    pub(super) fn min_heads_per_thread(&self) -> usize {
        if self.trunk.is_on_cpu() { 1 } else { self.heads.len().max(1) }
    }
}
