//! The decoder of a panel: one trunk that all members share and one head for each member.

use crate::Error;
use crate::decoder::{Head, Trunk};

/// The trunk and the heads of a panel.
pub(super) struct PanelDecoder {
    pub(super) trunk: Trunk,
    pub(super) heads: Vec<Head>,
}

impl PanelDecoder {
    /// The head of a member.
    pub(super) fn head(&self, member: usize) -> Result<&Head, Error> {
        let missing = || {
            Error::Candle(candle::Error::Msg(format!(
                "the panel has no head {member}"
            )))
        };
        self.heads.get(member).ok_or_else(missing)
    }
}
