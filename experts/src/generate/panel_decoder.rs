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
}
